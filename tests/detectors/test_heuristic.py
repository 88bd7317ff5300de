from pathlib import Path

import pytest

from redclf.benchmark.data import load_benchmark
from redclf.benchmark.evaluate import evaluate
from redclf.detectors.heuristic import HeuristicDetector
from redclf.taxonomy import ABNORMAL, DUPLICATED, EXPLORATORY, INCORRECT
from redclf.trajectory import Message, ToolCall, Trajectory

DATA = Path(__file__).parents[2] / ".." / "shared" / "redundancybench"
DOWN = '{"error": "Network timeout: try again later"}'


def run(*steps, requestors=None):
    """Steps as (tool, argument, result), one message a call: [1, 2], [3, 4], ..."""
    messages = [Message("user", "please")]
    for number, (tool, argument, result) in enumerate(steps):
        by = (requestors or {}).get(number, "assistant")
        call = ToolCall(tool, {"x": argument}, f"c{number}", by)
        messages.append(Message(by, "", (call,)))
        messages.append(Message("tool", result, tool_call_id=f"c{number}"))
    return Trajectory("t", tuple(messages))


def found(trajectory, **options):
    return [(p.step, p.category, p.evidence) for p in HeuristicDetector().detect(trajectory, **options)]


def test_identical_steps_point_to_the_earliest():
    trajectory = run(("get", 1, "a"), ("get", 2, "a"), ("get", 1, "a"), ("get", 1, "a"))
    assert found(trajectory) == [
        ((5, 6), DUPLICATED, (1, 2)),
        ((7, 8), DUPLICATED, (1, 2)),
    ]


def test_another_result_is_no_duplicate():
    assert found(run(("get", 1, "a"), ("get", 1, "b"))) == []
    assert found(run(("get", 1, "a"), ("get", 1, "b"), ("get", 1, "a"))) == [((5, 6), DUPLICATED, (1, 2))]


def test_argument_order_is_free():
    one, two = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    trajectory = run(("get", one, "x"), ("get", two, "x"))
    assert found(trajectory) == [((3, 4), DUPLICATED, (1, 2))]


def test_retried_failures_point_to_the_first_success():
    trajectory = run(("get", 1, DOWN), ("put", 1, "x"), ("get", 1, DOWN), ("get", 1, "a"))
    assert found(trajectory) == [((1, 2), ABNORMAL, (7, 8)), ((5, 6), ABNORMAL, (7, 8))]


def test_a_failure_without_a_success_or_with_other_arguments_stays():
    assert found(run(("get", 1, DOWN), ("get", 2, "a"))) == []
    # Nothing replaces it, yet the second brought nothing new.
    assert found(run(("get", 1, DOWN), ("get", 1, DOWN))) == [((3, 4), DUPLICATED, (1, 2))]


def test_a_later_repeat_of_the_failure_has_no_retry():
    trajectory = run(("get", 1, DOWN), ("get", 1, "a"), ("get", 1, DOWN))
    assert found(trajectory) == [((1, 2), ABNORMAL, (3, 4)), ((5, 6), DUPLICATED, (1, 2))]


def test_calls_of_one_message_are_no_retries():
    calls = (ToolCall("get", {}, "a"), ToolCall("get", {}, "b"))
    messages = (
        Message("assistant", "", calls),
        Message("tool", DOWN, tool_call_id="a"),
        Message("tool", "fine", tool_call_id="b"),
    )
    assert found(Trajectory("t", messages)) == []


def test_the_users_steps_are_left_alone():
    assert found(run(("get", 1, "a"), ("get", 1, "a"), requestors={1: "user"})) == []


def test_threshold_and_top_k():
    trajectory = run(("get", 1, DOWN), ("get", 1, "a"), ("get", 1, "a"))
    assert len(found(trajectory)) == 2
    assert found(trajectory, top_k=1) == [((1, 2), ABNORMAL, (3, 4))]
    assert found(trajectory, threshold=0.93) == [((1, 2), ABNORMAL, (3, 4))]
    assert found(trajectory, threshold=1.0) == []
    assert found(run(("get", 1, "a")), threshold=0.0, top_k=1) == []


def test_predictions_explain_themselves():
    (one,) = HeuristicDetector().detect(run(("get", 1, "a"), ("get", 1, "a")))
    assert (one.interaction, one.tool) == (1, "get")
    assert "[1, 2]" in one.reason
    assert one.tokens > 0


def test_classify_and_retrieve_always_answer():
    detector = HeuristicDetector()
    trajectory = run(("get", 1, DOWN), ("get", 1, "a"), ("get", 1, "a"), ("put", 3, "z"))

    def best(step, evidence):
        distribution = detector.classify(trajectory, step, evidence)
        assert sum(distribution.values()) == pytest.approx(1)
        return max(distribution, key=distribution.get)

    assert best((1, 2), (3, 4)) == ABNORMAL
    assert best((5, 6), (3, 4)) == DUPLICATED
    assert best((3, 4), (7, 8)) == EXPLORATORY
    assert best((3, 4), (-1,)) == INCORRECT
    assert best((7, 8), (3, 4)) == INCORRECT
    assert detector.retrieve(trajectory, (1, 2)).evidence == (3, 4)
    following = detector.retrieve(trajectory, (3, 4))
    assert (following.category, following.evidence) == (EXPLORATORY, (5, 6))
    last = detector.retrieve(trajectory, (7, 8))
    assert (last.category, last.evidence) == (INCORRECT, (-1,))


@pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark's data is not beside the clone")
def test_on_the_benchmark():
    scores = evaluate(HeuristicDetector(), load_benchmark(DATA)).to_dict()
    # Every Abnormal step is a synthetic failure with a retry, so the rule must find them all.
    assert scores["by_category"][ABNORMAL]["triple"]["recall"] == 1
    assert scores["localisation"]["precision"] > 0.95
    assert 0.1 < scores["localisation"]["recall"] < 0.2
