import math

import pytest
from scoring_helpers import (
    gold_step,
    make_trajectory,
    record,
)

from redclf.benchmark.predictions import (
    Entry,
    best_category,
    evidence_key,
    hits,
    parse_entry,
    precision_at,
    rank,
)
from redclf.taxonomy import ABNORMAL, DUPLICATED, INCORRECT


def entries(*records):
    trajectory = make_trajectory(6)
    return [parse_entry(value, trajectory) for value in records]


def test_a_good_record_is_valid():
    assert entries(record()) == [Entry((3, 4), DUPLICATED, (1, 2), 0.9)]


@pytest.mark.parametrize("confidence", [None, "0.9", True, False, math.nan, math.inf, -0.1, 1.1, [0.5], 10**400])
def test_odd_confidence_is_none(confidence):
    assert entries(record(confidence=confidence))[0].confidence is None


@pytest.mark.parametrize("confidence", [0, 1, 0.0, 1.0])
def test_bounds_are_confidences(confidence):
    assert entries(record(confidence=confidence))[0].valid


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("step", None),
        ("step", [3]),
        ("step", [3, 4, 5]),
        ("step", [4, 3]),
        ("step", [3, 6]),
        ("step", ["3", "4"]),
        ("step", [3.0, 4.0]),
        ("step", [99, 100]),
        ("step", "3,4"),
        ("category", "Other Step"),
        ("category", 3),
        ("category", ["Duplicated Step"]),
        ("evidence", []),
        ("evidence", [True]),
        ("evidence", [-2]),
        ("evidence", [13]),
        ("evidence", [1, 2, 3]),
        ("evidence", [2, 1]),
        ("evidence", [1, 13]),
        ("evidence", None),
    ],
)
def test_malformed_fields_are_none(field, value):
    assert not entries(record(**{field: value}))[0].valid


@pytest.mark.parametrize("value", [None, "text", 3, [], [1, 2]])
def test_what_is_no_record_keeps_a_slot(value):
    assert entries(value) == [Entry(None, None, None, None)]


def test_a_users_step_is_no_step():
    trajectory = make_trajectory(3, requestors="aua")
    assert parse_entry(record((3, 4)), trajectory).step is None
    assert parse_entry(record((5, 6), evidence=(3, 4)), trajectory).valid


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ((1, 2, 3, 4), (3, 4, 1, 2), True),
        ((1, 2, 3, 4), (2, 1, 3, 4), False),
        ((1, 2, 3, 4), (1, 4, 3, 2), False),
        ((1, 2), (1, 2, 3, 4), False),
        ((1,), (1, 2), False),
        ((-1,), (-1,), True),
        ((1, 2, 1, 2), (1, 2), False),
    ],
)
def test_order_of_pairs_is_free_order_within_is_not(a, b, same):
    assert (evidence_key(a) == evidence_key(b)) is same


def test_rank_puts_odd_confidences_first_and_ties_in_order():
    ranked = rank(
        entries(
            record((1, 2), confidence=0.2),
            record((3, 4), confidence=0.8),
            record((5, 6), confidence=math.nan),
            record((7, 8), confidence=0.8),
            "no record",
        )
    )
    assert [entry.step for entry in ranked] == [(5, 6), None, (3, 4), (7, 8), (1, 2)]


def test_odd_confidence_takes_a_slot_that_never_scores():
    ranked = rank(entries(record((5, 6), confidence=None), record((3, 4), confidence=0.1)))
    hit = hits(ranked, [gold_step((3, 4)), gold_step((5, 6))])
    assert hit == [False, True]
    assert precision_at(hit, 1) == 0
    assert precision_at(hit, 5) == 0.5


def test_a_repeat_keeps_its_slot_and_only_the_first_valid_entry_hits():
    gold = [gold_step((3, 4))]
    right = record((3, 4), confidence=0.5)
    wrong = record((3, 4), category=INCORRECT, confidence=0.9)
    assert hits(rank(entries(right, right)), gold) == [True, False]
    # The first valid one was wrong: the second cannot make good for it.
    assert hits(rank(entries(right, wrong)), gold) == [False, False]
    # One that is not valid does not count as the first.
    broken = record((3, 4), evidence=[99], confidence=0.9)
    assert hits(rank(entries(right, broken)), gold) == [False, True]
    odd = record((3, 4), confidence=2)
    assert hits(rank(entries(right, odd)), gold) == [False, True]


def test_a_hit_needs_step_category_and_evidence():
    gold = [gold_step((9, 10), DUPLICATED, (1, 2, 3, 4))]
    assert hits(entries(record((9, 10), evidence=(3, 4, 1, 2))), gold) == [True]
    assert hits(entries(record((9, 10), evidence=(1, 2))), gold) == [False]
    assert hits(entries(record((7, 8), evidence=(1, 2, 3, 4))), gold) == [False]
    assert hits(entries(record((9, 10), ABNORMAL, (1, 2, 3, 4))), gold) == [False]


def test_disputed_steps_leave_no_slot():
    given = entries(record((3, 4), confidence=0.9), record((5, 6), confidence=0.8))
    assert [e.step for e in rank(given, frozenset({(3, 4)}))] == [(5, 6)]


def test_precision_at_divides_by_the_slots_there_are():
    assert precision_at([], 5) == 0
    assert precision_at([True, False], 1) == 1
    assert precision_at([True, False], 5) == 0.5
    assert precision_at([False] * 5 + [True] * 5, 5) == 0
    assert precision_at([False] * 5 + [True] * 6, 10) == 0.5


def test_best_category_breaks_ties_by_precedence():
    assert best_category({DUPLICATED: 0.5, INCORRECT: 0.5}) == INCORRECT
    assert best_category({}) is None
    assert best_category({"nonsense": 1.0}) is None
