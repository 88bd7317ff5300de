"""Sentences on small handmade trajectories: true, grammatical, on one line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from redclf.reasons import explain
from redclf.relations.candidates import Candidate
from redclf.relations.features import relate
from redclf.relations.views import TrajectoryView
from redclf.taxonomy import ABNORMAL, CATEGORIES, DUPLICATED, EXPLORATORY, INCORRECT
from redclf.trajectory import Message, ToolCall, Trajectory

POLICY = "Make one tool call at a time, and do not respond to the user at the same time."


class Story:
    """Builds a trajectory message by message."""

    def __init__(self, policy: str = "") -> None:
        self.policy = policy
        self.messages: list[Message] = []

    def user(self, text: str) -> int:
        self.messages.append(Message("user", text))
        return len(self.messages) - 1

    def says(self, text: str) -> int:
        self.messages.append(Message("assistant", text))
        return len(self.messages) - 1

    def calls(self, *calls: tuple[str, dict[str, Any], Any], text: str = "") -> list[tuple[int, int]]:
        at = len(self.messages)
        made = tuple(ToolCall(name, arguments, f"{at}-{i}") for i, (name, arguments, _) in enumerate(calls))
        self.messages.append(Message("assistant", text, made))
        steps = []
        for call, (_, _, result) in zip(made, calls, strict=True):
            steps.append((at, len(self.messages)))
            content = result if isinstance(result, str) else json.dumps(result)
            self.messages.append(Message("tool", content, tool_call_id=call.id))
        return steps

    def call(self, name: str, arguments: dict[str, Any], result: Any, text: str = "") -> tuple[int, int]:
        return self.calls((name, arguments, result), text=text)[0]

    def reason(self, step: tuple[int, int], category: str, evidence: tuple[int, ...]) -> str:
        view = TrajectoryView(Trajectory("t", tuple(self.messages), policy=self.policy))
        ordinals = {(item.call_index, item.result_index): item.ordinal for item in view.steps}
        if evidence == (-1,):
            candidate = Candidate("policy", (), evidence)
        elif len(evidence) == 1:
            candidate = Candidate("message", evidence, evidence)
        else:
            members = tuple(ordinals[pair] for pair in zip(evidence[::2], evidence[1::2], strict=True))
            candidate = Candidate("step" if len(members) == 1 else "joint", members, evidence)
        return explain(relate(view), view.steps[ordinals[step]], category, candidate)


def test_the_same_call_again():
    story = Story()
    first = story.call("get_shelf", {"id": "S-1"}, {"id": "S-1", "books": 12})
    again = story.call("get_shelf", {"id": "S-1"}, {"id": "S-1", "books": 12})
    assert story.reason(again, DUPLICATED, first) == (
        "get_shelf at [0, 1] is the same call, made earlier with the same arguments and result, "
        "and nothing changed in between."
    )


def test_a_change_in_between_is_not_denied():
    story = Story()
    first = story.call("get_shelf", {"id": "S-1"}, {"id": "S-1", "books": 12})
    story.call("move_book", {"shelf": "S-1", "book": "B-2"}, {"done": True})
    again = story.call("get_shelf", {"id": "S-1"}, {"id": "S-1", "books": 11})
    assert "nothing changed" not in story.reason(again, DUPLICATED, first)


def test_a_change_elsewhere_is_named_as_one():
    story = Story()
    first = story.call("get_shelf", {"id": "S-1"}, {"id": "S-1", "books": 12})
    story.call("move_book", {"shelf": "S-9", "book": "B-2"}, {"done": True})
    again = story.call("get_shelf", {"id": "S-1"}, {"id": "S-1", "books": 12})
    assert story.reason(again, DUPLICATED, first).endswith("and the one change in between does not concern it.")


def test_another_tool_had_shown_it():
    story = Story()
    first = story.call("get_branch", {"name": "Harbour"}, {"shelf": {"id": "S-1", "books": 12}, "open": "9-17"})
    later = story.call("get_shelf", {"id": "S-1"}, {"id": "S-1", "books": 12})
    assert story.reason(later, DUPLICATED, first) == (
        "get_branch at [0, 1] had already returned everything that it brought, and nothing changed in between."
    )


def test_several_steps_together():
    story = Story()
    a = story.call("get_shelf", {"id": "S-1"}, {"total": "T-12"})
    b = story.call("get_shelf", {"id": "S-2"}, {"lent": "L-30"})
    both = story.call("get_branch", {"name": "Harbour"}, {"total": "T-12", "lent": "L-30"})
    assert story.reason(both, DUPLICATED, (*a, *b)) == (
        "Steps [0, 1] and [2, 3] together had already shown all of what it brought, and nothing changed in between."
    )


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("Error: the request timed out", "a time-out"),
        ('{"error": "too many requests"}', "a rate limit"),
        ("ConnectionError: connection refused", "a connection error"),
        ("503 Service Unavailable", "a service error"),
    ],
)
def test_a_retried_failure(result, words):
    story = Story()
    failed = story.call("renew", {"loan": "L-1"}, result)
    retry = story.call("renew", {"loan": "L-1"}, {"due": "2025-10-12"})
    assert story.reason(failed, ABNORMAL, retry) == f"It failed with {words}, and the same call succeeded at [2, 3]."


def test_a_search_that_led_nowhere():
    story = Story()
    empty = story.call("search", {"title": "Tides"}, [])
    hit = story.call("search", {"title": "Tides of Vellmar"}, [{"item": "B-90"}])
    story.call("place_hold", {"item": "B-90"}, {"hold": "H-1"})
    assert story.reason(empty, EXPLORATORY, hit) == (
        "It found nothing, and search at [2, 3] brought what place_hold at [4, 5] then uses."
    )


def test_values_that_nothing_uses():
    story = Story()
    aside = story.call("get_item", {"item": "B-1"}, {"shelf": "F-7", "isbn": "978-1"})
    hit = story.call("get_item", {"item": "B-2"}, {"shelf": "F-8"})
    story.says("It stands at F-8.")
    assert story.reason(aside, EXPLORATORY, hit) == (
        "No later call or reply uses the 2 new identifiers and numbers that it brought, "
        "and get_item at [2, 3] brought what the assistant then tells the user."
    )


def test_a_rejected_call_and_its_correction():
    story = Story()
    wrong = story.call("place_hold", {"item": "B-1", "branch": "East"}, "Error: unknown branch")
    right = story.call("place_hold", {"item": "B-1", "branch": "Harbour"}, {"hold": "H-1"})
    assert story.reason(wrong, INCORRECT, right) == (
        'It was rejected ("Error: unknown branch"), and place_hold was called again with branch = Harbour at [2, 3].'
    )


def test_parallel_calls_against_the_policy():
    story = Story(POLICY)
    steps = story.calls(("get_item", {"item": "B-1"}, {"a": 1}), ("get_item", {"item": "B-2"}, {"a": 2}))
    assert story.reason(steps[1], INCORRECT, (-1,)) == (
        "It is one of two calls in one message, against a policy that allows one at a time."
    )
    silent = Story()
    steps = silent.calls(("get_item", {"item": "B-1"}, {"a": 1}), ("get_item", {"item": "B-2"}, {"a": 2}))
    assert "policy that allows" not in silent.reason(steps[1], INCORRECT, (-1,))


def test_a_reply_beside_a_call_against_the_policy():
    story = Story(POLICY)
    step = story.call("get_item", {"item": "B-1"}, {"a": 1}, text="One moment.")
    assert "same message as a reply" in story.reason(step, INCORRECT, (-1,))


def test_arguments_that_the_user_gave_only_later():
    story = Story()
    story.user("Renew my loan, please.")
    guess = story.call("renew", {"loan": "L-77"}, {"due": "soon"})
    later = story.user("It is L-77.")
    assert story.reason(guess, INCORRECT, (later,)) == ("The user named l-77, which it used, only later (message 3).")


def test_what_the_user_had_said():
    story = Story()
    first = story.user("My card is LN-88.")
    step = story.call("find_card", {"name": "Mirela"}, {"card": "LN-88"})
    assert story.reason(step, DUPLICATED, (first,)) == "The user had already named ln-88 in message 0."


def test_an_unknown_tool():
    story = Story()
    step = story.call("fly", {}, "Error: Tool 'fly' not found.")
    assert story.reason(step, INCORRECT, (-1,)) == "It called fly, a tool that does not exist."


def test_its_own_result():
    story = Story()
    step = story.call("search", {"title": "Tides"}, [])
    assert story.reason(step, EXPLORATORY, (1,)) == "It found nothing, as its own result (1) shows."


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_category_with_every_evidence_is_one_sentence(category):
    story = Story(POLICY)
    story.user("Find\x1b[31m [bold]Tides[/bold] for card LN-1.")
    before = story.call("find\x07_card\n", {"card": "LN-1"}, {"member": "M-1", "card": "LN-1"})
    step = story.call("search", "not json", "plain \x1b[2J text 42")  # type: ignore[arg-type]
    after = story.call("search", {"title": "Tides"}, {"item": "B-1"})
    story.says("Found B-1.")
    story.user("Thanks, 42.")
    last = story.call("lend", {"item": "B-1"}, "")
    every = [before, after, last, (*before, *after), (-1,), *((index,) for index in range(len(story.messages)))]
    for evidence in every:
        text = story.reason(step, category, evidence)
        assert text.isprintable() and text.endswith(".") and not text.endswith("..")
        assert ", and ." not in text and "  " not in text
