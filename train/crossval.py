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

import numpy as np

from redclf.benchmark.data import LabelledTrajectory
from redclf.benchmark.evaluate import Evaluation, evaluate
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
    """Cross-validate and report."""
    recipe = load_recipe(options.config, options.set)
    items, folds = load_items(options.data)
    rows = rows_of(options.relations_only)
    runs, output = Path(options.runs), Path(options.output)
    about = header(items, recipe.seed, "train.crossval", recipe=recipe.to_dict())
    if options.seeds and len(options.seeds) > 1:
        found = {}
        for seed in options.seeds:
            clock_log(f"seed {seed}")
            # The recipe's own seed is the ordinary run.
            name = recipe.name if seed == recipe.seed else f"{recipe.name}-s{seed}"
            scored = crossvalidate(replace(recipe, seed=seed), items, folds, runs / name, rows, options.folds)
            if not options.folds:
                found[seed] = scored
        if found:
            report_seeds({**about, "seed": list(found)}, recipe, items, found, output)
        return
    if options.seeds:
        recipe = replace(recipe, seed=options.seeds[0])
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
    numbers: dict[str, dict[str, dict[str, dict[str, object]]]] = {}
    for part, members in split_parts(items).items():
        lines = []
        numbers[part] = {}
        for row in next(iter(found.values())):
            scores: list[Evaluation] = []
            for seed, scored in found.items():
                scores.append(evaluate(scored[row].detector(row), members))
                clock_log(f"{part} {row} seed {seed}: {summary(scores[-1])}")
            cells = []
            numbers[part][row] = {}
            for path in HEADLINE.values():
                values = [evaluation.metric(path) for evaluation in scores]
                mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
                numbers[part][row][path] = {"mean": mean, "spread": spread, "seeds": values}
                cells.append(f"{100 * mean:.1f} ± {100 * spread:.1f}")
            lines.append((row, *cells))
        table = Table(f"Mean ± standard deviation over {len(found)} seeds, %", ("row", *HEADLINE), tuple(lines))
        text += [f"\n## {part}\n", table.markdown()]
    title = f"Cross-validation with {len(found)} seeds, recipe `{recipe.name}`"
    write_report(output, f"crossval-{recipe.name}-seeds", title, about, text, numbers)


if __name__ == "__main__":
    sys.exit(main())
