"""The LLM judge against the stand-in, through the benchmark's own evaluation."""

from __future__ import annotations

import json

import pytest
from stand_in import ODD, TRANSIENT, UNUSABLE, StandIn, by_digest, digest_of

from redclf.benchmark.evaluate import evaluate
from redclf.detectors.registry import create_detector
from redclf.errors import RedclfError
from redclf.llm.prompts import TASKS

pytest.importorskip("openai")


@pytest.fixture
def judge(tmp_path, tiny_root):
    made = []

    def make(server, **fields):
        config = {"model": "m", "base_url": server.base_url, "timeout": 2.0, "backoff": 0.001, **fields}
        path = tmp_path / "judge.yaml"
        path.write_text(json.dumps(config))
        made.append(create_detector(f"llm:{path}", None, tiny_root, tmp_path / "requests"))
        return made[-1]

    yield make
    for detector in made:
        detector.sender.close()


def expected_failures(server):
    """Digests of the prompts whose reply, as the stand-in gave it, holds nothing usable."""
    faults = {digest_of(body): server.fault(digest_of(body)) for body in server.bodies}
    return {digest for digest, fault in faults.items() if fault in UNUSABLE}


def test_all_faults_are_survived_and_the_totals_are_right(judge, tiny_items):
    items = tiny_items[::3]
    with StandIn(by_digest(TRANSIENT + ODD, share=1)) as server:
        detector = judge(server)
        detector.prepare(items)
        sent = server.received.total()
        scores = evaluate(detector, items).to_dict()
        assert server.received.total() == sent
    usage = detector.usage()
    steps = sum(len(item.gold) for item in items)
    assert usage.requests == len(server.received) == len(items) + 2 * steps
    assert set(server.answered.values()) == {1}
    assert usage.failed == len(expected_failures(server)) > 0
    assert (usage.input_tokens, usage.output_tokens) == (server.input_tokens, server.output_tokens)
    assert detector.sender.retried == sent - len(server.received) > 0
    assert not detector.unanswered()
    # What failed stays in the denominator.
    assert (scores["trajectories"], scores["stepcls"]["n"]) == (len(items), steps)
    assert server.most_at_a_time > 1


def test_the_answers_are_those_of_the_replies(judge, tiny_items):
    now = [None]
    with StandIn(lambda digest: now[0]) as server:
        detector = judge(server)
        for now[0], item in zip([None, *ODD], [item for item in tiny_items if item.gold], strict=False):
            usable, trajectory, gold = now[0] not in UNUSABLE, item.trajectory, item.gold[0]
            detector.prepare([item])
            assert (detector.detect_records(trajectory) is not None) == usable
            found = detector.detect(trajectory)
            assert len({p.step for p in found}) == len(found) == (4 if usable else 0)
            assert [p.confidence for p in found] == sorted((p.confidence for p in found), reverse=True)
            assert bool(detector.classify(trajectory, gold.step, gold.evidence)) == usable
            retrieved = detector.retrieve(trajectory, gold.step)
            assert (retrieved.evidence == (-1,)) == usable
            assert detector.category(trajectory, gold.step) == ({retrieved.category: 1.0} if usable else {})


def test_settings_change_the_prompt(judge, tiny_items, tiny_root):
    prompts = {}
    with StandIn() as server:
        for setting in ("default", "no-policy", "few-shot", "oracle-plan"):
            detector = judge(server, setting=setting)
            planned = list(detector.planned(tiny_items[:1]))
            assert {request.task for request in planned} == set(TASKS)
            prompts[setting] = detector.prompt(planned[0])[1]["content"]
        assert not server.received
    assert "<policy>" in prompts["default"] and "<policy>" not in prompts["no-policy"]
    assert prompts["few-shot"].count("<example>") == 4 and "<example>" not in prompts["default"]
    # The small benchmark lists no actions.
    assert prompts["oracle-plan"] == prompts["default"]


def test_fields_of_the_request(judge, tiny_items):
    with StandIn() as server:
        extra = {"reasoning_effort": "none"}
        detector = judge(server, temperature=None, output_field="max_completion_tokens", extra=extra)
        body = next(iter(detector.planned(tiny_items))).body
    assert "temperature" not in body and "max_tokens" not in body
    assert (body["max_completion_tokens"], body["reasoning_effort"]) == (32768, "none")


def test_a_missing_key_is_named(judge, tiny_items, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with StandIn() as server:
        detector = judge(server, key="NO_SUCH_KEY")
        with pytest.raises(RedclfError, match="environment variable NO_SUCH_KEY"):
            detector.detect(tiny_items[0].trajectory)
    assert not server.received


def test_a_setting_without_its_data(tmp_path):
    path = tmp_path / "judge.yaml"
    path.write_text("{model: m, base_url: 'http://x', setting: few-shot}")
    with pytest.raises(RedclfError, match="exemplar_data"):
        create_detector(f"llm:{path}", requests=tmp_path)
