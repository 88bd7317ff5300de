from __future__ import annotations

import numpy as np
import pytest

from redclf.errors import ModelError
from redclf.runtime.encoder import OnnxEncoder


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    made = []
    for _ in range(40):
        length = int(rng.integers(6, 120))
        ids = [101, *map(int, rng.integers(1000, 20_000, length)), 102]
        made.append((ids, length // 2))
    return made


@pytest.fixture(scope="module")
def encoder(tiny_model):
    return OnnxEncoder(tiny_model / "encoder.onnx", batch=8)


def test_outputs_in_the_order_of_the_pairs(encoder, pairs):
    found = encoder.score(pairs)
    assert found.shape == (40, 10) and np.isfinite(found).all()
    backwards = encoder.score(pairs[::-1])[::-1]
    np.testing.assert_allclose(found, backwards, atol=1e-4)


def test_a_pair_alone_scores_as_in_a_batch(encoder, pairs):
    together = encoder.score(pairs)
    for place in (0, 7, 39):
        np.testing.assert_allclose(encoder.score([pairs[place]])[0], together[place], atol=1e-4)


def test_segments_matter(encoder, pairs):
    ids, first = pairs[0]
    assert not np.array_equal(encoder.score([(ids, first)]), encoder.score([(ids, 1)]))


def test_no_pairs(encoder):
    assert encoder.score([]).shape == (0, 10)


def test_missing_model(tmp_path):
    with pytest.raises(ModelError, match="expected an ONNX model, found none"):
        OnnxEncoder(tmp_path / "encoder.onnx")
