"""Export of a fit to a folder that loads by itself: config, trees, tokenizer, encoder, card."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from redclf import __version__
from redclf.benchmark.data import LabelledTrajectory
from redclf.detectors.model_folder import FORMAT
from redclf.hashing import trajectory_hash
from redclf.model.pair_encoder import PairEncoder
from redclf.runtime.relation_scorer import feature_names
from redclf.taxonomy import CATEGORIES
from train.boosting import Boosting
from train.fitting import Fit
from train.recipe import Recipe
from train.trees import save_onnx

OPSET = 17


def export_trees(boosting: Boosting, folder: Path) -> None:
    """Write the four tree ensembles."""
    folder.mkdir(parents=True, exist_ok=True)
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


def quantise_encoder(source: Path, target: Path, feeds: Sequence[Mapping[str, np.ndarray]]) -> None:
    """Quantise to int8, weights per channel, activations with fixed scales taken from `feeds`.

    Fixed scales, because dynamic ones depend on what else is in the batch.
    """
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.calibrate import CalibrationMethod
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._feeds = iter(feeds)

        def get_next(self) -> Any:
            return next(self._feeds, None)

    prepared = target.with_suffix(".prepared.onnx")
    quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
    quantize_static(
        str(prepared),
        str(target),
        Reader(),
        quant_format=QuantFormat.QDQ,
        op_types_to_quantize=["MatMul", "Gather"],
        per_channel=True,
        reduce_range=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        calibrate_method=CalibrationMethod.MinMax,
        extra_options={"MatMulConstBOnly": True, "WeightSymmetric": True},
    )
    prepared.unlink()


def write_config(folder: Path, recipe: Recipe, fit: Fit, items: Sequence[LabelledTrajectory]) -> None:
    """Write `config.json`, the tokenizer's companion data and the hashes of the training part."""
    config = {
        "format": FORMAT,
        "name": f"redclf-{recipe.name}",
        "version": __version__,
        "base": recipe.base,
        "partners": recipe.partners,
        "floor": recipe.floor,
        "calibration": {
            row: {"scale": value.scale, "shift": value.shift, "threshold": value.threshold}
            for row, value in fit.calibration.items()
        },
        "features": feature_names(),
        "recipe": recipe.to_dict(),
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    hashes = sorted({trajectory_hash(item.trajectory) for item in items})
    (folder / "trained_on.json").write_text(json.dumps(hashes) + "\n", encoding="utf-8")


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write `tokenizer.json`."""
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
