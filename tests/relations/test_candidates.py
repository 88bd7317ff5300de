from __future__ import annotations

import pytest
from traces import chain, parallel, said, step, trace, user

from redclf.relations.candidates import MAX_JOINT, MAX_STEPS, POLICY, WINDOW, CandidateIndex, _around
from redclf.relations.views import TrajectoryView
from redclf.trajectory import Message, ToolCall, Trajectory


def index_of(*parts):
    return CandidateIndex(TrajectoryView(trace(*parts)))


def test_short_run_has_every_other_step_and_the_policy():
    index = index_of(user("go"), step("a", "1"), step("b", "2"), step("c", "3"))
    target = index.view.steps[1]
    assert index.steps(target) == [0, 2]
    found = index.all(target)
    assert found[-1] is POLICY
    assert [c.evidence for c in found if c.kind == "step"] == [(1, 2), (5, 6)]
    assert len({c.evidence for c in found}) == len(found)


def test_messages_around_the_target():
    index = index_of(
        user("one"),
        said("two"),
        step("a", "1"),
        said("four"),
        user("five"),
        step("b", "2"),
        said("eight"),
        user("nine"),
    )
    first, second = index.view.steps
    assert index.messages(first) == [0, 1, 3, 4, 5, 7, 8, 9]
    assert {0, 5, 7, 8, 9} <= set(index.messages(second))


def naive_messages(index, target):
    view = index.view
    call, result = target.call_index, target.result_index
    users, texts = view.user_texts, view.assistant_texts
    before = [i for i in users if i < call]
    chosen = set(before[-4:] + before[:1])
    chosen.update([i for i in users if i > result][:2])
    chosen.update([i for i in texts if i <= call][-2:])
    after = [i for i in texts if i > call]
    chosen.update(after[:5] + after[-1:])
    chosen.add(result)
    tools = [s.result_index for s in view.steps]
    chosen.update([i for i in tools if i > result][:2])
    chosen.update([i for i in tools if i < call][-1:])
    return sorted(chosen)


def late_results() -> Trajectory:
    """Results that come in another order than their calls, some of them much later."""
    calls = [Message("assistant", "", (ToolCall("f", {"n": n}, f"c{n}"),)) for n in range(6)]
    results = {n: Message("tool", f"r{n}", tool_call_id=f"c{n}") for n in range(6)}
    order = [calls[0], calls[1], results[1], user("x"), calls[2], results[0], said("y"), calls[3], calls[4]]
    return trace(user("go"), *order, results[4], results[2], said("z"), calls[5], results[3], results[5], user("end"))


@pytest.mark.parametrize("trajectory", [late_results(), chain(90, 3), chain(50)], ids=["late", "parallel", "chain"])
def test_messages_as_a_plain_search_finds_them(trajectory):
    index = CandidateIndex(TrajectoryView(trajectory))
    for target in index.view.steps:
        assert index.messages(target) == naive_messages(index, target)


@pytest.mark.parametrize("trajectory", [late_results(), chain(90, 3), chain(60)], ids=["late", "parallel", "chain"])
def test_earlier_steps_as_a_plain_search_finds_them(trajectory):
    index = CandidateIndex(TrajectoryView(trajectory))
    for target in index.view.steps:
        plain = [
            s
            for s in index.view.steps[: target.ordinal]
            if s.failure is None and s.assistant and s.result_index < target.call_index
        ]
        assert index._earlier(target) == plain[-MAX_STEPS:]


def test_around():
    assert _around([1, 3, 5, 7, 9], 5) == [1, 3, 7, 9]
    assert _around([1, 3, 5, 7, 9], 4, 1) == [3, 5]
    assert _around([], 4) == []


def test_joint_covers_what_no_step_covers_alone():
    index = index_of(
        user("go"),
        step("a", '{"id": "x1", "size": "s22"}'),
        step("b", '{"place": "y2", "wing": "w33"}'),
        step("c", "noise"),
        step("d", '{"id": "x1", "size": "s22", "place": "y2", "wing": "w33"}'),
    )
    sets = index.joint(index.view.steps[3])
    assert (0, 1) in sets and len(sets) <= MAX_JOINT + 1
    joint = next(c for c in index.all(index.view.steps[3]) if c.kind == "joint" and c.members == (0, 1))
    assert joint.evidence == (1, 2, 3, 4)


def test_joint_ignores_failures_and_steps_still_open():
    index = index_of(
        user("go"),
        step("a", "Error: x1 not found"),
        parallel(("b", {}, "x1 s22"), ("c", {}, "y2 w33"), ("d", {}, "x1 y2")),
    )
    assert index.joint(index.view.steps[3]) == []


def test_long_run_keeps_a_bounded_number():
    index = CandidateIndex(TrajectoryView(chain(400)))
    for target in index.view.steps[::40]:
        found = index.all(target)
        assert 20 < sum(c.kind == "step" for c in found) <= MAX_STEPS + 12
        assert target.ordinal not in index.steps(target)


def test_repeats_far_away_stay_candidates():
    index = CandidateIndex(TrajectoryView(chain(400)))
    target = index.view.steps[351]
    same = index.by_call[target.call_key]
    assert len(same) > 1 and same[0] < 351 - 2 * WINDOW
    assert {same[0], same[-1]} - {351} <= set(index.steps(target))
