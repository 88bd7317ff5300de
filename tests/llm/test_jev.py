from __future__ import annotations

import itertools
import json

import pytest
from scoring_helpers import make_trajectory
from traces import chain

from redclf.llm.jev import (
    MAX_CHOICES,
    NECESSARY,
    category_question,
    evidence_question,
    pack,
    read_choice,
    read_label,
    state_of,
    step_question,
)
from redclf.taxonomy import CATEGORIES

QUESTIONS = [category_question((n, n + 1)) for n in range(1, 80, 2)]


def test_questions():
    assert list(category_question((1, 2))["criteria"]) == list(CATEGORIES)
    assert "[5, 6]" in category_question((1, 2), (5, 6))["instructions"]
    assert list(step_question((1, 2))["criteria"]) == [NECESSARY, *CATEGORIES]


def test_evidence_candidates_are_choices():
    run = make_trajectory(4)
    labels = list(evidence_question(run, (3, 4))["criteria"])
    assert {"[1, 2]", "[5, 6]", "[0]", "[-1]"} <= set(labels)
    assert read_label("[1, 2, 5, 6]") == (1, 2, 5, 6)
    assert len(evidence_question(chain(400, 20), chain(400, 20).interactions[200].step)["criteria"]) <= MAX_CHOICES


def test_no_more_choices_than_allowed(monkeypatch):
    monkeypatch.setattr("redclf.llm.jev.MAX_CHOICES", 3)
    labels = list(evidence_question(make_trajectory(9), (3, 4))["criteria"])
    assert len(labels) == 3 and labels[-1] == "[-1]"


def sizes(bodies):
    return [len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()) for body in bodies]


@pytest.mark.parametrize(("most", "limit"), [(16, 10**6), (16, 6000), (3, 6000), (16, 2500)])
def test_packing_keeps_both_limits_and_every_question_in_order(most, limit):
    state = {"trajectory": "ü" * 50}
    bodies = list(pack("m", state, QUESTIONS, most, limit))
    assert [q for body in bodies for q in body["questions"].values()] == QUESTIONS
    assert all(len(body["questions"]) <= most and body["state"] == state for body in bodies)
    assert all(size <= limit for size in sizes(bodies))
    # Full: the next question would not have fitted.
    for body, following in itertools.pairwise(bodies):
        count = len(body["questions"])
        first = next(iter(following["questions"].values()))
        grown = {**body, "questions": {**body["questions"], f"q{count}": first}}
        assert count == most or sizes([grown])[0] > limit


def test_what_exceeds_the_limit_goes_alone_and_whole():
    state = {"trajectory": "x" * 9000}
    bodies = list(pack("m", state, QUESTIONS[:3], 16, 1000))
    assert [len(body["questions"]) for body in bodies] == [1, 1, 1] and bodies[0]["state"] == state


def test_state_holds_trajectory_policy_and_definitions():
    state = state_of(make_trajectory(2))
    assert set(state) == {"trajectory", "policy", "definitions"}
    assert [record["index"] for record in state["trajectory"]] == [0, 1, 2, 3, 4]
    assert all(name in state["definitions"] for name in CATEGORIES)


QUESTION = {"criteria": {"a": "", "b": ""}}


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ({"q": {"choice": "a", "probabilities": {"a": 0.8, "b": 0.2}}}, ("a", {"a": 0.8, "b": 0.2})),
        ({"q": {"choice": "b", "probabilities": {"a": 0.8, "b": 0.2}}}, ("b", {"b": 1.0})),
        ({"q": {"choice": "a", "probabilities": {"a": 7, "b": 0.2, "c": 1}}}, ("a", {"a": 1.0})),
        ({"q": {"choice": "a"}}, ("a", {"a": 1.0})),
        ({"q": {"choice": "c", "probabilities": {}}}, None),
        ({"q": {"choice": ["a"]}}, None),
        ({"q": "a"}, None),
        ({}, None),
        ("a", None),
    ],
)
def test_choices(reply, found):
    assert read_choice(reply, "q", QUESTION) == found
