"""Prediction records of StepDet: validation, ranking and hits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol, runtime_checkable

from redclf.benchmark.data import GoldStep, Step, is_assistant_step, is_evidence
from redclf.detectors.base import Prediction
from redclf.taxonomy import CATEGORIES
from redclf.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a ranked prediction list; None stands for what is missing or malformed.

    Parameters
    ----------
    step : tuple of int or None
    category : str or None
    evidence : tuple of int or None
    confidence : float or None
        None where it is missing, no number, not finite or outside [0, 1].
    """

    step: Step | None
    category: str | None
    evidence: tuple[int, ...] | None
    confidence: float | None

    @property
    def valid(self) -> bool:
        """Whether the entry can hit at all."""
        return None not in (self.step, self.category, self.evidence, self.confidence)


@runtime_checkable
class RawDetector(Protocol):
    """A detector whose predictions are records that may be malformed, such as an LLM's."""

    def detect_records(self, trajectory: Trajectory) -> Sequence[object] | None:
        """Return the records as they came; None for a failed or unparsable reply."""


def parse_entry(record: object, trajectory: Trajectory) -> Entry:
    """Read one prediction record with the official field names.

    Nothing is repaired: a field that is malformed, or refers to what is not in the trajectory,
    becomes None. Bools are neither numbers nor indices.

    Parameters
    ----------
    record : object
        A mapping with `redundant_step_idx`, `redundant_step_type`, `evidence_step_idx`,
        `confidence`; anything else gives an entry of nothing but None.
    trajectory : Trajectory
    """
    fields: Mapping[str, Any] = record if isinstance(record, Mapping) else {}
    step = indices(fields.get("redundant_step_idx"))
    category = fields.get("redundant_step_type")
    evidence = indices(fields.get("evidence_step_idx"))
    return Entry(
        step=(step[0], step[1]) if step and is_assistant_step(trajectory, step) else None,
        category=category if isinstance(category, str) and category in CATEGORIES else None,
        evidence=evidence if evidence and is_evidence(trajectory, evidence) else None,
        confidence=as_probability(fields.get("confidence")),
    )


def entry_of(prediction: Prediction, trajectory: Trajectory) -> Entry:
    """Return a detector's prediction as an entry, validated in the same way."""
    return parse_entry(
        {
            "redundant_step_idx": prediction.step,
            "redundant_step_type": prediction.category,
            "evidence_step_idx": prediction.evidence,
            "confidence": prediction.confidence,
        },
        trajectory,
    )


def rank(entries: Iterable[Entry], disputed: frozenset[Step] = frozenset()) -> list[Entry]:
    """Order entries into StepDet's slots.

    Entries without a usable confidence come first (their slots never score), in their given order;
    then the others by descending confidence, ties in their given order. Entries for disputed steps
    are removed before slots are counted.
    """
    kept = [entry for entry in entries if entry.step is None or entry.step not in disputed]
    return sorted(kept, key=lambda e: -math.inf if e.confidence is None else -e.confidence)


def hits(ranked: Sequence[Entry], gold: Iterable[GoldStep]) -> list[bool]:
    """Return which slots hit: step, category and complete evidence as in `gold`.

    A repeated step keeps its slots, but only its first valid entry can hit.
    """
    keys = {(step.step, step.category, evidence_key(step.evidence)) for step in gold}
    used: set[Step] = set()
    result = []
    for entry in ranked:
        first = entry.valid and entry.step not in used
        if first and entry.step is not None and entry.evidence is not None:
            used.add(entry.step)
            result.append((entry.step, entry.category, evidence_key(entry.evidence)) in keys)
        else:
            result.append(False)
    return result


def precision_at(hit: Sequence[bool], k: int) -> float:
    """Return hits among the first `min(k, n)` slots, divided by `min(k, n)`; 0 without slots."""
    slots = hit[:k]
    return sum(slots) / len(slots) if slots else 0.0


def evidence_key(evidence: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return a key under which two evidences are equal if they are the same.

    The order of joined pairs is free, the order within a pair is not.
    """
    if len(evidence) == 1:
        return (tuple(evidence),)
    return tuple(sorted(tuple(evidence[i : i + 2]) for i in range(0, len(evidence), 2)))


def best_category(distribution: Mapping[str, float]) -> str | None:
    """Return the most probable category, ties by precedence; None for an empty distribution."""
    known = [category for category in CATEGORIES if category in distribution]
    return max(known, key=lambda category: distribution[category], default=None)


def indices(value: Any) -> tuple[int, ...] | None:
    """Return a list of whole numbers as a tuple; None for anything else. Bools are none."""
    if not isinstance(value, list | tuple):
        return None
    if not all(isinstance(i, Integral) and not isinstance(i, bool) for i in value):
        return None
    return tuple(int(i) for i in value)


def as_probability(value: Any) -> float | None:
    """Return a finite number in [0, 1] as a float; None for anything else. Bools are none."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    # A comparison with NaN is false, so this covers it.
    return number if 0.0 <= number <= 1.0 else None
