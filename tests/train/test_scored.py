from __future__ import annotations

import numpy as np
import pytest

from redclf.detectors.distribution import TargetScores
from redclf.relations.features import Relations
from redclf.relations.views import TrajectoryView
from redclf.taxonomy import CATEGORIES
from train.scored import ScoredDetector


def test_evidence_that_was_no_candidate_has_no_say(tiny_items):
    trajectory = tiny_items[0].trajectory
    relations = Relations(TrajectoryView(trajectory))
    rng = np.random.default_rng(0)
    scores = []
    for candidates in relations.candidates:
        cells = rng.normal(size=(4, len(candidates)))
        scores.append(TargetScores(0.0, cells - np.logaddexp.reduce(cells.ravel())))
    detector = ScoredDetector("kept", {trajectory.id: scores}, {trajectory.id: 0.5})
    step = trajectory.interactions[relations.targets[-1]].step
    known = {candidate.evidence for candidate in relations.candidates[-1]}
    steps = [item.step for item in trajectory.interactions if item.step != step]
    unknown = next(a + b for a in steps for b in steps if a < b and a + b not in known)
    marginal = np.exp(np.logaddexp.reduce(scores[-1].cells, axis=1))
    assert detector.classify(trajectory, step, unknown) == pytest.approx(dict(zip(CATEGORIES, marginal, strict=True)))
    column = scores[-1].cells[:, 0]
    given = np.exp(column - np.logaddexp.reduce(column))
    first = relations.candidates[-1][0].evidence
    assert detector.classify(trajectory, step, first) == pytest.approx(dict(zip(CATEGORIES, given, strict=True)))
