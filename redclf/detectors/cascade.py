"""A cascade: a cheap detector decides, and only what it is unsure of goes to a dear one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from redclf.benchmark.data import GoldStep, LabelledTrajectory, Step
from redclf.benchmark.predictions import best_category
from redclf.detectors.base import Detector, Prediction, Retrieval
from redclf.detectors.endpoint import EndpointDetector
from redclf.llm.prompts import EVIDENCERET, STEPCLS
from redclf.llm.runner import Request
from redclf.llm.usage import Usage
from redclf.trajectory import Trajectory

#: Width of the band where none is given.
WIDTH = 0.3
_THRESHOLD = 0.5


class CascadeDetector(Detector):
    """Hands a band of the first detector's confidence over to the second.

    The width, from 0 (the first decides everything) to 1 (the second does), sets the band:

    - StepDet: probabilities of redundancy around the first's threshold `t` (0.5 for recorded results), from
      `t (1 - width)` to `t + (1 - t) width`. One step in it is enough for the second to be asked about the trajectory;
      its word counts for the steps in the band alone.
    - StepCls and EvidenceRet: answers whose probability is at most `width`.

    Where the second gives no usable answer, the first's stands.

    Parameters
    ----------
    first, second : Detector
    width : float
    """

    def __init__(self, first: Detector, second: Detector, width: float = WIDTH) -> None:
        self.first = first
        self.second = second
        self.width = width
        self.name = f"{first.name} + {second.name}, band {width:g}"
        self._memory: dict[Hashable, Any] = {}

    def at(self, width: float) -> CascadeDetector:
        """Return the same cascade with another width; the first detector's answers are shared."""
        other = CascadeDetector(self.first, self.second, width)
        other._memory = self._memory
        return other

    def prepare(self, items: Sequence[LabelledTrajectory], progress: Callable[[int], None] | None = None) -> None:
        """Get the second detector's answers on what is in the band."""
        self.first.prepare(items)
        if isinstance(self.second, EndpointDetector):
            self.second.prepare(items, progress, self._asks)
        else:
            self.second.prepare(items, progress)

    def planned(self, items: Sequence[LabelledTrajectory]) -> Iterable[Request]:
        """Return the requests of an evaluation that are known before the first answer."""
        return self.second.planned(items, self._asks) if isinstance(self.second, EndpointDetector) else ()

    def _asks(self, task: str, item: LabelledTrajectory, gold: GoldStep | None) -> bool:
        if gold is None:
            return bool(self._band(item.trajectory))
        if task == STEPCLS:
            return self._unsure(self._classified(item.trajectory, gold.step, gold.evidence))
        assert task == EVIDENCERET
        return self._retrieved(item.trajectory, gold.step).confidence <= self.width > 0

    def usage(self) -> Usage:
        """Return what the second detector's answers took."""
        return self.second.usage() if isinstance(self.second, EndpointDetector) else Usage()

    def detect(
        self, trajectory: Trajectory, threshold: float | None = None, top_k: int | None = None
    ) -> list[Prediction]:
        """Return the redundant steps, most confident first; a threshold holds for the first detector's share."""
        ours = self._detected(trajectory, threshold)
        band = self._band(trajectory)
        theirs = self._handed_over(trajectory) if band else None
        if theirs is not None:
            ours = [prediction for prediction in ours if prediction.step not in band]
            ours += [prediction for prediction in theirs if prediction.step in band]
        return sorted(ours, key=lambda prediction: -prediction.confidence)[:top_k]

    def classify(self, trajectory: Trajectory, step: Sequence[int], evidence: Sequence[int]) -> dict[str, float]:
        """Return the distribution over categories, given the evidence."""
        ours = self._classified(trajectory, step, evidence)
        return (self.second.classify(trajectory, step, evidence) if self._unsure(ours) else {}) or ours

    def retrieve(self, trajectory: Trajectory, step: Sequence[int]) -> Retrieval:
        """Return category and evidence."""
        return self._second_retrieval(trajectory, step) or self._retrieved(trajectory, step)

    def category(self, trajectory: Trajectory, step: Sequence[int]) -> dict[str, float]:
        """Return the distribution over categories, from whichever detector `retrieve` follows."""
        if self._second_retrieval(trajectory, step):
            return self.second.category(trajectory, step)
        ours: dict[str, float] = self._once(
            ("category", trajectory.id, *step), lambda: self.first.category(trajectory, step)
        )
        return ours

    def redundancy(self, trajectory: Trajectory) -> dict[Step, float] | None:
        """Return the probability of redundancy; in the band the second's, 0 for a step that it doesn't name."""
        ours = self._scores(trajectory)
        band = self._band(trajectory)
        theirs = self._handed_over(trajectory) if band else None
        if theirs is None:
            return ours
        named = {prediction.step: prediction.redundancy for prediction in theirs}
        return {step: named.get(step, 0.0) if step in band else p for step, p in ours.items()}

    def trained_on(self) -> frozenset[str]:
        """Return the hashes that either was trained on."""
        return self.first.trained_on() | self.second.trained_on()

    def _band(self, trajectory: Trajectory) -> frozenset[Step]:
        if self.width <= 0:
            return frozenset()
        middle = float(getattr(self.first, "threshold", _THRESHOLD))
        low, high = middle * (1 - self.width), middle + (1 - middle) * self.width
        return frozenset(step for step, p in self._scores(trajectory).items() if low <= p <= high)

    def _unsure(self, distribution: dict[str, float]) -> bool:
        best = best_category(distribution)
        return self.width > 0 and (best is None or distribution[best] <= self.width)

    def _second_retrieval(self, trajectory: Trajectory, step: Sequence[int]) -> Retrieval | None:
        if not self._retrieved(trajectory, step).confidence <= self.width > 0:
            return None
        found = self.second.retrieve(trajectory, step)
        return found if found.category else None

    def _handed_over(self, trajectory: Trajectory) -> list[Prediction] | None:
        records = getattr(self.second, "detect_records", None)
        if records is not None and records(trajectory) is None:
            return None
        return self.second.detect(trajectory)

    def _scores(self, trajectory: Trajectory) -> dict[Step, float]:
        def ask() -> dict[Step, float]:
            known = self.first.redundancy(trajectory)
            if known is not None:
                return known
            found = {prediction.step: prediction.redundancy for prediction in self.first.detect(trajectory)}
            return {item.step: found.get(item.step, 0.0) for item in trajectory.assistant_interactions}

        scores: dict[Step, float] = self._once(("redundancy", trajectory.id), ask)
        return scores

    def _detected(self, trajectory: Trajectory, threshold: float | None) -> list[Prediction]:
        found: list[Prediction] = self._once(
            ("detect", trajectory.id, threshold), lambda: self.first.detect(trajectory, threshold)
        )
        return found

    def _classified(self, trajectory: Trajectory, step: Sequence[int], evidence: Sequence[int]) -> dict[str, float]:
        found: dict[str, float] = self._once(
            ("classify", trajectory.id, *step, *evidence), lambda: self.first.classify(trajectory, step, evidence)
        )
        return found

    def _retrieved(self, trajectory: Trajectory, step: Sequence[int]) -> Retrieval:
        found: Retrieval = self._once(("retrieve", trajectory.id, *step), lambda: self.first.retrieve(trajectory, step))
        return found

    def _once(self, key: Hashable, ask: Callable[[], Any]) -> Any:
        if key not in self._memory:
            self._memory[key] = ask()
        return self._memory[key]
