"""Jev against the stand-in, through the benchmark's own evaluation."""

from __future__ import annotations

import json

import pytest
from stand_in import ODD, TRANSIENT, StandIn, by_digest

from redclf.benchmark.evaluate import evaluate
from redclf.detectors.registry import create_detector
from redclf.taxonomy import CATEGORIES

pytest.importorskip("typesafe_sdk")


@pytest.fixture
def jev(tmp_path):
    made = []

    def make(server, **fields):
        config = {"base_url": server.root, "timeout": 2.0, "backoff": 0.001, **fields}
        path = tmp_path / "jev.yaml"
        path.write_text(json.dumps(config))
        made.append(create_detector(f"jev:{path}", requests=tmp_path / "requests"))
        return made[-1]

    yield make
    for detector in made:
        detector.sender.close()


def test_all_faults_are_survived_and_the_totals_are_right(jev, tiny_items):
    items = tiny_items[::3]
    with StandIn(by_digest(TRANSIENT + ODD, share=1)) as server:
        detector = jev(server, max_questions=3)
        detector.prepare(items)
        sent = server.received.total()
        scores = evaluate(detector, items).to_dict()
    usage = detector.usage()
    # What a failed first round leaves open may be asked later, and nothing twice.
    assert usage.requests == len(server.received)
    assert set(server.answered.values()) == {1}
    assert (usage.input_tokens, usage.output_tokens) == (server.input_tokens, server.output_tokens)
    assert usage.failed > 0 and detector.sender.retried > 0 and sent > len(items)
    assert scores["stepcls"]["n"] == sum(len(item.gold) for item in items)
    assert all(len(body["questions"]) <= 3 for body in server.bodies)


def test_an_evaluation_asks_nothing_that_was_not_prepared(jev, tiny_items):
    items = tiny_items[:6]
    with StandIn() as server:
        detector = jev(server)
        detector.prepare(items)
        sent = server.received.total()
        evaluation = evaluate(detector, items)
        assert server.received.total() == sent
    assert evaluation.to_dict()["localisation"]["ap"] > 0
    assert detector.usage().failed == 0


def test_answers(jev, tiny_items):
    item = next(item for item in tiny_items if len(item.gold) > 1)
    gold = item.gold[0]
    with StandIn() as server:
        detector = jev(server)
        given = detector.classify(item.trajectory, gold.step, gold.evidence)
        found = detector.retrieve(item.trajectory, gold.step)
        scores = detector.redundancy(item.trajectory)
        everything = detector.detect(item.trajectory, threshold=0.0)
        best = detector.detect(item.trajectory, threshold=0.0, top_k=1)
    assert set(given) == set(CATEGORIES) and sum(given.values()) == pytest.approx(1)
    assert found.category in CATEGORIES and found.evidence and 0 < found.confidence < 1
    assert set(scores) == {step.step for step in item.trajectory.assistant_interactions}
    assert {p.step for p in everything} == set(scores)
    assert all(p.confidence <= p.redundancy == scores[p.step] for p in everything)
    assert best[0].redundancy == max(scores.values())


def test_a_failed_reply_is_no_answer(jev, tiny_items):
    item = tiny_items[1]
    gold = item.gold[0]
    with StandIn(lambda digest: "empty") as server:
        detector = jev(server)
        assert detector.classify(item.trajectory, gold.step, gold.evidence) == {}
        assert detector.retrieve(item.trajectory, gold.step).evidence == ()
        assert detector.detect(item.trajectory) == []
        assert set(detector.redundancy(item.trajectory).values()) == {0.0}
    usage = detector.usage()
    assert usage.failed == usage.requests > 0
