import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoring_helpers import gold_step, make_trajectory, record

from redclf.benchmark.metrics import (
    COLUMNS,
    average_precision,
    detection_counts,
    expected_calibration_error,
    ratios,
    row,
)
from redclf.benchmark.predictions import parse_entry, rank
from redclf.taxonomy import INCORRECT


def count(records, gold, best=()):
    trajectory = make_trajectory(8)
    return detection_counts(
        rank(parse_entry(value, trajectory) for value in records),
        gold,
        [parse_entry(value, trajectory) for value in best],
    )


def test_counts_by_hand():
    # Slots: (5, 6) wrong category, (3, 4) hit, (3, 4) repeat, (7, 8) no gold, "prose" first.
    counts = count(
        [
            record((5, 6), INCORRECT, confidence=0.9),
            record((3, 4), confidence=0.8),
            record((3, 4), confidence=0.7),
            record((7, 8), confidence=0.6),
            "prose",
        ],
        [gold_step((3, 4)), gold_step((5, 6)), gold_step((9, 10))],
    )
    assert (counts.p1, counts.p5, counts.p10) == (0, 0.2, 0.2)
    # Distinct steps (5, 6), (3, 4), (7, 8), and the prose.
    assert (counts.predicted, counts.located, counts.triples) == (4, 2, 1)
    assert (counts.redundant, counts.steps, counts.ranked, counts.clean) == (3, 3, 1, 0)


def test_no_prediction_scores_0_and_its_best_candidate_beside():
    counts = count([], [gold_step((3, 4))], best=[record((3, 4), confidence=0.01)])
    assert (counts.p1, counts.p5, counts.p10) == (0, 0, 0)
    assert (counts.a1, counts.a5, counts.a10) == (1, 1, 1)
    assert counts.predicted == 0


def test_the_best_candidate_is_not_used_where_there_are_predictions():
    counts = count([record((7, 8))], [gold_step((3, 4))], best=[record((3, 4))])
    assert (counts.p1, counts.a1) == (0, 0)


def test_no_gold_counts_alarms_and_is_not_ranked():
    counts = count([record((3, 4)), record((5, 6)), None], [])
    assert (counts.ranked, counts.clean, counts.clean_alarms, counts.predicted) == (0, 1, 3, 3)


def test_an_invalid_entry_is_no_second_alarm_for_a_step_named_validly():
    counts = count([record((3, 4), confidence=None), record((3, 4))], [gold_step((3, 4))])
    assert (counts.predicted, counts.located, counts.triples) == (1, 1, 1)
    assert (counts.p1, counts.p5) == (0, 0.5)


def test_ratios_by_hand():
    one = count([record((3, 4)), record((7, 8), confidence=0.1)], [gold_step((3, 4))])
    two = count([], [gold_step((5, 6))])
    three = count([record((5, 6))], [])
    result = ratios(np.array([row(c) for c in (one, two, three)]).sum(axis=0))
    assert result["stepdet.p@1"] == 0.5
    assert result["stepdet.p@5"] == 0.25
    assert result["stepdet.mean"] == pytest.approx((0.5 + 0.25 + 0.25) / 3)
    assert result["localisation.precision"] == pytest.approx(1 / 3)
    assert result["localisation.recall"] == 0.5
    assert result["localisation.f1"] == pytest.approx(2 / 5)
    assert result["localisation.false_alarms_per_clean_trajectory"] == 1
    assert result["triple.precision"] == pytest.approx(1 / 3)


def test_undefined_ratios():
    nothing = ratios(np.zeros(len(COLUMNS)))
    assert all(np.isnan(value) for value in nothing.values())
    silent = ratios(np.array(row(count([], [gold_step((3, 4))]))))
    assert silent["localisation.precision"] == 0
    assert silent["triple.f1"] == 0
    assert np.isnan(silent["localisation.false_alarms_per_clean_trajectory"])


def test_average_precision_by_hand():
    # Ranked: hit, miss, hit: (1/1 + 2/3) / 2.
    assert average_precision([1, 0, 1], [0.9, 0.8, 0.7]) == pytest.approx(5 / 6)
    # All tied: the share of positives.
    assert average_precision([1, 0, 0, 1], [0.5] * 4) == 0.5
    assert np.isnan(average_precision([0, 0], [0.1, 0.2]))
    assert np.isnan(average_precision([], []))


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=40).filter(
        lambda rows: any(label and weight for label, _, weight in rows)
    )
)
@settings(max_examples=60, deadline=None)
def test_average_precision_is_scikit_learns(rows):
    metrics = pytest.importorskip("sklearn.metrics")
    labels, scores, weights = (np.array(column) for column in zip(*rows, strict=True))
    expected = metrics.average_precision_score(labels, scores, sample_weight=weights)
    assert average_precision(labels, scores, weights) == pytest.approx(expected)
    stacked = average_precision(labels, scores, np.stack([weights, weights]))
    assert stacked == pytest.approx([expected, expected])


def test_calibration_error_by_hand():
    # Bins of 1/15: 0.0 and 0.05 share the first (gap 0.5 - 0.025), 1.0 the last (gap 0).
    error = expected_calibration_error([0, 1, 1], [0.0, 0.05, 1.0])
    assert error == pytest.approx((2 * 0.475 + 0) / 3)
    assert np.isnan(expected_calibration_error([], []))
    assert expected_calibration_error([1, 0], [1.0, 0.0]) == 0
