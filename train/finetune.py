"""Train on everything visible and export a model folder.

    python -m train.finetune --config configs/minilm.yaml --data ROOT [--data ROOT2] --output DIR

Resumable: relation scores, checkpoints and the encoder are kept under `DIR/work`. The folder loads
with `redclf detect --model DIR`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from redclf.benchmark.data import LabelledTrajectory, load_benchmark, load_splits
from redclf.errors import RedclfError
from train.card import write_card
from train.crossval import clock_log
from train.export import (
    export_encoder,
    export_trees,
    quantise_encoder,
    save_tokenizer,
    write_config,
)
from train.fitting import Workshop, fit_encoder, mean_cells
from train.provenance import header
from train.recipe import claim, load_recipe
from train.stacking import Stack

FOLDS = 5


def load_training_data(roots: Sequence[str]) -> tuple[list[LabelledTrajectory], dict[str, int]]:
    """Load trajectories, with the folds of `splits.json`, or five task-grouped ones where it is missing."""
    items: list[LabelledTrajectory] = []
    folds: dict[str, int] = {}
    for root in roots:
        found = load_benchmark(root)
        items += found
        if (Path(root) / "splits.json").exists():
            folds |= load_splits(root)
            continue
        groups = {group: place % FOLDS for place, group in enumerate(sorted({item.group for item in found}))}
        folds |= {item.trajectory.id: groups[item.group] for item in found}
    return items, folds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="redclf train", description=__doc__.split("\n")[0])
    parser.add_argument("--config", required=True)
    parser.add_argument("--data", required=True, action="append", help="benchmark root; repeatable")
    parser.add_argument("--output", required=True, help="model folder to write")
    parser.add_argument("--metrics", help="results JSON of train.crossval, which the card quotes")
    parser.add_argument("--fusion", help="run folder of train.crossval, whose folds' mean fusion weights are taken")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a config value")
    options = parser.parse_args(arguments)
    try:
        return train(options)
    except (RedclfError, ValueError) as error:
        print(f"redclf train: {error}", file=sys.stderr)
        return 2


def train(options: argparse.Namespace) -> int:
    """Train, calibrate and export."""
    recipe = load_recipe(options.config, options.set)
    items, folds = load_training_data(options.data)
    folder = Path(options.output)
    work = folder / "work"
    claim(work, recipe)
    workshop = Workshop.open(recipe, items, clock_log)
    stack = Stack(
        workshop.originals, workshop.extra, folds, recipe.boosting, work / "relations", recipe.seed, clock_log
    )
    scores = stack.stacked(None)
    fit = fit_encoder(workshop, items, scores, work / "encoder")
    if options.fusion:
        fit.fusion = replace(fit.fusion, cells=mean_cells(Path(options.fusion)))
    clock_log("fitting relations on all trajectories")
    export_trees(stack.fit(frozenset()), folder / "relations")
    save_tokenizer(workshop.tokenizer, folder)
    fit.module.save_pretrained(work / "encoder")
    export_encoder(fit.module, work / "encoder.fp32.onnx")
    quantise_encoder(work / "encoder.fp32.onnx", folder / "encoder.onnx")
    write_config(folder, recipe, fit, items)
    measured: Mapping[str, Any] = {}
    if options.metrics:
        measured = json.loads(Path(options.metrics).read_text(encoding="utf-8"))
    write_card(folder, recipe, header(items, recipe.seed, "train.finetune"), measured)
    clock_log(f"wrote {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
