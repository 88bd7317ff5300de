"""The floor of every comparison: always the most frequent answer."""

from __future__ import annotations

from collections.abc import Sequence

from redclf.detectors.base import Detector, Prediction, Retrieval
from redclf.taxonomy import CATEGORIES, EXPLORATORY
from redclf.trajectory import Trajectory


class MajorityDetector(Detector):
    """Says Exploratory of every redundant step, and that its evidence is the assistant's next step.

    Exploratory is 63.5 % of the benchmark's redundant steps (arXiv 2605.29893, section 3.3). Most steps are
    necessary, so that it detects none.
    """

    name = "majority"

    def detect(
        self, trajectory: Trajectory, threshold: float | None = None, top_k: int | None = None
    ) -> list[Prediction]:
        """Return nothing: most steps are necessary."""
        return []

    def classify(self, trajectory: Trajectory, step: Sequence[int], evidence: Sequence[int]) -> dict[str, float]:
        """Return all probability on Exploratory."""
        return {category: float(category == EXPLORATORY) for category in CATEGORIES}

    def retrieve(self, trajectory: Trajectory, step: Sequence[int]) -> Retrieval:
        """Return Exploratory with the assistant's next step; `[-1]` after the last one."""
        call = trajectory.interaction_at(step).call_index
        later = (other for other in trajectory.assistant_interactions if other.call_index > call)
        following = next(later, None)
        return Retrieval(EXPLORATORY, (-1,) if following is None else following.step, 0.0)
