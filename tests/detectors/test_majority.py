from __future__ import annotations

from scoring_helpers import make_trajectory

from redclf.detectors.base import Retrieval
from redclf.detectors.majority import MajorityDetector
from redclf.taxonomy import EXPLORATORY


def test_always_the_same():
    run, detector = make_trajectory(3, requestors="aua"), MajorityDetector()
    assert detector.detect(run) == [] and detector.redundancy(run) is None
    assert detector.classify(run, (1, 2), (-1,))[EXPLORATORY] == 1
    assert detector.category(run, (1, 2)) == {EXPLORATORY: 1.0}
    assert detector.retrieve(run, (1, 2)) == Retrieval(EXPLORATORY, (5, 6), 0.0)
    assert detector.retrieve(run, (5, 6)) == Retrieval(EXPLORATORY, (-1,), 0.0)
