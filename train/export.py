"""Export of a fit to a folder that loads by itself: config, trees, tokenizer, encoder, card."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from redclf import __version__
from redclf.benchmark.data import LabelledTrajectory
from redclf.detectors.model_folder import FORMAT
from redclf.hashing import trajectory_hash
from redclf.model.pair_encoder import PairEncoder
from redclf.runtime.relation_scorer import feature_names
from redclf.taxonomy import CATEGORIES
from train.boosting import Boosting
from train.recipe import Recipe
from train.trees import save_onnx

OPSET = 17


def export_trees(boosting: Boosting, folder: Path) -> None:
    """Write the tree ensembles of both passes."""
    folder.mkdir(parents=True, exist_ok=True)
    save_onnx(boosting.first.redundant, 1, folder / "first_redundant.onnx")
    save_onnx(boosting.first.category, len(CATEGORIES), folder / "first_category.onnx")
    save_onnx(boosting.redundant, 1, folder / "redundant.onnx")
    save_onnx(boosting.category, len(CATEGORIES), folder / "category.onnx")
    save_onnx(boosting.evidence, 1, folder / "evidence.onnx")
    save_onnx(boosting.given, len(CATEGORIES), folder / "given.onnx")


def export_encoder(module: PairEncoder, path: Path) -> None:
    """Write the encoder as fp32 ONNX with free batch size and length."""
    names = ["input_ids", "attention_mask", "token_type_ids"]
    example = tuple(torch.ones(2, 16, dtype=torch.long) for _ in names)
    axes = {name: {0: "batch", 1: "length"} for name in names} | {"outputs": {0: "batch"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(),
            example,
            str(path),
            input_names=names,
            output_names=["outputs"],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )


def quantise_encoder(source: Path, target: Path, least: int = 10_000) -> None:
    """Store large weights in int8, a scale a column (a row for embeddings); computation stays fp32.

    Activations are left alone, because scales of theirs that fit one batch would move the scores of
    another, and fixed ones cost more accuracy than this encoder has to spare.

    Parameters
    ----------
    source, target : Path
        ONNX files.
    least : int
        Smaller weights stay as they are.
    """
    model = onnx.load(str(source))
    graph = model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        name = node.input[1] if node.op_type == "MatMul" else node.input[0] if node.op_type == "Gather" else ""
        tensor = weights.get(name)
        if tensor is None or len(tensor.dims) != 2 or int(np.prod(tensor.dims)) < least:
            nodes.append(node)
            continue
        axis = 1 if node.op_type == "MatMul" else 0
        _add_int8(graph, name, numpy_helper.to_array(tensor), axis)
        if node.op_type == "MatMul":
            if not any(made.output[0] == f"{name}_restored" for made in nodes):
                nodes.append(
                    helper.make_node(
                        "DequantizeLinear", [f"{name}_int8", f"{name}_scale"], [f"{name}_restored"], axis=axis
                    )
                )
            node.input[1] = f"{name}_restored"
            nodes.append(node)
            continue
        rows, scales = f"{node.output[0]}_rows", f"{node.output[0]}_scales"
        nodes += [
            helper.make_node("Gather", [f"{name}_int8", node.input[1]], [rows], axis=0),
            helper.make_node("Cast", [rows], [f"{rows}_float"], to=TensorProto.FLOAT),
            helper.make_node("Gather", [f"{name}_scale_column", node.input[1]], [scales], axis=0),
            helper.make_node("Mul", [f"{rows}_float", scales], [node.output[0]]),
        ]
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(kept)
    onnx.checker.check_model(model)
    onnx.save(model, str(target))


def _add_int8(graph: onnx.GraphProto, name: str, values: np.ndarray, axis: int) -> None:
    """Add a weight's int8 form and its scales, once."""
    if any(tensor.name == f"{name}_int8" for tensor in graph.initializer):
        return
    scale = np.abs(values).max(axis=1 - axis, keepdims=True) / 127.0
    scale = np.where(scale == 0, 1.0, scale).astype(np.float32)
    rounded = np.clip(np.round(values / scale), -127, 127).astype(np.int8)
    graph.initializer.append(numpy_helper.from_array(rounded, f"{name}_int8"))
    graph.initializer.append(numpy_helper.from_array(scale.reshape(-1), f"{name}_scale"))
    if axis == 0:
        graph.initializer.append(numpy_helper.from_array(scale, f"{name}_scale_column"))


def write_config(
    folder: Path, recipe: Recipe, calibration: Mapping[str, Any], items: Sequence[LabelledTrajectory]
) -> None:
    """Write `config.json` and the hashes of the training part.

    Parameters
    ----------
    calibration : mapping
        Row of the ablation to its calibration, as `Fit.to_dict` gives.
    """
    config = {
        "format": FORMAT,
        "name": f"redclf-{recipe.name}",
        "version": __version__,
        "base": recipe.base,
        "partners": recipe.partners,
        "floor": recipe.floor,
        "partner_text": recipe.partner_text,
        "calibration": dict(calibration),
        "features": feature_names(),
        "recipe": recipe.to_dict(),
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    hashes = sorted({trajectory_hash(item.trajectory) for item in items})
    (folder / "trained_on.json").write_text(json.dumps(hashes) + "\n", encoding="utf-8")


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write `tokenizer.json`."""
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
