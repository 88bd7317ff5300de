"""A detector over scores that a run has kept: how cross-validation is evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from redclf.detectors.distribution import DistributionDetector, TargetScores
from redclf.relations.features import Relations


class ScoredDetector(DistributionDetector):
    """Plays back distributions computed before.

    Parameters
    ----------
    name : str
    scores : mapping
        Trajectory id to the distributions of its targets.
    thresholds : mapping
        Trajectory id to the threshold of the fold's model.
    """

    def __init__(
        self, name: str, scores: Mapping[str, Sequence[TargetScores]], thresholds: Mapping[str, float]
    ) -> None:
        super().__init__()
        self.name = name
        self._scores = scores
        self._thresholds = thresholds

    def score(self, relations: Relations) -> list[TargetScores]:
        """Return the kept distributions; a candidate added since is given no say over the category."""
        key = relations.view.trajectory.id
        self.threshold = self._thresholds[key]
        found = list(self._scores[key])
        sizes = [len(candidates) for candidates in relations.candidates]
        if [target.cells.shape[1] for target in found] == sizes:
            return found
        raise NotImplementedError

    def classify(self, trajectory, step, evidence):  # type: ignore[no-untyped-def]
        """Return the category given the evidence; its marginal where the evidence was no candidate."""
        try:
            return super().classify(trajectory, step, evidence)
        except NotImplementedError:
            return self.category(trajectory, step)
