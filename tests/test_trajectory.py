"""Pairing of calls and results, and what a trajectory offers."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redclf.trajectory import Message, ToolCall, Trajectory, pair_interactions


def call(*ids: str | None, requestor: str = "assistant") -> Message:
    calls = tuple(ToolCall("look", {"n": n}, i, requestor) for n, i in enumerate(ids))
    return Message(requestor, tool_calls=calls, requestor=requestor)


def result(call_id: str | None, requestor: str = "assistant") -> Message:
    return Message("tool", "ok", tool_call_id=call_id, requestor=requestor)


def steps(*messages: Message) -> list[tuple[int, int]]:
    return [item.step for item in pair_interactions(messages).interactions]


def test_pairs_by_id_not_by_adjacency():
    assert steps(call("a"), call("b"), result("b"), result("a")) == [(0, 3), (1, 2)]


def test_parallel_calls_share_the_call_message():
    messages = [call("a", "b", "c"), result("c"), result("a"), result("b")]
    pairing = pair_interactions(messages)
    assert [item.step for item in pairing.interactions] == [(0, 2), (0, 3), (0, 1)]
    assert [item.call.id for item in pairing.interactions] == ["a", "b", "c"]
    assert [item.ordinal for item in pairing.interactions] == [0, 1, 2]


def test_repeated_id_pairs_with_its_own_next_result():
    assert steps(call("a"), result("a"), call("a"), result("a")) == [(0, 1), (2, 3)]


def test_repeated_id_after_a_call_that_was_cut_off():
    pairing = pair_interactions([call("a"), call("a"), result("a")])
    assert [item.step for item in pairing.interactions] == [(1, 2)]
    assert pairing.unanswered_calls == (0,)


def test_same_id_twice_in_one_message_pairs_in_order():
    pairing = pair_interactions([call("a", "a"), result("a"), result("a")])
    assert [(item.step, item.call.arguments["n"]) for item in pairing.interactions] == [
        ((0, 1), 0),
        ((0, 2), 1),
    ]


def test_results_without_id_answer_open_calls_in_order():
    messages = [call(None, None), result(None), result(None), call(None), result(None)]
    assert steps(*messages) == [(0, 1), (0, 2), (3, 4)]


def test_result_without_id_skips_calls_answered_by_id():
    assert steps(call("a", "b"), result("a"), result(None)) == [(0, 1), (0, 2)]


def test_call_without_result_and_result_without_call_are_counted():
    pairing = pair_interactions([call("a", "b"), result("b"), result("x"), call("c")])
    assert [item.step for item in pairing.interactions] == [(0, 1)]
    assert pairing.orphan_results == (2,)
    assert pairing.unanswered_calls == (0, 3)


def test_result_before_its_call_is_an_orphan():
    pairing = pair_interactions([result("a"), call("a")])
    assert pairing.interactions == ()
    assert (pairing.orphan_results, pairing.unanswered_calls) == ((0,), (1,))


def test_message_never_answers_its_own_call():
    both = Message("tool", "ok", (ToolCall("look", {}, "a"),), tool_call_id="a")
    assert pair_interactions([both]).interactions == ()


def test_assistant_interactions_leave_out_the_user():
    messages = (call("a", requestor="user"), result("a", "user"), call("b"), result("b"))
    trajectory = Trajectory("t", messages)
    assert [item.requestor for item in trajectory.interactions] == ["user", "assistant"]
    assert [item.ordinal for item in trajectory.assistant_interactions] == [1]


def test_interaction_at():
    trajectory = Trajectory("t", (call("a"), result("a")))
    assert trajectory.interaction_at([0, 1]).call.id == "a"
    for step in ([1, 0], [0], [0, 1, 2], [5, 6]):
        with pytest.raises(ValueError, match="trajectory t"):
            trajectory.interaction_at(step)


@pytest.mark.parametrize(("reward", "failed"), [(None, False), (0.0, True), (1.0, False)])
def test_failed(reward, failed):
    assert Trajectory("t", (), reward=reward).failed is failed


@pytest.mark.parametrize("same", [None, "a"])
def test_many_parallel_calls_pair_in_linear_time(same):
    count = 30_000
    start = time.perf_counter()
    pairing = pair_interactions([call(*[same] * count), *[result(same)] * count])
    assert len(pairing.interactions) == count
    assert time.perf_counter() - start < 5


_ids = st.one_of(st.none(), st.sampled_from("abc"))
_messages = st.lists(
    st.one_of(
        st.lists(_ids, max_size=3).map(lambda ids: call(*ids)),
        _ids.map(result),
        st.just(Message("user", "hi")),
    ),
    max_size=25,
)


@given(_messages)
def test_every_call_and_result_is_used_exactly_once(messages):
    pairing = pair_interactions(messages)
    calls = sorted(i for i, message in enumerate(messages) for _ in message.tool_calls)
    results = [i for i, message in enumerate(messages) if message.role == "tool"]
    paired = pairing.interactions
    assert sorted([*(i.call_index for i in paired), *pairing.unanswered_calls]) == calls
    assert sorted([*(i.result_index for i in paired), *pairing.orphan_results]) == results
    assert [item.ordinal for item in paired] == list(range(len(paired)))
    for item in paired:
        assert item.call_index < item.result_index
        assert item.call in messages[item.call_index].tool_calls
        answered = messages[item.result_index].tool_call_id
        assert answered is None or answered == item.call.id


@given(st.permutations(range(6)), st.data())
def test_unique_ids_pair_in_any_order_of_results(order, data):
    cut = data.draw(st.integers(0, 6))
    messages = [call(*map(str, range(cut))), call(*map(str, range(cut, 6)))]
    messages += [result(str(i)) for i in order]
    expected = [(0 if i < cut else 1, 2 + order.index(i)) for i in range(6)]
    assert steps(*messages) == expected
