"""Cross-validation over the folds of `splits.json`: relations alone, text alone, both.

    python -m train.crossval --config configs/minilm.yaml --data ROOT [--data ROOT2] --output results

Everything is fitted and chosen inside the training folds. A run that was killed goes on where it
stopped. Out-of-fold predictions go to `<output>/oof/`, the scores to `<output>/crossval-<name>.*`.
With `--seeds 0 1 2` the whole is done with every seed, and what is reported, to
`<output>/crossval-<name>-seeds.*`, is the mean of each headline figure and its spread.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from redclf.benchmark.data import LabelledTrajectory
from redclf.benchmark.evaluate import evaluate
from redclf.benchmark.metrics import FloatArray
from redclf.benchmark.tables import Table
from train.command import clock_log, command_parser, guarded, load_items
from train.fitting import Workshop
from train.provenance import header
from train.recipe import Recipe, claim, load_recipe
from train.report import HEADLINE, report_rows, split_parts, summary, write_report
from train.rows import ROWS, Row, merged, rows_of, run_fold
from train.stacking import Stack

__all__ = ["ROWS", "crossvalidate", "main"]


def crossvalidate(
    recipe: Recipe,
    items: Sequence[LabelledTrajectory],
    folds: Mapping[str, int],
    directory: Path,
    rows: Sequence[str] = ROWS,
    only: Sequence[int] | None = None,
) -> dict[str, Row]:
    """Return every row's out-of-fold scores.

    Parameters
    ----------
    directory : Path
        Where models and scores are kept.
    rows : sequence of str
    only : sequence of int, optional
        The folds to work on, all by default.
    """
    workshop = Workshop.open(recipe, items, clock_log, encoder="both" in rows)
    claim(directory, recipe, workshop.digest)
    stack = Stack(
        workshop.originals, workshop.extra, folds, recipe.boosting, directory / "relations", recipe.seed, clock_log
    )
    parts = []
    for fold in only or sorted(set(folds.values())):
        clock_log(f"fold {fold}")
        parts.append(run_fold(workshop, stack, fold, directory / f"fold-{fold}", rows))
    return merged(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = command_parser("python -m train.crossval", __doc__)
    parser.add_argument("--folds", type=int, nargs="+", help="work on these folds only, and report nothing")
    parser.add_argument("--seeds", type=int, nargs="+", help="work with each of these seeds, and report their spread")
    options = parser.parse_args(arguments)
    return guarded(parser.prog, lambda: run(options))


def run(options: argparse.Namespace) -> None:
    """Cross-validate and report.

    Raises
    ------
    ValueError
        If one seed alone is given.
    """
    if options.seeds and len(set(options.seeds)) < 2:
        raise ValueError("--seeds: expected two or more; for one, give --set seed=N")
    recipe = load_recipe(options.config, options.set)
    items, folds = load_items(options.data)
    rows = rows_of(options.relations_only)
    runs, output = Path(options.runs), Path(options.output)
    about = header(items, recipe.seed, "train.crossval", recipe=recipe.to_dict())
    if options.seeds:
        found = {}
        for seed in options.seeds:
            clock_log(f"seed {seed}")
            # The recipe's own seed is the ordinary run.
            name = recipe.name if seed == recipe.seed else f"{recipe.name}-s{seed}"
            found[seed] = crossvalidate(replace(recipe, seed=seed), items, folds, runs / name, rows, options.folds)
        if not options.folds:
            report_seeds({**about, "seed": list(found)}, recipe, items, found, output)
        return
    scored = crossvalidate(recipe, items, folds, runs / recipe.name, rows, options.folds)
    if options.folds:
        return
    text, numbers = report_rows(scored, split_parts(items), about, output / "oof", recipe.name, clock_log)
    title = f"Cross-validation, recipe `{recipe.name}`"
    write_report(output, f"crossval-{recipe.name}", title, about, text, numbers)


def report_seeds(
    about: Mapping[str, object],
    recipe: Recipe,
    items: Sequence[LabelledTrajectory],
    found: Mapping[int, Mapping[str, Row]],
    output: Path,
) -> None:
    """Write mean, spread (standard deviation, n - 1) and single values of the headline figures over seeds."""
    text: list[str] = []
    numbers: dict[str, Any] = {}
    for part, members in split_parts(items).items():
        values: dict[str, FloatArray] = {}
        for row in next(iter(found.values())):
            scores = [evaluate(scored[row].detector(row), members) for scored in found.values()]
            for seed, evaluation in zip(found, scores, strict=True):
                clock_log(f"{part} {row} seed {seed}: {summary(evaluation)}")
            values[row] = np.asarray([[e.metric(path) for path in HEADLINE.values()] for e in scores])
        if "both" in values:
            values["both - relations"] = values["both"] - values["relations"]
        lines = []
        numbers[part] = {}
        for row, figures in values.items():
            mean, spread = figures.mean(axis=0), figures.std(axis=0, ddof=1)
            lines.append((row, *(f"{100 * m:.1f} ± {100 * s:.1f}" for m, s in zip(mean, spread, strict=True))))
            numbers[part][row] = {
                path: {"mean": float(mean[at]), "spread": float(spread[at]), "seeds": figures[:, at].tolist()}
                for at, path in enumerate(HEADLINE.values())
                if np.isfinite(figures[:, at]).all()
            }
        table = Table(f"Mean ± standard deviation over {len(found)} seeds, %", ("row", *HEADLINE), tuple(lines))
        text += [f"\n## {part}\n", table.markdown()]
    title = f"Cross-validation with {len(found)} seeds, recipe `{recipe.name}`"
    write_report(output, f"crossval-{recipe.name}-seeds", title, about, text, numbers)


if __name__ == "__main__":
    sys.exit(main())
