from __future__ import annotations

import lightgbm as lgb
import numpy as np
import onnxruntime
import pytest

from train.trees import float32_below, save_onnx, to_onnx


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 6)).astype(np.float32)
    x[:, 1] = rng.integers(0, 6, 800)
    x[:, 2] = np.round(x[:, 2], 1)
    x[rng.random(x.shape) < 0.15] = np.nan
    x[:, 4] = rng.integers(0, 3, 800)
    x[:, 5] = rng.random(800)
    y = (np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1]) + x[:, 4] > 2).astype(int)
    return x, y


def fit(x, y, **more):
    settings = {"num_leaves": 15, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1, "deterministic": True, **more}
    return lgb.train(settings, lgb.Dataset(x, y), 40)


def scores(booster, outputs, x, tmp_path):
    save_onnx(booster, outputs, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    return session.run(None, {"x": x})[0]


def probes(booster, x):
    """Rows at and next to every threshold of every feature, with NaNs between them."""
    rows = [x]
    for feature in range(x.shape[1]):
        found = []
        stack = [tree["tree_structure"] for tree in booster.dump_model()["tree_info"]]
        while stack:
            node = stack.pop()
            if "split_feature" in node:
                stack += [node["left_child"], node["right_child"]]
                # LightGBM's own thresholds beside 0 (1e-35) and beyond all values are no value of a feature.
                if node["split_feature"] == feature and 1e-30 < abs(node["threshold"]) < 1e30:
                    found.append(np.float32(node["threshold"]))
        if not found:
            continue
        at = np.asarray(found, dtype=np.float32)
        for values in (at, np.nextafter(at, np.float32(np.inf)), np.nextafter(at, np.float32(-np.inf))):
            made = x[np.arange(len(values)) % len(x)].copy()
            made[:, feature] = values
            rows.append(made)
    return np.concatenate([*rows, np.full((1, x.shape[1]), np.nan, np.float32), np.zeros((1, x.shape[1]), np.float32)])


def test_binary(data, tmp_path):
    booster = fit(*data, objective="binary")
    x = probes(booster, data[0])
    np.testing.assert_allclose(
        scores(booster, 1, x, tmp_path)[:, 0], booster.predict(x, raw_score=True), rtol=2e-6, atol=2e-6
    )


def test_classes_take_turns(data, tmp_path):
    x, y = data
    booster = fit(x, y + (x[:, 4] > 1), objective="multiclass", num_class=3)
    x = probes(booster, x)
    np.testing.assert_allclose(
        scores(booster, 3, x, tmp_path), booster.predict(x, raw_score=True), rtol=2e-6, atol=2e-6
    )


def test_nan_where_training_had_none(data, tmp_path):
    """LightGBM then takes NaN for 0, on either side of the threshold."""
    x, y = data
    filled = np.nan_to_num(x)
    booster = fit(filled, y, objective="binary")
    x = probes(booster, x)
    np.testing.assert_allclose(
        scores(booster, 1, x, tmp_path)[:, 0], booster.predict(x, raw_score=True), rtol=2e-6, atol=2e-6
    )


def test_a_tree_without_splits(data, tmp_path):
    x, y = data
    booster = fit(np.zeros_like(x), y, objective="binary", boost_from_average=True)
    found = scores(booster, 1, x[:3], tmp_path)[:, 0]
    np.testing.assert_allclose(found, booster.predict(x[:3], raw_score=True), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("value", [0.1, 1.0, -0.1, 1e-40, 3.3333333333, 1e300, -1e300])
def test_float32_below(value):
    found = float32_below(value)
    assert found <= value and float(np.float32(found)) == found
    with np.errstate(over="ignore"):
        assert float(np.nextafter(np.float32(found), np.float32(np.inf))) > value


def test_categorical_splits_are_refused(data):
    x, y = data
    booster = lgb.train(
        {"objective": "binary", "verbose": -1, "num_threads": 1, "min_data_per_group": 1},
        lgb.Dataset(np.nan_to_num(x), y, categorical_feature=[4]),
        3,
    )
    if any("==" in str(tree) for tree in booster.dump_model()["tree_info"]):
        with pytest.raises(ValueError, match="expected numeric splits"):
            to_onnx(booster, 1)
