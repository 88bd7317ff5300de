"""How far two annotations of the same trajectories agree: the paper's appendix E (arXiv 2605.29893).

Unit is the redundant step, as its pair of message indices. In each trajectory the steps that both name are
the intersection of the two lists as multisets, so that no step counts twice. Type and evidence are compared
on steps that both name.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redclf.benchmark.data import ANNOTATION
from redclf.benchmark.predictions import evidence_key
from redclf.errors import TraceError
from redclf.taxonomy import CATEGORIES

#: Names of one trajectory: domain ("" where a single file is read) and id.
Key = tuple[str, str]
_FIELDS = ("redundant_step_idx", "redundant_step_type", "evidence_step_idx")


@dataclass(frozen=True, slots=True)
class Label:
    """One redundant step of an annotation.

    Parameters
    ----------
    step : tuple of int
        Sorted message indices.
    category : str
    evidence : tuple
        As `evidence_key` gives: the order of joined pairs does not matter.
    """

    step: tuple[int, ...]
    category: str
    evidence: tuple[Any, ...]


Annotation = Mapping[Key, tuple[Label, ...]]


def load_annotation(path: str | Path) -> dict[Key, tuple[Label, ...]]:
    """Read an `annotation.json`, or those of a folder in the layout of the release.

    Parameters
    ----------
    path : path
        A file; or a folder with one in it, or with `<subset>/<domain>/annotation.json` below it.

    Returns
    -------
    dict
        Trajectory to its labels; empty where it is known to have no redundant step.

    Raises
    ------
    TraceError
        If there is none, or it has another layout; names the file, record and field.
    """
    root = Path(path)
    if root.is_dir() and not (root / ANNOTATION).is_file():
        files = sorted(root.glob(f"**/{ANNOTATION}"))
        if not files:
            raise TraceError(f"expected {ANNOTATION} in it or below it, found none", str(root))
        found: dict[Key, tuple[Label, ...]] = {}
        for file in files:
            for name, labels in _load_file(file).items():
                key = (file.parent.name, name)
                if key in found:
                    raise TraceError(f"{name!r} is annotated in another folder of this name, too", str(file))
                found[key] = labels
        return found
    file = root / ANNOTATION if root.is_dir() else root
    return {("", name): labels for name, labels in _load_file(file).items()}


def _load_file(path: Path) -> dict[str, tuple[Label, ...]]:
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TraceError("expected an annotation, found none", str(path)) from None
    except (OSError, ValueError, RecursionError) as error:
        raise TraceError(f"expected JSON: {error}", str(path)) from None
    if not isinstance(records, list):
        raise TraceError("expected a list of annotations", str(path))
    found: dict[str, tuple[Label, ...]] = {}
    for number, record in enumerate(records):
        where = f"record {number}"
        if not isinstance(record, dict):
            raise TraceError("expected an object", str(path), where)
        name = record.get("trajectory_id", record.get("task_id"))
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise TraceError(f"expected a trajectory_id or task_id, got {name!r}", str(path), where)
        if str(name) in found:
            raise TraceError(f"{name} is annotated twice", str(path), where)
        found[str(name)] = tuple(_labels(record, path, where))
    return found


def _labels(record: Mapping[str, Any], path: Path, where: str) -> Iterable[Label]:
    columns = [record.get(name) for name in _FIELDS]
    if not all(isinstance(column, list) for column in columns):
        raise TraceError(f"expected the lists {', '.join(_FIELDS)}", str(path), where)
    steps, categories, evidences = columns
    if not len(steps) == len(categories) == len(evidences):  # type: ignore[arg-type]
        raise TraceError(f"expected as many entries in each of {', '.join(_FIELDS)}", str(path), where)
    for place, (step, category, evidence) in enumerate(zip(steps, categories, evidences, strict=True)):  # type: ignore[arg-type]
        if not _indices(step) or len(step) != 2:
            raise TraceError(f"expected [call, result], got {step!r}", str(path), f"{where}, {_FIELDS[0]}[{place}]")
        if category not in CATEGORIES:
            what = f"expected one of {', '.join(CATEGORIES)}, got {category!r}"
            raise TraceError(what, str(path), f"{where}, {_FIELDS[1]}[{place}]")
        if not _indices(evidence) or (len(evidence) > 1 and len(evidence) % 2):
            what = f"expected pairs of message indices, [message] or [-1], got {evidence!r}"
            raise TraceError(what, str(path), f"{where}, {_FIELDS[2]}[{place}]")
        yield Label(tuple(sorted(step)), category, evidence_key(tuple(evidence)))


def _indices(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(index, int) and not isinstance(index, bool) for index in value)
    )


@dataclass
class Agreement:
    """How an annotation agrees with a reference.

    Parameters
    ----------
    reference : int
        Redundant steps of the reference, in all of its trajectories.
    trajectories, covered : int
        Of the reference, and those of them that the annotation has, too.
    named : int
        Redundant steps of the annotation in covered trajectories.
    expected : int
        Of the reference in covered trajectories.
    matched, typed, evidenced, whole : int
        Steps that both name; of these with the same type, the same evidence, and both.
    shares : list of float
        Per covered trajectory with redundant steps: the share that was found with the right type.
    confusion : Counter
        (reference's type, annotation's type) of matched steps.
    identical : int
        Covered trajectories whose triplets are all the same.
    """

    reference: int = 0
    trajectories: int = 0
    covered: int = 0
    named: int = 0
    expected: int = 0
    matched: int = 0
    typed: int = 0
    evidenced: int = 0
    whole: int = 0
    shares: list[float] = field(default_factory=list)
    confusion: Counter[tuple[str, str]] = field(default_factory=Counter)
    identical: int = 0

    def add(self, reference: Sequence[Label], other: Sequence[Label] | None) -> None:
        """Take one trajectory of the reference into account; `other` is None where it is not covered."""
        self.reference += len(reference)
        self.trajectories += 1
        if other is None:
            return
        self.covered += 1
        self.expected += len(reference)
        self.named += len(other)
        self.identical += Counter(reference) == Counter(other)
        pairs = _matches(reference, other)
        typed = sum(a.category == b.category for a, b in pairs)
        self.matched += len(pairs)
        self.typed += typed
        self.evidenced += sum(a.evidence == b.evidence for a, b in pairs)
        self.whole += sum(a == b for a, b in pairs)
        self.confusion.update((a.category, b.category) for a, b in pairs)
        if reference:
            self.shares.append(typed / len(reference))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as fractions, None where they are over nothing."""
        precision, recall = _share(self.matched, self.named), _share(self.matched, self.expected)
        return {
            "precision": precision,
            "recall_idx": recall,
            "recall_idx_type": _share(self.typed, self.expected),
            "f1": None if not precision or not recall else 2 * precision * recall / (precision + recall),
            "partial_credit": _share(sum(self.shares), len(self.shares)),
            "type_accuracy": _share(self.typed, self.matched),
            "evidence_agreement": _share(self.evidenced, self.matched),
            "triplet_recall": _share(self.whole, self.expected),
            "end_to_end_recall": _share(self.matched, self.reference),
            "identical": _share(self.identical, self.covered),
            "coverage": _share(self.covered, self.trajectories),
            "steps": {
                "reference": self.reference,
                "covered": self.expected,
                "named": self.named,
                "matched": self.matched,
            },
            "trajectories": {"reference": self.trajectories, "covered": self.covered},
        }


def _share(top: float, bottom: float) -> float | None:
    return top / bottom if bottom else None


def _matches(reference: Sequence[Label], other: Sequence[Label]) -> list[tuple[Label, Label]]:
    """Return the steps that both name; where one is named more than once, the most alike go together."""
    left: dict[tuple[int, ...], list[Label]] = {}
    for label in other:
        left.setdefault(label.step, []).append(label)
    pairs: list[tuple[Label, Label]] = []
    for label in sorted(reference, key=lambda label: label not in left.get(label.step, ())):
        found = left.get(label.step)
        if found:
            best = max(found, key=lambda o: (o.category == label.category, o.evidence == label.evidence))
            found.remove(best)
            pairs.append((label, best))
    return pairs


def agree(reference: Annotation, other: Annotation) -> dict[str, Agreement]:
    """Return the agreement of all trajectories under "", and of each domain under its name.

    Parameters
    ----------
    reference, other : mapping
        As `load_annotation` gives. Trajectories that the reference does not have say nothing and are left out.
    """
    found = {"": Agreement()}
    for key, labels in reference.items():
        for part in {"", key[0]}:
            found.setdefault(part, Agreement()).add(labels, other.get(key))
    return found
