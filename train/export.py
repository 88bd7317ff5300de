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
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from tokenizers import Tokenizer

from redclf import __version__
from redclf.benchmark.data import LabelledTrajectory
from redclf.detectors.model_folder import FORMAT
from redclf.hashing import trajectory_hash
from redclf.model.pair_encoder import PairEncoder
from redclf.runtime.encoder import feeds
from redclf.runtime.relation_scorer import feature_names
from redclf.taxonomy import CATEGORIES
from train.boosting import Boosting
from train.recipe import Recipe
from train.trees import save_onnx

OPSET = 17

#: Ends of the names of a layer's last product, and of the one of its attention.
_DOWN = "output/dense/MatMul"
_ATTENTION = "attention/output/dense/MatMul"


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
            module.eval().cpu(),
            example,
            str(path),
            input_names=names,
            output_names=["outputs"],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )


class _Samples(CalibrationDataReader):  # type: ignore[misc]
    """Pairs as ONNX Runtime's calibration asks for them, one at a time."""

    def __init__(self, pairs: Sequence[tuple[Sequence[int], int]]) -> None:
        self._feeds = iter([feeds([pair]) for pair in pairs])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._feeds, None)


def quantise_encoder(
    source: Path, target: Path, samples: Sequence[tuple[Sequence[int], int]], least: int = 10_000
) -> None:
    """Make a model's large matrix products int8, with activation scales that are fixed.

    Scales taken from each batch would move a pair's score with its neighbours. What the feed-forward part
    puts out has outliers that no fixed scale fits, so that product stays in fp32, its weights stored in
    fp16; so do embeddings, stored in int8 by row.

    Parameters
    ----------
    source, target : Path
        ONNX files.
    samples : sequence of (token ids, length of the first segment)
        Pairs that the scales are taken from.
    least : int
        Smaller weights stay as they are.
    """
    names = {node.name for node in onnx.load(str(source)).graph.node if node.op_type == "MatMul"}
    part = target.with_suffix(".part.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantize_static(
            str(source),
            str(part),
            _Samples(samples),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            reduce_range=True,  # sums of 8-bit products overflow on processors without VNNI
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["MatMul"],
            nodes_to_exclude=sorted(name for name in names if name.endswith(_DOWN) and not name.endswith(_ATTENTION)),
            extra_options={"MatMulConstBOnly": True},
        )
    model = onnx.load(str(part))
    part.unlink()
    _shrink(model.graph, least)
    onnx.checker.check_model(model)
    onnx.save(model, str(target))


def _shrink(graph: onnx.GraphProto, least: int) -> None:
    """Store the large weights that are left in fp32 in fewer bytes: int8 by row where they are looked up, else fp16."""
    weights = {
        tensor.name: tensor
        for tensor in graph.initializer
        if tensor.data_type == TensorProto.FLOAT and int(np.prod(tensor.dims)) >= least
    }
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if node.op_type == "Gather" and node.input[0] in weights:
            name, rows = node.input[0], f"{node.output[0]}_rows"
            _add_rows(graph, name, numpy_helper.to_array(weights[name]))
            nodes += [
                helper.make_node("Gather", [f"{name}_int8", node.input[1]], [rows], axis=0),
                helper.make_node("Cast", [rows], [f"{rows}_float"], to=TensorProto.FLOAT),
                helper.make_node("Gather", [f"{name}_scale", node.input[1]], [f"{rows}_scale"], axis=0),
                helper.make_node("Mul", [f"{rows}_float", f"{rows}_scale"], [node.output[0]]),
            ]
            continue
        for place, name in enumerate(node.input):
            if name in weights:
                half = numpy_helper.to_array(weights[name]).astype(np.float16)
                graph.initializer.append(numpy_helper.from_array(half, f"{name}_half"))
                nodes.append(helper.make_node("Cast", [f"{name}_half"], [f"{name}_full"], to=TensorProto.FLOAT))
                node.input[place] = f"{name}_full"
        nodes.append(node)
    used = {name for node in nodes for name in node.input}
    kept = {tensor.name: tensor for tensor in graph.initializer if tensor.name in used}
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(kept.values())


def _add_rows(graph: onnx.GraphProto, name: str, values: np.ndarray) -> None:
    """Add an embedding's int8 rows and their scales."""
    scale = np.abs(values).max(axis=1, keepdims=True) / 127.0
    scale = np.where(scale == 0, 1.0, scale).astype(np.float32)
    rounded = np.clip(np.round(values / scale), -127, 127).astype(np.int8)
    graph.initializer.append(numpy_helper.from_array(rounded, f"{name}_int8"))
    graph.initializer.append(numpy_helper.from_array(scale, f"{name}_scale"))


def write_config(
    folder: Path,
    recipe: Recipe,
    calibration: Mapping[str, Any],
    items: Sequence[LabelledTrajectory],
    encoder: Mapping[str, int] | None = None,
) -> None:
    """Write `config.json` and the hashes of the training part.

    Parameters
    ----------
    calibration : mapping
        Row of the ablation to its calibration, as `Fit.to_dict` gives.
    encoder : mapping, optional
        Attention heads, layers and hidden size of the encoder, where there is one.
    """
    config = {
        "format": FORMAT,
        "name": f"redclf-{recipe.name}",
        "version": __version__,
        "base": recipe.base,
        "partners": recipe.partners,
        "floor": recipe.floor,
        "partner_text": recipe.partner_text,
        **({} if encoder is None else {"encoder": dict(encoder)}),
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
