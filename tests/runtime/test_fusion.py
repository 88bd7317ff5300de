"""Late fusion of relations and text."""

from __future__ import annotations

import numpy as np
import pytest

from redclf.detectors.distribution import log_softmax
from redclf.runtime.fusion import UNREAD, Fusion, text_alone, text_categories


def cells(seed: int = 0) -> np.ndarray:
    return log_softmax(np.random.default_rng(seed).normal(size=(4, 5)))


def test_a_silent_encoder_changes_nothing():
    before = cells()
    silent = np.zeros((2, 10))
    assert Fusion().log_odds(silent, 0.7) == pytest.approx(0.7)
    np.testing.assert_allclose(Fusion().join(silent, [3, 1], before), before, atol=1e-12)


def test_the_residual_goes_to_the_cells_that_were_read():
    before = cells(1)
    outputs = np.zeros((2, 10))
    outputs[0, 0], outputs[1, 0] = 1.0, 3.0
    outputs[0, 1 + 2] = 4.0
    assert Fusion().log_odds(outputs, -1.0) == pytest.approx(1.0)
    fused = Fusion().join(outputs, [3, 1], before)
    assert np.exp(fused).sum() == pytest.approx(1.0)
    assert fused[2, 3] - fused[2, 0] == pytest.approx(4.0 + before[2, 3] - before[2, 0])


def test_the_texts_categories_reach_candidates_that_were_not_read():
    before = log_softmax(np.zeros((4, 5)))
    outputs = np.zeros((2, 10))
    outputs[:, 6 + 1] = 5.0
    fused = Fusion(cells=(1.0, 0.0, 1.0)).join(outputs, [0, 1], before)
    np.testing.assert_allclose(np.exp(fused).sum(axis=1), np.exp(text_categories(outputs)), atol=1e-9)
    assert np.exp(fused)[1, 4] > np.exp(before)[1, 4]


def test_every_weight_counts():
    outputs = np.zeros((1, 10))
    outputs[0, 0], outputs[0, 5] = 2.0, 5.0
    fusion = Fusion(redundant=(0.5, 3.0, 0.1, -1.0))
    assert fusion.log_odds(outputs, 4.0) == pytest.approx(0.5 * 4 + 3 * 2 + 0.1 * 5 - 1)


def test_weights_survive_a_config():
    fusion = Fusion((0.9, 1.1, 0.2, -0.3), (0.8, 1.2, 0.4))
    assert Fusion.from_dict({"redundant": list(fusion.redundant), "cells": list(fusion.cells)}) == fusion


@pytest.mark.parametrize(
    "values", [{}, {"redundant": [1, 1, 0], "cells": [1, 1, 0]}, {"redundant": [1] * 4, "cells": ["x"]}]
)
def test_wrong_weights_are_refused(values):
    with pytest.raises((KeyError, ValueError)):
        Fusion.from_dict(values)


def test_text_alone_gives_unread_candidates_nothing():
    outputs = np.zeros((2, 10))
    outputs[:, 5] = [1.0, 3.0]
    logit, found = text_alone(outputs, [2, 0], 4)
    assert logit == pytest.approx(2.0)
    assert np.exp(found[:, [0, 2]]).sum() == pytest.approx(1.0)
    assert found[:, 1].max() < UNREAD / 2
