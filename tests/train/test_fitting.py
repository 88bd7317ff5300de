from __future__ import annotations

import numpy as np
import pytest

from redclf.detectors.model_folder import Calibration
from redclf.runtime.fusion import Fusion
from train.fitting import choose_threshold, floor_logit, fusion_of, held_out_groups, load_tokenizer, platt
from train.recipe import Recipe


def test_platt_finds_scale_and_shift():
    rng = np.random.default_rng(0)
    true = rng.normal(size=8000) * 2
    labels = (rng.random(8000) < 1 / (1 + np.exp(-true))).astype(int)
    scale, shift = platt((true - 1.0) * 2.0, labels, np.ones(8000))
    assert scale == pytest.approx(0.5, abs=0.05) and shift == pytest.approx(1.0, abs=0.1)


def test_platt_without_data_changes_nothing():
    scale, shift = platt(np.zeros(0), np.zeros(0), np.zeros(0))
    assert scale == pytest.approx(1, abs=1e-3) and shift == pytest.approx(0, abs=1e-3)


def test_threshold_keeps_the_recall_that_is_asked_for():
    trip = [(3.0, 1.0, True, True), (-0.9, 1.0, True, False), (-0.95, 0.9, False, False), (-3.0, 0.1, False, False)]
    trajectories = [(1.0, trip)] * 10
    assert choose_threshold(trajectories, 1.0, 0.0, recall=0.4) > 0.285
    assert choose_threshold(trajectories, 1.0, 0.0, recall=0.9) < 0.285
    assert choose_threshold([], 1.0, 0.0, recall=0.5) == 0.5


def test_held_out_tasks_are_whole_and_of_every_domain(tiny_items):
    kept = held_out_groups(tiny_items, 0.25, seed=0)
    assert {domain for domain, _ in kept} == {item.domain for item in tiny_items}
    assert kept == held_out_groups(tiny_items[::-1], 0.25, seed=0)
    assert kept != held_out_groups(tiny_items, 0.25, seed=1)
    assert len(kept) == 4 * 2


def test_floor_and_calibration():
    assert 1 / (1 + np.exp(-floor_logit(Recipe(floor=0.02)))) == pytest.approx(0.02)
    assert Calibration(2.0, 1.0).logit(3.0) == 7.0


def test_tokenizer_neither_cuts_nor_pads():
    tokenizer = load_tokenizer("random-tiny")
    assert len(tokenizer.encode("word " * 1000, add_special_tokens=False).ids) == 1000


def test_fusion_is_redundancy_by_relations_and_the_categories_of_both():
    fusion = fusion_of(Recipe(text=0.5), Calibration(0.8, -0.1))
    assert fusion == Fusion((0.8, 0.0, 0.0, -0.1), (1.0, 0.0, 0.5))
    rows = np.zeros((2, 10))
    rows[:, 6 + 2] = 3.0
    cells = np.log(np.asarray([[0.3, 0.1], [0.05, 0.05], [0.2, 0.1], [0.1, 0.1]]))
    joined = np.exp(fusion.join(rows, [0, 1], cells))
    assert joined.sum() == pytest.approx(1.0) and joined.sum(axis=1).argmax() == 2
    assert np.exp(cells).sum(axis=1).argmax() == 0
    np.testing.assert_allclose(joined[:, 0] / joined[:, 1], np.exp(cells[:, 0] - cells[:, 1]))
    assert fusion.log_odds(rows, 2.0) == pytest.approx(1.5)
