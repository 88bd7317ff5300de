"""Train on everything visible and export a model folder.

    python -m train.finetune --config configs/minilm.yaml --data ROOT [--data ROOT2] --output DIR

Resumable: relation scores, checkpoints and the encoder are kept under `DIR/work`. The folder loads
with `redclf detect --model DIR`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from redclf.runtime.encoder import Pair
from train.card import write_card
from train.command import clock_log, guarded, load_items
from train.export import (
    export_encoder,
    export_trees,
    quantise_encoder,
    save_tokenizer,
    write_config,
)
from train.fitting import Workshop, fit_encoder, floor_logit, relations_calibration
from train.provenance import header
from train.recipe import claim, load_recipe
from train.stacking import Scores, Stack

#: Pairs that the scales of the int8 encoder are taken from.
SAMPLES = 256


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="redclf train", description=__doc__.split("\n")[0])
    parser.add_argument("--config", required=True)
    parser.add_argument("--data", required=True, action="append", help="benchmark root; repeatable")
    parser.add_argument("--output", required=True, help="model folder to write")
    parser.add_argument("--metrics", help="results JSON of train.crossval, which the card quotes")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a config value")
    parser.add_argument(
        "--relations-only", action="store_true", help="no encoder: a folder for `--detector relations` alone"
    )
    options = parser.parse_args(arguments)
    return guarded(parser.prog, lambda: train(options))


def train(options: argparse.Namespace) -> None:
    """Train, calibrate and export."""
    recipe = load_recipe(options.config, options.set)
    items, folds = load_items(options.data)
    folder = Path(options.output)
    work = folder / "work"
    workshop = Workshop.open(recipe, items, clock_log, encoder=not options.relations_only)
    claim(work, recipe, workshop.digest)
    stack = Stack(
        workshop.originals, workshop.extra, folds, recipe.boosting, work / "relations", recipe.seed, clock_log
    )
    scores = stack.stacked(None)
    shape = None
    if options.relations_only:
        calibration: dict[str, Any] = {"relations": vars(relations_calibration(workshop, items, scores))}
    else:
        fit = fit_encoder(workshop, items, scores, work / "encoder")
        calibration = fit.to_dict()
        config = fit.module.encoder_config
        shape = {
            "attention_heads": int(config.num_attention_heads),
            "layers": fit.module.config.layers,
            "hidden": int(config.hidden_size),
        }
        save_tokenizer(workshop.tokenizer, folder)
        fit.module.save_pretrained(work / "encoder")
        export_encoder(fit.module, work / "encoder.fp32.onnx")
        samples = calibration_pairs(workshop, scores)
        quantise_encoder(work / "encoder.fp32.onnx", folder / "encoder.onnx", samples)
    export_trees(stack.model(frozenset()), folder / "relations")
    write_config(folder, recipe, calibration, items, shape)
    measured: Mapping[str, Any] = {}
    if options.metrics:
        measured = json.loads(Path(options.metrics).read_text(encoding="utf-8"))
    write_card(folder, recipe, header(items, recipe.seed, "train.finetune"), measured)
    clock_log(f"wrote {folder}")


def calibration_pairs(workshop: Workshop, scores: Mapping[str, Sequence[Scores]]) -> list[Pair]:
    """Return pairs of the training trajectories, as the encoder reads them, for the scales of int8."""
    floor = floor_logit(workshop.recipe)
    pairs: list[Pair] = []
    for target in workshop.targets(workshop.items, scores, lambda t, k, logit: logit > floor):
        pairs += zip(target.pairs, target.first, strict=True)
    return random.Random(workshop.recipe.seed).sample(pairs, min(SAMPLES, len(pairs)))


if __name__ == "__main__":
    sys.exit(main())
