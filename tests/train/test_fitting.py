from __future__ import annotations

import numpy as np
import pytest

from redclf.detectors.model_folder import Calibration
from redclf.runtime.fusion import Fusion
from train.data import Target
from train.fitting import choose_threshold, fit_fusion, floor_logit, held_out_groups, load_tokenizer, platt
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


def target(redundant: int, logit: float, category: int = 0) -> Target:
    cells = np.full((4, 2), np.log(0.125))
    return Target("t", 0, [[1], [2]], [1, 1], [0, 1], logit, cells, redundant, category, 0 if redundant else None, 1.0)


def test_fusion_trusts_whichever_is_right():
    rng = np.random.default_rng(0)
    targets, outputs = [], []
    for _ in range(400):
        redundant, category = int(rng.random() < 0.5), int(rng.integers(4))
        rows = np.zeros((2, 10))
        rows[:, 5] = 3.0 if redundant else -3.0
        rows[:, 6 + category] = 3.0
        targets.append(target(redundant, float(rng.normal()), category))
        outputs.append(rows)
    fusion = fit_fusion(outputs, targets, Calibration(0.8, -0.1))
    assert fusion.redundant == (0.8, 0.0, 0.0, -0.1)
    assert fusion.cells[2] > 0.5


def test_fusion_with_too_little_to_go_by_is_the_plain_sum():
    few = fit_fusion([np.zeros((2, 10))] * 5, [target(1, 0.0)] * 5, Calibration(0.8, -0.1))
    assert few == Fusion((0.8, 0.0, 0.0, -0.1))
