from __future__ import annotations

import copy
import json

import pytest

from redclf.detectors.heuristic import HeuristicDetector
from redclf.errors import RedclfError
from redclf.reduce import ClassifierReflector, DeleteReflector, Reducer, TruncateReflector, create_reflector


def turn(number, text, calls=1):
    made = [
        {"id": f"c{number}-{n}", "type": "function", "function": {"name": "look", "arguments": json.dumps({"n": n})}}
        for n in range(calls)
    ]
    answers = [{"role": "tool", "tool_call_id": call["id"], "content": text} for call in made]
    return [{"role": "assistant", "content": None, "tool_calls": made}, *answers]


LONG = "\n".join(f"line {n}: something of note {n * 7}" for n in range(80))


class Spy:
    """Shortens everything, and notes what it was asked."""

    def __init__(self):
        self.asked = []

    def reflect(self, trajectory, target, window):
        self.asked.append((target.call, window.start, len(trajectory.messages)))
        return dict.fromkeys((*target.results, 0), "short")


def loop(reducer, turns):
    """Return the messages after each step of a loop."""
    messages = [{"role": "user", "content": "go"}]
    seen = []
    for made in turns:
        messages = reducer([*messages, *made])
        seen.append(copy.deepcopy(messages))
    return seen


@pytest.mark.parametrize(("a", "b"), [(1, 0), (2, 1), (3, 2)])
def test_one_step_a_call_and_all_before_it_stays(a, b):
    spy = Spy()
    turns = [turn(n, LONG) for n in range(7)]
    seen = loop(Reducer(a, b, 100, spy), turns)
    for number, messages in enumerate(seen):
        changed = [n for n in range(7) if 2 * n + 2 < len(messages) and messages[2 * n + 2]["content"] == "short"]
        assert changed == list(range(max(number - a + 1, 0)))
        if number:
            # Only the step that is a steps old has changed; the user's message never does.
            before = seen[number - 1]
            different = [n for n, message in enumerate(before) if messages[n] != message]
            assert different == ([2 * (number - a) + 2] if number >= a else []) and messages[0]["content"] == "go"
    assert [call for call, _, _ in spy.asked] == [2 * n + 1 for n in range(7 - a)]
    assert all(start == max(call - 2 * b, 1) for call, start, _ in spy.asked)


def test_short_steps_and_small_savings_are_left_alone():
    spy = Spy()
    loop(Reducer(1, 0, 10_000, spy), [turn(n, LONG) for n in range(3)])
    assert spy.asked == []
    size = -(-len(LONG) // 4)
    reducer = Reducer(1, 0, size // 2, TruncateReflector(tokens=size - size // 4))
    messages = loop(reducer, [turn(n, LONG) for n in range(3)])[-1]
    assert messages[2]["content"] == LONG and reducer.kept == reducer.processed == 2 * size


def test_parallel_calls_are_one_step():
    messages = loop(Reducer(1, 0, 100, DeleteReflector()), [turn(0, LONG, 3), turn(1, LONG)])[-1]
    assert [m["content"] for m in messages[2:5]] == ["[result removed]"] * 3 and messages[-1]["content"] == LONG


def test_a_repeat_points_to_the_first():
    reducer = Reducer(1, 0, 50, ClassifierReflector(HeuristicDetector()))
    messages = loop(reducer, [turn(0, LONG), turn(1, LONG), turn(2, "other")])[-1]
    assert messages[2]["content"] == LONG
    assert "see messages 1 and 2" in messages[4]["content"] and reducer.kept < reducer.processed


def test_what_was_shown_before_points_there_without_a_detection():
    class Nothing(HeuristicDetector):
        def detect(self, trajectory, threshold=None, top_k=None):
            return []

    reducer = Reducer(1, 0, 50, ClassifierReflector(Nothing()))
    messages = loop(reducer, [turn(0, LONG), turn(1, f"new\n{LONG}"), turn(2, "other")])[-1]
    assert messages[4]["content"] == "new\n[80 lines as in message 2]"


def test_the_input_is_not_changed():
    given = [{"role": "user", "content": "go"}, *turn(0, LONG), *turn(1, LONG)]
    before = copy.deepcopy(given)
    assert Reducer(1, 0, 50, DeleteReflector())(given) != before and given == before


def test_a_history_that_was_changed_or_cut_is_refused():
    reducer = Reducer(1, 0, 50, DeleteReflector())
    first = reducer([{"role": "user", "content": "go"}, *turn(0, LONG)])
    second = [*first, *turn(1, LONG)]
    with pytest.raises(RedclfError, match="expected at least the 3 messages of the last call, got 2"):
        reducer(first[:2])
    with pytest.raises(RedclfError, match="expected message 2 as it was returned last time"):
        reducer([*first[:2], {**first[2], "content": "other"}, *turn(1, LONG)])
    # A refusal changes nothing: the right history is taken.
    assert reducer(second)[2]["content"] == "[result removed]"


@pytest.mark.parametrize("message", [{"role": "king"}, {"content": "x"}, 3, "ab", {"role": "tool", "tool_calls": [1]}])
def test_no_chat_messages(message):
    messages = [{"role": "user", "content": "go"}, message]
    with pytest.raises(RedclfError, match=r"reducer.*message 1.*expected"):
        Reducer(reflector=DeleteReflector())(messages)


@pytest.mark.parametrize("wrong", [{"a": 0}, {"b": -1}, {"theta": -1}, {"theta": 1.5}, {"a": True}])
def test_wrong_settings(wrong):
    with pytest.raises(ValueError, match="expected a whole number from"):
        Reducer(reflector=DeleteReflector(), **wrong)


def test_steps_that_were_left_out_are_caught_up():
    reducer = Reducer(1, 0, 50, DeleteReflector())
    turns = [turn(n, LONG) for n in range(4)]
    messages = reducer([{"role": "user", "content": "go"}, *turns[0], *turns[1], *turns[2], *turns[3]])
    assert [m["content"] for m in messages if m["role"] == "tool"] == ["[result removed]"] * 3 + [LONG]


def test_reflectors_by_name():
    assert isinstance(create_reflector("delete"), DeleteReflector)
    with pytest.raises(RedclfError, match="expected a reflector among classifier, none"):
        create_reflector("other")
