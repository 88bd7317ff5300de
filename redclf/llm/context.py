"""What some settings show a judge beside the trajectory: exemplars from other folds, and the expected actions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from redclf.benchmark.data import ANNOTATION, TRACES, LabelledTrajectory, load_benchmark, load_splits
from redclf.errors import TraceError
from redclf.hashing import trajectory_hash
from redclf.llm.config import ConfigError
from redclf.llm.prompts import Example, quote
from redclf.llm.replies import CATEGORY, CONFIDENCE, EVIDENCE, STEP
from redclf.taxonomy import CATEGORIES
from redclf.trajectory import Trajectory

#: Confidence that the records of an exemplar carry.
_SURE = 0.95

Plan = list[dict[str, Any]]


class ExemplarPool:
    """Labelled trajectories to show: the shortest that hold each category, never of the judged task or fold.

    Parameters
    ----------
    items : sequence of LabelledTrajectory
    folds : mapping, optional
        Trajectory id to fold, if the judged trajectories come from the same data.
    """

    def __init__(self, items: Sequence[LabelledTrajectory], folds: Mapping[str, int] | None) -> None:
        usable = [item for item in items if item.gold and not item.disputed]
        self._items = sorted(usable, key=lambda item: (len(quote(item.trajectory)), item.id))
        self._hashes = {item.id: trajectory_hash(item.trajectory) for item in self._items}
        self._folds = folds

    @classmethod
    def load(cls, root: Path, own_data: bool) -> ExemplarPool:
        """Read the pool from a benchmark folder.

        Parameters
        ----------
        root : Path
        own_data : bool
            Whether the judged trajectories are in it, so that their own fold must be left out.
        """
        return cls(load_benchmark(root), load_splits(root) if own_data else None)

    def pick(self, trajectory: Trajectory, count: int) -> list[Example]:
        """Return exemplars for a judged trajectory, one of each category in turn.

        Raises
        ------
        ConfigError
            If the judged trajectory has no fold, or there are too few others.
        """
        fold = None if self._folds is None else self._folds.get(trajectory.id)
        if self._folds is not None and fold is None:
            raise ConfigError(
                f"trajectory {trajectory.id}: expected a fold in splits.json for the few-shot setting, found none; "
                "name exemplar_data in the config"
            )
        task = (trajectory.domain, trajectory.task_id)
        own = trajectory_hash(trajectory)
        left = [
            item
            for item in self._items
            if item.group != task
            and self._hashes[item.id] != own
            and (self._folds is None or self._folds.get(item.id, fold) != fold)
        ]
        if len(left) < count:
            raise ConfigError(f"expected {count} exemplars from other folds and tasks, found {len(left)}")
        examples = []
        for place in range(count):
            wanted = CATEGORIES[place % len(CATEGORIES)]
            chosen = next((item for item in left if any(g.category == wanted for g in item.gold)), left[0])
            left.remove(chosen)
            examples.append(_example(chosen, wanted))
        return examples


def _example(item: LabelledTrajectory, category: str) -> Example:
    records = tuple(
        {STEP: list(g.step), CATEGORY: g.category, EVIDENCE: list(g.evidence), CONFIDENCE: _SURE} for g in item.gold
    )
    shown = next((place for place, g in enumerate(item.gold) if g.category == category), 0)
    return Example(item.trajectory, records, shown)


def load_plans(root: Path) -> dict[tuple[str, str, str], Plan]:
    """Return the expected actions of every task that lists some.

    Returns
    -------
    dict
        (subset, domain, task id) to the actions: who acts, the tool and its arguments.
    """
    plans: dict[tuple[str, str, str], Plan] = {}
    for folder in sorted(path.parent for path in root.glob(f"*/*/{ANNOTATION}")):
        try:
            value = json.loads((folder / TRACES).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            raise TraceError("expected JSON", str(folder / TRACES)) from None
        tasks = value.get("tasks") if isinstance(value, dict) else None
        for task in tasks if isinstance(tasks, list) else []:
            criteria = task.get("evaluation_criteria") if isinstance(task, dict) else None
            actions = criteria.get("actions") if isinstance(criteria, dict) else None
            plan = [_action(action) for action in actions or [] if isinstance(action, dict) and "name" in action]
            if plan:
                plans[folder.parent.name, folder.name, str(task.get("id"))] = plan
    return plans


def _action(action: Mapping[str, Any]) -> dict[str, Any]:
    actor = "user" if action.get("requestor") == "user" else "agent"
    return {"by": actor, "tool": action["name"], "arguments": action.get("arguments")}
