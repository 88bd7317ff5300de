from __future__ import annotations

import pytest
from scoring_helpers import RawScripted, Scripted, make_trajectory, prediction, record

from redclf.detectors.base import Retrieval
from redclf.detectors.cascade import CascadeDetector
from redclf.taxonomy import ABNORMAL, DUPLICATED, INCORRECT

RUN = make_trajectory(4)
SCORES = {(1, 2): 0.05, (3, 4): 0.45, (5, 6): 0.6, (7, 8): 0.95}


class First(Scripted):
    threshold = 0.5

    def classify(self, trajectory, step, evidence):
        return {DUPLICATED: 0.6, INCORRECT: 0.4}


def first():
    found = [prediction((5, 6), confidence=0.6), prediction((7, 8), confidence=0.9)]
    answers = {(3, 4): Retrieval(DUPLICATED, (1, 2), 0.4), (5, 6): Retrieval(DUPLICATED, (1, 2), 0.8)}
    return First({RUN.id: found}, retrievals=answers, scores=SCORES)


def second():
    found = [prediction((3, 4), ABNORMAL, confidence=0.7), prediction((1, 2), ABNORMAL, confidence=0.99)]
    answers = {step: Retrieval(ABNORMAL, (5, 6), 1.0) for step in SCORES}
    return Scripted({RUN.id: found}, classes=dict.fromkeys(SCORES, ABNORMAL), retrievals=answers)


@pytest.mark.parametrize(
    ("width", "steps"),
    [
        (0.0, [(7, 8), (5, 6)]),
        # Band from 0.45 to 0.55.
        (0.1, [(7, 8), (3, 4), (5, 6)]),
        # From 0.4 to 0.6: the second does not name (5, 6).
        (0.2, [(7, 8), (3, 4)]),
        (1.0, [(1, 2), (3, 4)]),
    ],
)
def test_the_second_decides_in_the_band_and_only_there(width, steps):
    cascade = CascadeDetector(first(), second(), width)
    assert [p.step for p in cascade.detect(RUN)] == steps
    assert cascade.redundancy(RUN)[7, 8] == (0.95 if width < 1 else 0.0)


@pytest.mark.parametrize(("width", "category"), [(0.0, DUPLICATED), (0.5, DUPLICATED), (0.6, ABNORMAL)])
def test_unsure_categories_go_to_the_second(width, category):
    found = CascadeDetector(first(), second(), width).classify(RUN, (3, 4), (1, 2))
    assert max(found, key=found.get) == category


def test_unsure_evidence_goes_to_the_second():
    cascade = CascadeDetector(first(), second(), 0.5)
    assert cascade.retrieve(RUN, (3, 4)).category == ABNORMAL
    assert cascade.category(RUN, (3, 4)) == {ABNORMAL: 1.0}
    assert cascade.retrieve(RUN, (5, 6)).category == DUPLICATED
    assert cascade.category(RUN, (5, 6)) == {DUPLICATED: 1.0}


def test_where_the_second_fails_the_first_stands():
    cascade = CascadeDetector(first(), RawScripted({RUN.id: None}), 1.0)
    assert [p.step for p in cascade.detect(RUN)] == [(7, 8), (5, 6)]
    assert cascade.redundancy(RUN) == SCORES
    assert cascade.classify(RUN, (3, 4), (1, 2)) == {DUPLICATED: 0.6, INCORRECT: 0.4}
    assert cascade.retrieve(RUN, (3, 4)).category == DUPLICATED
    assert RawScripted({RUN.id: [record()]}).detect_records(RUN)


def test_other_widths_share_the_answers_of_the_first():
    asked = []

    class Counted(First):
        def redundancy(self, trajectory):
            asked.append(trajectory.id)
            return SCORES

    cascade = CascadeDetector(Counted({RUN.id: []}), second(), 0.1)
    for width in (0.1, 0.5, 1.0):
        cascade.at(width).detect(RUN)
    assert asked == [RUN.id]
