"""LightGBM models as ONNX tree ensembles, exact to the last split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import onnx
from onnx import TensorProto, helper

OPSET = 17
ML_OPSET = 3

_UNUSED_OF_LEAVES = (
    "nodes_featureids",
    "nodes_truenodeids",
    "nodes_falsenodeids",
    "nodes_missing_value_tracks_true",
)


def float32_below(threshold: float) -> float:
    """Return the greatest float32 that is not above a threshold.

    Features are float32, so `x <= threshold` holds for the same `x` as with the original.
    """
    with np.errstate(over="ignore"):
        value = np.float32(threshold)
    if float(value) > threshold:
        value = np.nextafter(value, np.float32(-np.inf))
    return float(value)


def to_onnx(booster: lgb.Booster, outputs: int) -> onnx.ModelProto:
    """Return a booster's raw scores as an ONNX model.

    Parameters
    ----------
    booster : lightgbm.Booster
        Numeric splits only.
    outputs : int
        Scores a row: 1, or the number of classes (trees take turns).

    Returns
    -------
    onnx.ModelProto
        Input `x` of shape (n, features), float32; output `scores` of shape (n, outputs).
    """
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "nodes_treeids nodes_nodeids nodes_featureids nodes_modes nodes_values nodes_truenodeids "
            "nodes_falsenodeids nodes_missing_value_tracks_true target_treeids target_nodeids target_ids "
            "target_weights"
        ).split()
    }
    dump = booster.dump_model()
    for tree_id, tree in enumerate(dump["tree_info"]):
        _add_tree(columns, tree_id, tree["tree_structure"], tree_id % outputs)
    attributes: dict[str, Any] = {
        "n_targets": outputs,
        "aggregate_function": "SUM",
        "post_transform": "NONE",
        **columns,
    }
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["scores"], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph(
        [node],
        "relations",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, booster.num_feature()])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, outputs])],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    )
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


def _add_tree(columns: dict[str, list[Any]], tree_id: int, root: dict[str, Any], target: int) -> None:
    stack: list[tuple[dict[str, Any], int]] = [(root, 0)]
    following = 1
    while stack:
        node, place = stack.pop()
        columns["nodes_treeids"].append(tree_id)
        columns["nodes_nodeids"].append(place)
        if "leaf_value" in node:
            for name in _UNUSED_OF_LEAVES:
                columns[name].append(0)
            columns["nodes_modes"].append("LEAF")
            columns["nodes_values"].append(0.0)
            columns["target_treeids"].append(tree_id)
            columns["target_nodeids"].append(place)
            columns["target_ids"].append(target)
            columns["target_weights"].append(float(node["leaf_value"]))
            continue
        if node["decision_type"] != "<=" or node["missing_type"] not in ("NaN", "None"):
            raise ValueError(f"expected numeric splits, got {node['decision_type']} with {node['missing_type']}")
        left, right = following, following + 1
        following += 2
        threshold = float(node["threshold"])
        # Without NaN in training, LightGBM takes NaN for 0.
        missing_left = bool(node["default_left"]) if node["missing_type"] == "NaN" else threshold >= 0.0
        columns["nodes_featureids"].append(int(node["split_feature"]))
        columns["nodes_modes"].append("BRANCH_LEQ")
        columns["nodes_values"].append(float32_below(threshold))
        columns["nodes_truenodeids"].append(left)
        columns["nodes_falsenodeids"].append(right)
        columns["nodes_missing_value_tracks_true"].append(int(missing_left))
        stack.append((node["left_child"], left))
        stack.append((node["right_child"], right))


def save_onnx(booster: lgb.Booster, outputs: int, path: Path) -> None:
    """Write a booster as ONNX."""
    onnx.save(to_onnx(booster, outputs), str(path))
