"""Gradient boosting on the relations between steps: no text, no tokenizer."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from redclf.detectors.distribution import DistributionDetector, TargetScores
from redclf.detectors.model_folder import ModelFolder
from redclf.relations.features import Relations
from redclf.runtime.relation_scorer import RelationScorer


class RelationsDetector(DistributionDetector):
    """Scores steps by relations alone.

    Parameters
    ----------
    model : str or Path, optional
        Folder or name of a model; the shipped one by default.
    """

    name = "relations"

    def __init__(self, model: str | Path | None = None) -> None:
        super().__init__()
        self.folder = ModelFolder.open(model)
        self._scorer = RelationScorer(self.folder.path / "relations")
        self._calibration = self.folder.calibration()
        self.threshold = self._calibration.threshold

    def score(self, relations: Relations) -> list[TargetScores]:
        """Return the distribution of every target."""
        logits, cells = self._scorer.open(relations)
        return [
            TargetScores(self._calibration.logit(logit), partial(cells, place)) for place, logit in enumerate(logits)
        ]

    def trained_on(self) -> frozenset[str]:
        """Return the hashes of the training trajectories."""
        return self.folder.trained_on()
