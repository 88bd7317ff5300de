from __future__ import annotations

import numpy as np
import pytest

from redclf.relations.context import CONTEXT_NAMES, context_rows
from redclf.taxonomy import CATEGORIES, DUPLICATED, INCORRECT


def rows(p, categories=None, messages=None, tools=None):
    p = np.asarray(p, dtype=float)
    categories = np.zeros((len(p), 4)) if categories is None else np.asarray(categories)
    messages = list(range(len(p))) if messages is None else messages
    tools = ["look"] * len(p) if tools is None else tools
    found = context_rows(np.log(p / (1 - p)), categories, messages, tools)
    assert found.shape == (len(p), len(CONTEXT_NAMES)) and found.dtype == np.float32
    return [dict(zip(CONTEXT_NAMES, row, strict=True)) for row in found]


def test_no_steps():
    assert context_rows(np.zeros(0), np.zeros((0, 4)), [], []).shape == (0, len(CONTEXT_NAMES))


def test_a_step_alone_has_no_others():
    (found,) = rows([0.3])
    assert found["others_none"] == found["others_most"] == found["others_sum"] == 0
    for name in ("mates_mean", "mates_most", "like_mean", "like_incorrect_f", "previous", "next"):
        assert np.isnan(found[name])


def test_others_are_the_steps_of_other_messages():
    found = rows([0.1, 0.2, 0.4, 0.8], messages=[0, 0, 2, 4])
    assert found[0]["others_sum"] == found[1]["others_sum"] == pytest.approx(1.2)
    assert found[0]["others_most"] == pytest.approx(0.8) and found[3]["others_most"] == pytest.approx(0.4)
    assert found[3]["others_none"] == pytest.approx(np.log(0.9 * 0.8 * 0.6))
    assert found[0]["mates_mean"] == found[0]["mates_most"] == pytest.approx(0.2)
    assert np.isnan(found[2]["mates_mean"])


def test_largest_mate_is_another_than_oneself():
    found = rows([0.9, 0.5, 0.5, 0.1], messages=[3, 3, 3, 3])
    assert [row["mates_most"] for row in found] == pytest.approx([0.5, 0.9, 0.9, 0.9])


def test_like_steps_before_and_after():
    found = rows([0.1, 0.6, 0.2, 0.3], tools=["a", "b", "a", "a"])
    assert found[2]["like_before_sum"] == pytest.approx(0.1) and found[2]["like_after_sum"] == pytest.approx(0.3)
    assert found[0]["like_mean"] == pytest.approx(0.25) and np.isnan(found[1]["like_mean"])
    assert found[1]["like_before_sum"] == found[1]["like_after_sum"] == 0
    assert found[2]["previous"] == pytest.approx(0.6) and found[2]["next"] == pytest.approx(0.3)


def test_shares_are_weighted_by_redundancy():
    scores = np.full((3, 4), -20.0)
    scores[0, CATEGORIES.index(INCORRECT)] = scores[1, CATEGORIES.index(DUPLICATED)] = scores[2, 0] = 0.0
    found = rows([0.75, 0.25, 0.5], scores)
    assert found[2]["like_incorrect_f"] == pytest.approx(0.75) and found[2]["like_duplicated_f"] == pytest.approx(0.25)
    assert found[2]["others_incorrect_f"] == pytest.approx(0.75 / 1.1)
    shifted = rows([0.75, 0.25, 0.5], scores + 7.0)
    for a, b in zip(shifted, found, strict=True):
        np.testing.assert_allclose(list(a.values()), list(b.values()), rtol=1e-5)


def test_extreme_scores_stay_finite():
    found = context_rows(np.asarray([800.0, -800.0, 0.0]), np.zeros((3, 4)), [0, 0, 1], ["a", "a", "b"])
    assert not np.isinf(found).any()
