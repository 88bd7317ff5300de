from __future__ import annotations

from pathlib import Path

import pytest
from api_rules import anthropic_faults, openai_faults
from traces import parallel, said, step, trace, user

from redclf.benchmark.data import load_benchmark
from redclf.detectors.base import Prediction
from redclf.detectors.heuristic import HeuristicDetector
from redclf.pruning import EVIDENCE, SOURCE, WRITE, apply_plan, choose, placeholder, plan_removal, prune
from redclf.readers.writing import to_chat
from redclf.relations.views import TrajectoryView
from redclf.taxonomy import DUPLICATED, EXPLORATORY, INCORRECT
from redclf.trajectory import Message, ToolCall, Trajectory

SHARED = Path(__file__).resolve().parents[1] / ".." / "shared"


def predicted(at, evidence, category=DUPLICATED, confidence=0.9):
    return Prediction(at, category, evidence, confidence, 0)


LOOKS = trace(user("go"), step("look", "a bed"), step("look", "a bed"), step("look", "a bed"), said("a bed"))


def test_a_step_goes_with_its_result():
    pruned, indices = prune(LOOKS, [predicted((3, 4), (1, 2)), predicted((5, 6), (1, 2))])
    assert pruned.messages == (*LOOKS.messages[:3], LOOKS.messages[7])
    assert indices == [0, 1, 2, None, None, None, None, 3]


def test_evidence_stays():
    choice = choose(LOOKS, [predicted((3, 4), (1, 2), confidence=0.6), predicted((5, 6), (3, 4), confidence=0.9)])
    assert [p.step for p in choice.removed] == [(5, 6)] and choice.kept == {(3, 4): EVIDENCE}
    # The less confident one would lose its evidence.
    choice = choose(LOOKS, [predicted((3, 4), (1, 2), confidence=0.9), predicted((5, 6), (3, 4), confidence=0.6)])
    assert [p.step for p in choice.removed] == [(3, 4)] and choice.kept == {(5, 6): EVIDENCE}


def test_joint_evidence_stays():
    both = predicted((5, 6), (1, 2, 3, 4))
    assert choose(LOOKS, [both, predicted((3, 4), (-1,), confidence=0.1)]).kept == {(3, 4): EVIDENCE}


def test_writes_stay_unless_asked():
    run = trace(
        user("go"), step("update_bed", "done", {"id": "b1"}), step("update_bed", "done", {"id": "b1"}), said("ok")
    )
    prediction = predicted((3, 4), (1, 2))
    assert choose(run, [prediction]).kept == {(3, 4): WRITE} and prune(run, [prediction])[0] == run
    assert choose(run, [prediction], writes=True).removed == (prediction,)


def test_a_write_that_failed_may_go():
    run = trace(
        user("go"), step("update_bed", "Error: no such bed", {"id": "b7"}), step("update_bed", "done", {"id": "b1"})
    )
    assert choose(run, [predicted((1, 2), (3, 4), INCORRECT)]).removed


def test_the_only_source_of_what_a_write_names_stays():
    ask, tell = step("search", "found bed_17 and bed_18"), step("update_bed", "done", {"id": "bed_17"})
    prediction = predicted((1, 2), (-1,), EXPLORATORY)
    assert choose(trace(user("go"), ask, tell), [prediction]).kept == {(1, 2): SOURCE}
    for other in (said("I found bed_17."), user("It is bed_17."), step("get", "bed_17 is free")):
        assert choose(trace(user("go"), ask, other, tell), [prediction]).removed
    assert choose(trace(user("go"), ask, tell, policy="Only bed_17 is ours."), [prediction]).removed
    twice = trace(user("go"), ask, step("search", "bed_17"), tell)
    choice = choose(twice, [prediction, predicted((3, 4), (-1,), EXPLORATORY)])
    assert [p.step for p in choice.removed] == [(1, 2)] and choice.kept == {(3, 4): SOURCE}


def test_parallel_calls_are_kept_apart():
    run = trace(user("go"), parallel(("a", {}, "1"), ("b", {}, "2"), ("c", {}, "3")), said("bye"))
    pruned, indices = prune(run, [predicted((1, 3), (-1,))])
    assert [call.name for call in pruned.messages[1].tool_calls] == ["a", "c"]
    assert [item.call.name for item in pruned.interactions] == ["a", "c"] and indices == [0, 1, 2, None, 3, 4]
    pruned, _ = prune(run, [predicted((1, n), (-1,)) for n in (2, 3, 4)])
    assert pruned.messages == (run.messages[0], run.messages[5])


def test_text_beside_a_call_stays():
    call = Message("assistant", "Let me look.", (ToolCall("look", {}, "c"),))
    run = trace(user("go"), call, Message("tool", "a bed", tool_call_id="c"), said("bye"))
    pruned, indices = prune(run, [predicted((1, 2), (-1,))])
    assert pruned.messages[1] == Message("assistant", "Let me look.") and indices == [0, 1, None, 2]


def test_a_line_in_place_of_the_result():
    pruned, indices = prune(LOOKS, [predicted((3, 4), (1, 2))], keep_place=True)
    assert indices == list(range(8)) and pruned.messages[4].content == placeholder(DUPLICATED, (1, 2))
    assert "messages 1 and 2" in pruned.messages[4].content
    assert [m for n, m in enumerate(pruned.messages) if n != 4] == [m for n, m in enumerate(LOOKS.messages) if n != 4]


@pytest.mark.parametrize(
    ("evidence", "where"),
    [((-1,), "the policy"), ((4,), "message 4"), ((1, 2, 5, 6), "messages 1 and 2 and messages 5 and 6")],
)
def test_placeholders_point(evidence, where):
    assert placeholder(EXPLORATORY, evidence) == f"[redundant step (exploratory), result removed: see {where}]"


def test_no_such_step():
    with pytest.raises(ValueError, match="expected the"):
        plan_removal(LOOKS, [(0, 1)])


def test_nothing_to_remove():
    assert prune(LOOKS, []) == (LOOKS, list(range(8)))


def gold_predictions(item):
    return [Prediction(s.step, s.category, s.evidence, 1.0, 0) for s in item.gold]


def lost_values(before: Trajectory, after: Trajectory) -> set[str]:
    """What a write names that something before it still showed before pruning, and nothing does after it."""

    def shown(run: Trajectory) -> list[tuple[tuple[str, str], frozenset[str], set[str]]]:
        view = TrajectoryView(run)
        found = []
        for step_view in view.steps:
            if step_view.write:
                seen: set[str] = set()
                for other in view.steps:
                    if other.result_index < step_view.call_index:
                        seen |= other.atoms
                for index, atoms in view.text_atoms.items():
                    if index < step_view.call_index:
                        seen |= atoms
                found.append((step_view.call_key, step_view.arg_ids, seen))
        return found

    lost: set[str] = set()
    known = {key: seen for key, _, seen in shown(after)}
    for key, named, seen in shown(before):
        if key in known:
            lost |= (named & seen) - known[key]
    return lost


def check(run: Trajectory, predictions) -> Trajectory:
    pruned, indices = prune(run, predictions)
    assert len(pruned.messages) == sum(index is not None for index in indices)
    # No fault that was not there before.
    assert len(openai_faults(to_chat(pruned)["messages"])) <= len(openai_faults(to_chat(run)["messages"]))
    assert len(anthropic_faults(pruned.messages)) <= len(anthropic_faults(run.messages))
    for index, message in zip(indices, run.messages, strict=True):
        if index is not None:
            assert pruned.messages[index].content == message.content
    return pruned


def test_small_benchmark_stays_valid(tiny_items):
    for item in tiny_items:
        check(item.trajectory, gold_predictions(item))
        check(item.trajectory, HeuristicDetector().detect(item.trajectory))


@pytest.mark.skipif(not (SHARED / "redundancybench").is_dir(), reason="needs the data of ../shared")
@pytest.mark.parametrize("name", ["redundancybench", "coding"])
def test_real_runs_stay_valid_and_keep_what_writes_use(name):
    removed = 0
    for item in load_benchmark(SHARED / name):
        predictions = gold_predictions(item)
        pruned = check(item.trajectory, predictions)
        removed += len(item.trajectory.interactions) - len(pruned.interactions)
        if name == "redundancybench":
            assert not lost_values(item.trajectory, pruned), item.id
    assert removed > 300


def test_apply_is_what_the_plan_says():
    plan = plan_removal(LOOKS, [(1, 2), (3, 4)])
    assert len(apply_plan(LOOKS, plan).messages) == 4 == sum(index is not None for index in plan.new_indices(8))
