from __future__ import annotations

import pytest
from traces import chain, parallel, said, step, trace, user

from redclf.relations.candidates import POLICY, Candidate
from redclf.relations.features import Relations
from redclf.relations.views import TrajectoryView
from redclf.serialize import MAX_LENGTH, Serializer, markers, plain, step_call

WORDS: dict[str, int] = {}


def tokenize(text: str) -> list[int]:
    return [WORDS.setdefault(word, len(WORDS) + 100) for word in text.split()]


def words(ids) -> str:
    names = {place: word for word, place in WORDS.items()} | {1: "[CLS]", 2: "[SEP]"}
    return " ".join(names[i] for i in ids)


def serializer(*parts) -> Serializer:
    return Serializer(TrajectoryView(trace(*parts)), tokenize, 1, 2)


RUN = (
    user("water bed 1"),
    step("get_bed", '{"id": "bed 1"}', {"bed": 1}),
    step("get_bed", "Error: the request timed out", {"bed": 2}),
    said("now done"),
    user("thanks"),
)


def test_target_then_partner():
    made = serializer(*RUN)
    ids, first = made.pair(made.view.steps[0], Candidate("step", (1,), (3, 4)))
    assert words(ids[:first]) == (
        "[CLS] step after 1 like new failed user : water bed 1 get bed : 1 "
        "result : id : bed 1 assistant : now done [SEP]"
    )
    assert words(ids[first:]) == "get bed : 2 result : Error: the request timed out [SEP]"


def test_message_joint_and_policy():
    made = serializer(*RUN)
    target = made.view.steps[1]
    ids, first = made.pair(target, Candidate("message", (6,), (6,)))
    assert words(ids[first:]) == "user : thanks [SEP]" and words(ids[1:3]) == "message after"
    ids, first = made.pair(target, POLICY)
    assert words(ids[first:]) == "[SEP]" and words(ids[1:2]) == "policy"
    ids, first = made.pair(target, Candidate("joint", (0, 1), (1, 2, 3, 4)))
    assert words(ids[first:]).count("get bed") == 2


def test_markers():
    view = TrajectoryView(
        trace(
            user("go"),
            step("f", "1", {"x": 1}),
            step("f", "1", {"x": 1}),
            step("set_f", "2"),
            step("u", "3", requestor="user"),
        )
    )
    first = view.steps[0]
    assert markers(first, Candidate("step", (1,), (3, 4)), view.steps) == "step after 1 same equal"
    assert markers(view.steps[1], Candidate("step", (0,), (1, 2)), view.steps) == "step before 1 same equal"
    assert markers(first, Candidate("step", (2,), (5, 6)), view.steps) == "step after 2 other new write"
    assert markers(first, Candidate("step", (3,), (7, 8)), view.steps) == "step after 3 user other new"
    assert markers(first, Candidate("message", (2,), (2,)), view.steps) == "message own"
    assert markers(first, Candidate("message", (0,), (0,)), view.steps) == "message before"


def test_before_any_user_message_and_after_the_last_reply():
    made = serializer(step("f", "1"), step("g", "2"))
    assert words(made.target(made.view.steps[0])) == "f : result : 1"


def test_budget_holds_for_any_text():
    long = "word " * 100_000
    made = serializer(user(long), parallel(("t" * 500, {"a": long}, long), ("u", long, "\ud800" + long)), said(long))
    relations = Relations(made.view)
    for place, target in enumerate(made.view.steps):
        for candidate in relations.candidates[place]:
            ids, first = made.pair(target, candidate)
            assert len(ids) <= MAX_LENGTH and 0 < first < len(ids)
            assert ids[0] == 1 and ids[first - 1] == ids[-1] == 2


def test_a_piece_is_tokenised_once():
    calls: list[str] = []
    view = TrajectoryView(chain(30))
    made = Serializer(view, lambda text: calls.append(text) or [7], 1, 2)
    for _ in range(2):
        for target in view.steps:
            made.pair(target, Candidate("step", ((target.ordinal + 1) % 30,), (0, 0)))
    assert sum(text.startswith("result :") for text in calls) == 30


@pytest.mark.parametrize(
    ("arguments", "text"),
    [({"q": "a b"}, "f x : a b"), ({"q": 1, "r": [2]}, "f x : q : 1, r : 2"), ("raw", "f x : raw"), ({}, "f x :"),
     (None, "f x :"), ({"q": "\ud800"}, "f x : \ud800")],
)  # fmt: skip
def test_call_as_words(arguments, text):
    view = TrajectoryView(trace(user("go"), step("f_x", "1", arguments)))
    assert step_call(view.steps[0]).strip() == text


def test_plain_is_clipped():
    assert plain('{"a":\n  ["b"]}') == "a : b"
    assert len(plain("x" * 5_000_000)) == 400
