from __future__ import annotations

import numpy as np
import pytest
from traces import said, step, trace, user

from redclf.detectors.distribution import DistributionDetector, TargetScores, as_candidate, combine, log_softmax
from redclf.taxonomy import CATEGORIES, DUPLICATED

RUN = trace(
    user("go"),
    step("f", "x1", {"a": 1}),
    step("f", "x1", {"a": 1}),
    step("press", "on", requestor="user"),
    step("g", "y2"),
    said("done"),
)


class Fixed(DistributionDetector):
    """Random cells from a fixed seed, given log-odds."""

    name = "fixed"

    def __init__(self, logits=(-2.0, 2.0, 0.5)):
        super().__init__()
        self.logits = logits
        self.calls = 0

    def score(self, relations):
        self.calls += 1
        found = []
        for place, candidates in zip(relations.targets, relations.candidates, strict=True):
            rng = np.random.default_rng(place)
            at = {0: 0, 1: 1, 3: 2}[place]
            found.append(TargetScores(self.logits[at], log_softmax(rng.normal(size=(4, len(candidates))))))
        return found


def test_log_softmax_takes_large_scores():
    found = log_softmax(np.array([[1e4, 1e4], [-1e4, 0.0]]), axis=1)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0)


def test_combine_is_a_distribution_that_follows_its_parts():
    category, evidence, given = np.array([0.0, 3.0, 0.0, 0.0]), np.zeros((4, 3)), np.zeros((4, 3))
    evidence[1, 2] = 5.0
    cells = combine(category, evidence, given)
    assert np.exp(cells).sum() == pytest.approx(1.0)
    assert np.unravel_index(cells.argmax(), cells.shape) == (1, 2)


def test_combine_lets_the_candidate_speak_for_a_category():
    given = np.zeros((4, 3))
    given[2, 1] = 6.0
    cells = combine(np.zeros(4), np.zeros((4, 3)), given)
    assert cells[:, 1].argmax() == 2


def test_target_scores():
    cells = np.log(np.array([[0.1, 0.2], [0.5, 0.1], [0.05, 0.02], [0.02, 0.01]]))
    assert TargetScores(0.0, cells).redundancy == 0.5
    assert TargetScores(0.0, cells).best == (1, 0, pytest.approx(0.5))


class TestDetect:
    def test_threshold_and_order(self):
        found = Fixed().detect(RUN)
        assert [p.step for p in found] == sorted([p.step for p in found], key=lambda s: -next(
            p.confidence for p in found if p.step == s))  # fmt: skip
        assert {p.step for p in found} == {(3, 4), (7, 8)}
        assert all(0 <= p.confidence <= p.redundancy <= 1 for p in found)

    def test_all_with_threshold_zero(self):
        assert len(Fixed().detect(RUN, threshold=0.0)) == 3
        assert len(Fixed().detect(RUN, threshold=0.0, top_k=2)) == 2
        assert Fixed().detect(RUN, threshold=1.1) == [] and Fixed().detect(RUN, top_k=0) == []

    def test_fields(self):
        (found, *_) = Fixed().detect(RUN, threshold=0.8)
        assert found.interaction == 1 and found.tool == "f" and found.tokens > 0 and found.reason
        assert found.category in CATEGORIES

    def test_no_steps(self):
        assert Fixed().detect(trace(user("hello"))) == []


class TestClassify:
    def test_distribution_over_categories(self):
        detector = Fixed()
        for evidence in ((1, 2), (-1,), (0,), (5, 6)):
            found = detector.classify(RUN, (3, 4), evidence)
            assert list(found) == list(CATEGORIES) and sum(found.values()) == pytest.approx(1.0)

    def test_uses_the_cell_of_the_evidence(self):
        detector = Fixed()
        scores = detector.scores(RUN)
        at = [c.evidence for c in scores.relations.candidates[1]].index((1, 2))
        share = np.exp(scores.targets[1].cells[:, at])
        assert detector.classify(RUN, (3, 4), [1, 2])[DUPLICATED] == pytest.approx(
            share[CATEGORIES.index(DUPLICATED)] / share.sum()
        )

    def test_pairs_in_any_order_and_unseen_evidence(self):
        detector = Fixed()
        assert detector.classify(RUN, (7, 8), (1, 2, 3, 4)) == detector.classify(RUN, (7, 8), (3, 4, 1, 2))

    def test_evidence_that_names_nothing_falls_back_on_the_category(self):
        detector = Fixed()
        assert detector.classify(RUN, (3, 4), (1, 7)) == detector.category(RUN, (3, 4))

    def test_step_must_be_the_assistants(self):
        with pytest.raises(ValueError, match="the user's"):
            Fixed().classify(RUN, (5, 6), (1, 2))
        with pytest.raises(ValueError, match="expected the"):
            Fixed().retrieve(RUN, (1, 4))


def test_retrieve_is_the_best_cell():
    detector = Fixed()
    category, place, share = detector.scores(RUN).targets[1].best
    found = detector.retrieve(RUN, (3, 4))
    assert found.category == CATEGORIES[category] and found.confidence == share
    assert found.evidence == detector.scores(RUN).relations.candidates[1][place].evidence


def test_three_answers_agree():
    detector = Fixed()
    for found in detector.detect(RUN, threshold=0.0):
        kept = detector.retrieve(RUN, found.step)
        assert (kept.category, kept.evidence) == (found.category, found.evidence)


def test_a_trajectory_is_scored_once():
    detector = Fixed()
    detector.detect(RUN)
    detector.retrieve(RUN, (3, 4))
    assert detector.redundancy(RUN)[(1, 2)] < 0.5 and detector.calls == 1


@pytest.mark.parametrize(
    ("evidence", "kind", "members"),
    [((-1,), "policy", ()), ((0,), "message", (0,)), ((1, 2), "step", (0,)), ((1, 2, 3, 4), "joint", (0, 1))],
)
def test_as_candidate(evidence, kind, members):
    found = as_candidate(RUN, evidence)
    assert (found.kind, found.members, found.evidence) == (kind, members, evidence)


@pytest.mark.parametrize("evidence", [(), (99,), (-2,), (1, 4), (1, 2, 3), (1, 2, 3, 99)])
def test_no_candidate(evidence):
    assert as_candidate(RUN, evidence) is None
