"""RedundancyBench on disk: trajectories with gold labels, validated, and the folds."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from redclf.errors import TraceError
from redclf.readers.redundancybench import read_simulations
from redclf.taxonomy import CATEGORIES
from redclf.trajectory import Trajectory

TRACES = "final_traces.json"
ANNOTATION = "annotation.json"
SPLITS = "splits.json"
#: The subset whose annotations join by `task_id`; all others join by `trajectory_id`.
HUMAN = "human_annotation"

Step = tuple[int, int]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GoldStep:
    """One labelled redundant step.

    Parameters
    ----------
    step : tuple of int
        `(call_index, result_index)`.
    category : str
        One of `redclf.taxonomy.CATEGORIES`.
    evidence : tuple of int
        `(c, r)`, `(c1, r1, c2, r2, ...)`, `(i,)` or `(-1,)`.
    certain : bool or None
        Whether the annotator was certain, where the annotation says so.
    synthetic : bool or None
        Whether the step was inserted by the benchmark's makers, where the annotation says so.
        For analysis only: the full release does not have it.
    """

    step: Step
    category: str
    evidence: tuple[int, ...]
    certain: bool | None = None
    synthetic: bool | None = None


@dataclass(frozen=True)
class LabelledTrajectory:
    """A trajectory with its gold labels.

    Parameters
    ----------
    trajectory : Trajectory
    gold : tuple of GoldStep
        Empty where the trajectory is known to have no redundant step.
    disputed : frozenset of tuple
        Steps on which the annotators disagreed; scores ignore them.
    subset, domain : str
    group : tuple of str
        `(domain, task_id)`: trajectories of a group are not independent, so that folds and the
        bootstrap keep them together.
    """

    trajectory: Trajectory
    gold: tuple[GoldStep, ...]
    disputed: frozenset[Step]
    subset: str
    domain: str
    group: tuple[str, str]

    @property
    def id(self) -> str:
        """The trajectory's id."""
        return self.trajectory.id


def load_benchmark(root: str | Path, subset: str | None = None, domain: str | None = None) -> list[LabelledTrajectory]:
    """Load labelled trajectories from a folder in the layout of the release.

    Parameters
    ----------
    root : path
        Folder with `<subset>/<domain>/final_traces.json` and `annotation.json`.
    subset, domain : str, optional
        Load only these.

    Returns
    -------
    list of LabelledTrajectory
        By subset, domain, and place in the annotation file. Traces without an annotation are left
        out with a warning: nothing says that they have no redundant step.

    Raises
    ------
    TraceError
        If the layout, a trace or a label is not as expected; names the file, record and field.
    """
    root = Path(root)
    if not root.is_dir():
        raise TraceError("expected a benchmark folder, found none", str(root))
    folders = sorted(path.parent for path in root.glob(f"*/*/{ANNOTATION}"))
    if not folders:
        raise TraceError(f"expected <subset>/<domain>/{ANNOTATION} in it, found none", str(root))
    chosen = [folder for folder in folders if subset in (None, folder.parent.name) and domain in (None, folder.name)]
    if not chosen:
        wanted = "/".join(part or "*" for part in (subset, domain))
        held = ", ".join(f"{folder.parent.name}/{folder.name}" for folder in folders)
        raise TraceError(f"expected {wanted} in it; it holds {held}", str(root))
    items: list[LabelledTrajectory] = []
    seen: dict[str, str] = {}
    for folder in chosen:
        for item in _load_folder(folder):
            place = str(folder)
            if item.id in seen:
                raise TraceError(f"trajectory id {item.id!r} is also in {seen[item.id]}", place)
            seen[item.id] = place
            items.append(item)
    return items


def spread(items: Sequence[T], count: int) -> list[T]:
    """Return `count` items spread evenly over a sequence, all of it where it has no more."""
    if count >= len(items):
        return list(items)
    return [items[place * len(items) // count] for place in range(count)]


def load_splits(root: str | Path) -> dict[str, int]:
    """Return the fold of every trajectory id, from `splits.json` in the benchmark's folder.

    Raises
    ------
    TraceError
        If there is no such file or it is not `{"folds": {id: fold}}`.
    """
    path = Path(root) / SPLITS
    value = _read_json(path)
    folds = value.get("folds") if isinstance(value, dict) else None
    if not isinstance(folds, dict) or not folds:
        raise TraceError("expected an object of trajectory id to fold", str(path), "folds")
    for name, fold in folds.items():
        if not _is_int(fold) or fold < 0:
            raise TraceError(f"expected a fold number from 0, got {fold!r}", str(path), name)
    return dict(folds)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TraceError("expected this file, found none", str(path)) from None
    except UnicodeDecodeError as error:
        raise TraceError(f"expected UTF-8 text: {error.reason}", str(path)) from None
    except OSError as error:
        raise TraceError(f"can't be read: {error.strerror}", str(path)) from None
    except (ValueError, RecursionError) as error:
        raise TraceError(f"expected JSON: {error}", str(path)) from None


def _load_folder(folder: Path) -> list[LabelledTrajectory]:
    subset, domain = folder.parent.name, folder.name
    key = "task_id" if subset == HUMAN else "trajectory_id"
    trajectories = _load_traces(folder / TRACES, subset, domain)
    path = str(folder / ANNOTATION)
    records = _read_json(folder / ANNOTATION)
    if not isinstance(records, list):
        raise TraceError(f"expected a list of annotations, got {_kind(records)}", path)
    items: list[LabelledTrajectory] = []
    seen: set[str] = set()
    for number, record in enumerate(records):
        where = f"record {number}"
        if not isinstance(record, dict):
            raise TraceError(f"expected an object, got {_kind(record)}", path, where)
        name = _identifier(record, key, path, where)
        where = f"record {number} ({key} {name})"
        if name in seen:
            raise TraceError("annotated twice", path, where)
        seen.add(name)
        trajectory = trajectories.get(name)
        if trajectory is None:
            raise TraceError(f"no such trajectory in {TRACES}", path, where)
        gold = _read_gold(record, trajectory, path, where)
        disputed = frozenset(
            _read_step(value, trajectory, path, f"{where}, disputed_step_idx[{place}]")
            for place, value in enumerate(_list(record, "disputed_step_idx", path, where, []))
        )
        task = trajectory.task_id if trajectory.task_id is not None else trajectory.id
        items.append(LabelledTrajectory(trajectory, gold, disputed, subset, domain, (domain, task)))
    missing = len(trajectories) - len(seen)
    if missing:
        warnings.warn(f"{path}: {missing} traces without an annotation left out", stacklevel=4)
    return items


def _load_traces(path: Path, subset: str, domain: str) -> dict[str, Trajectory]:
    """Return the trajectories by the key that the subset's annotations join by."""
    trajectories: dict[str, Trajectory] = {}
    for trajectory in read_simulations(path):
        if trajectory.subset is None:
            trajectory = replace(trajectory, subset=subset, domain=domain)
        name = trajectory.task_id if subset == HUMAN else trajectory.id
        if name is None or name in trajectories:
            raise TraceError(f"expected one trajectory a task_id, got {name!r} again", str(path))
        trajectories[name] = trajectory
    return trajectories


def _read_gold(record: Mapping[str, Any], trajectory: Trajectory, path: str, where: str) -> tuple[GoldStep, ...]:
    steps = _list(record, "redundant_step_idx", path, where)
    types = _list(record, "redundant_step_type", path, where)
    evidences = _list(record, "evidence_step_idx", path, where)
    certain = _list(record, "confidence", path, where, [None] * len(steps))
    synthetic = _list(record, "synthetic", path, where, [None] * len(steps))
    named = {
        "redundant_step_type": types,
        "evidence_step_idx": evidences,
        "confidence": certain,
        "synthetic": synthetic,
    }
    for field, values in named.items():
        if len(values) != len(steps):
            raise TraceError(
                f"expected {len(steps)} entries, as redundant_step_idx has, got {len(values)}",
                path,
                f"{where}, {field}",
            )
    gold = []
    for place, category in enumerate(types):
        if category not in CATEGORIES:
            raise TraceError(
                f"expected one of {', '.join(CATEGORIES)}, got {category!r}",
                path,
                f"{where}, redundant_step_type[{place}]",
            )
        gold.append(
            GoldStep(
                _read_step(steps[place], trajectory, path, f"{where}, redundant_step_idx[{place}]"),
                category,
                _read_evidence(evidences[place], trajectory, path, f"{where}, evidence_step_idx[{place}]"),
                _flag(certain[place], path, f"{where}, confidence[{place}]"),
                _flag(synthetic[place], path, f"{where}, synthetic[{place}]"),
            )
        )
    return tuple(gold)


def _read_step(value: Any, trajectory: Trajectory, path: str, where: str) -> Step:
    if not isinstance(value, list) or len(value) != 2 or not all(map(_is_int, value)):
        raise TraceError(f"expected [call, result] message indices, got {value!r}", path, where)
    step = (value[0], value[1])
    if not is_assistant_step(trajectory, step):
        raise TraceError(
            f"expected an interaction of the assistant, got {value!r} "
            f"(the trajectory has {len(trajectory.messages)} messages)",
            path,
            where,
        )
    return step


def _read_evidence(value: Any, trajectory: Trajectory, path: str, where: str) -> tuple[int, ...]:
    evidence = tuple(value) if isinstance(value, list) and all(map(_is_int, value)) else ()
    if not is_evidence(trajectory, evidence):
        raise TraceError(
            "expected [call, result], several such pairs joined, [message] or [-1], "
            f"all in the trajectory ({len(trajectory.messages)} messages), got {value!r}",
            path,
            where,
        )
    return evidence


def is_assistant_step(trajectory: Trajectory, step: Sequence[int]) -> bool:
    """Return whether `step` is an interaction of the assistant in `trajectory`."""
    try:
        return trajectory.interaction_at(step).requestor == "assistant"
    except ValueError:
        return False


def is_evidence(trajectory: Trajectory, evidence: Sequence[int]) -> bool:
    """Return whether `evidence` has one of the four forms, all within `trajectory`.

    A pair must be two of its messages in order, but need not be a call and its own result: the
    release has such labels (two results of parallel calls, for one), and they are scored as they
    stand.
    """
    count = len(trajectory.messages)
    if len(evidence) == 1:
        return -1 <= evidence[0] < count
    pairs = zip(evidence[::2], evidence[1::2], strict=False)
    return len(evidence) > 0 and len(evidence) % 2 == 0 and all(0 <= call < result < count for call, result in pairs)


def _list(record: Mapping[str, Any], field: str, path: str, where: str, default: list[Any] | None = None) -> list[Any]:
    value = record.get(field, default)
    if not isinstance(value, list):
        raise TraceError(f"expected a list, got {_kind(value)}", path, f"{where}, {field}")
    return value


def _identifier(record: Mapping[str, Any], key: str, path: str, where: str) -> str:
    value = record.get(key)
    if not (isinstance(value, str) and value) and not _is_int(value):
        raise TraceError(f"expected a name, got {value!r}", path, f"{where}, {key}")
    return str(value)


def _flag(value: Any, path: str, where: str) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    if value in ("0", "1", 0, 1):
        return value in ("1", 1)
    raise TraceError(f'expected "1", "0", true or false, got {value!r}', path, where)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
