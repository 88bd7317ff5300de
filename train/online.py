"""Online: every step judged on the trajectory cut two interactions after it, which is what an agent loop has.

    python -m train.online --config configs/minilm.yaml --data ROOT [--data ROOT2] --output results

Over the folds of `splits.json`, beside the view of the whole run. Two models of relations are asked: the
recipe without cut copies, and with them (`augmentation.cuts`, or `--cuts`), whose calibration and threshold
online come from cut copies, too. A target's distribution on the cut run is laid over its candidates in the
whole one, so that all tasks are scored as ever; evidence after the cut can't be found, and counts as missed.
Results go to `<output>/online-<name>.*`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from redclf.benchmark.data import LabelledTrajectory
from redclf.benchmark.evaluate import Evaluation, evaluate, paired_difference
from redclf.benchmark.predictions import evidence_key
from redclf.benchmark.tables import difference_table
from redclf.detectors.distribution import log_softmax
from redclf.detectors.model_folder import Calibration
from redclf.runtime.fusion import UNREAD
from train.augment import cut
from train.boosting import Boosting
from train.command import clock_log, command_parser, guarded, load_items
from train.copies import AHEAD, cut_copies
from train.fitting import Workshop, relations_calibration
from train.provenance import header
from train.recipe import claim, load_recipe
from train.report import section, split_parts, summary, write_report
from train.rows import Row, merged
from train.stacking import Scores, Stack, load_scores, save_scores
from train.tables import Table, Weights, build_table

#: Cut copies a trajectory of the model that is trained with them, where the recipe says nothing.
CUTS = 3
WHOLE, ONLINE, WHOLE_CUTS, ONLINE_CUTS = (
    "whole run",
    "online",
    "whole run, trained with cuts",
    "online, trained with cuts",
)
#: Rows whose paired difference is reported.
PAIRS = ((ONLINE, WHOLE), (ONLINE_CUTS, ONLINE), (ONLINE_CUTS, WHOLE), (WHOLE_CUTS, WHOLE))


def online_tables(item: LabelledTrajectory, weights: Weights) -> list[tuple[Table, list[int]]]:
    """Return the runs that a loop has seen when it judges each target, and which targets it judges on each.

    Parallel calls are there together, so they are judged on one and the same cut.

    Returns
    -------
    list of (table, places)
        Every target of the whole run once; `places` are those of the targets in the cut's own table.
    """
    ends: dict[int, tuple[LabelledTrajectory, set[tuple[int, int]]]] = {}
    for interaction in item.trajectory.interactions:
        short = cut(item, interaction.ordinal + AHEAD)
        _, steps = ends.setdefault(len(short.trajectory.messages), (short, set()))
        steps.add(interaction.step)
    found = []
    for short, steps in ends.values():
        table = build_table(short, weights)
        places = [place for place, step in enumerate(table.steps) if step in steps]
        if places:
            found.append((table, places))
    return found


def lay_over(cells: np.ndarray, seen: Sequence[tuple[int, ...]], whole: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return a distribution over the candidates of a cut run as one over those of the whole run.

    Parameters
    ----------
    cells : ndarray of shape (4, n_seen)
        Log-probabilities.
    seen, whole : sequence of tuple of int
        Evidence of the candidates in the cut run and in the whole one.

    Returns
    -------
    ndarray of shape (4, n_whole)
        Candidates that the cut hides have next to no probability, and the category's own distribution.
    """
    known = {evidence_key(evidence): place for place, evidence in enumerate(seen)}
    out = np.repeat(np.logaddexp.reduce(cells, axis=1)[:, None] + UNREAD, len(whole), axis=1)
    for place, evidence in enumerate(whole):
        at = known.get(evidence_key(evidence))
        if at is not None:
            out[:, place] = cells[:, at]
    laid: np.ndarray = log_softmax(out)
    return laid


def score_online(
    models: Mapping[str, Boosting], item: LabelledTrajectory, whole: Table, weights: Weights
) -> dict[str, list[Scores]]:
    """Return, per model, the distributions of all targets of one trajectory, each judged on its cut."""
    found: dict[str, dict[tuple[int, int], Scores]] = {name: {} for name in models}
    evidence = dict(zip(whole.steps, whole.evidence, strict=True))
    for table, places in online_tables(item, weights):
        # Cells are computed of gold targets whatever the floor, so the asked ones are marked as gold.
        asked = replace(table, redundant=np.isin(np.arange(len(table.targets)), places).astype(int))
        for name, model in models.items():
            scores = model.predict(asked, floor=math.inf)
            for place in places:
                logit, cells = scores[place]
                step = table.steps[place]
                found[name][step] = (logit, lay_over(cells, table.evidence[place], evidence[step]))
    return {name: [own[step] for step in whole.steps] for name, own in found.items()}


_MODELS: dict[str, Boosting] = {}


def _take_models(models: Mapping[str, Boosting]) -> None:
    _MODELS.update(models)


def _score_online(job: tuple[LabelledTrajectory, Table, Weights]) -> dict[str, list[Scores]]:
    return score_online(_MODELS, *job)


class Side:
    """One of the two models: its recipe's tables, its stack, and how it is calibrated.

    Parameters
    ----------
    workshop : Workshop
    stack : Stack
    directory : Path
        Where scores of cut runs are kept.
    """

    def __init__(self, workshop: Workshop, stack: Stack, directory: Path) -> None:
        self.workshop = workshop
        self.stack = stack
        self.directory = directory

    def calibrations(self, fold: int) -> tuple[Calibration, Calibration]:
        """Return the calibrations for whole and for cut runs, from the training part of a fold."""
        workshop, recipe = self.workshop, self.workshop.recipe
        train = [item for item in workshop.items if self.stack.folds[item.id] != fold]
        scores = self.stack.stacked(fold)
        whole = relations_calibration(workshop, train, scores)
        cuts = [copy for item in train for copy, _ in cut_copies(item, recipe.augmentation, recipe.seed)]
        return whole, relations_calibration(workshop, cuts, scores) if cuts else whole


def run_fold(sides: Mapping[tuple[str, str], Side], fold: int, workers: int) -> dict[str, Row]:
    """Return the rows of one fold's trajectories.

    Parameters
    ----------
    sides : mapping
        (row of the whole run, row online) to the side that gives both.
    """
    first = next(iter(sides.values()))
    test = [item for item in first.workshop.items if first.stack.folds[item.id] == fold]
    files = {online: side.directory / f"fold-{fold}.npz" for (_, online), side in sides.items()}
    if not all(path.exists() for path in files.values()):
        models = {online: side.stack.model(frozenset({fold})) for (_, online), side in sides.items()}
        weights = first.workshop.recipe.weights
        jobs = [(item, first.workshop.tables[item.id], weights) for item in test]
        # A fork would copy the state of OpenMP, with which LightGBM then waits for threads that are not there.
        context = get_context("spawn")
        with ProcessPoolExecutor(workers, context, initializer=_take_models, initargs=(models,)) as pool:
            answers = list(pool.map(_score_online, jobs, chunksize=2))
        for name, path in files.items():
            save_scores(path, {item.id: found[name] for item, found in zip(test, answers, strict=True)})
    rows = {}
    for (whole, online), side in sides.items():
        on_whole, on_cut = side.calibrations(fold)
        rows[whole] = _row(test, side.stack.scores(frozenset({fold})), on_whole)
        rows[online] = _row(test, load_scores(files[online]), on_cut)
    return rows


def _row(test: Sequence[LabelledTrajectory], scores: Mapping[str, Sequence[Scores]], calibration: Calibration) -> Row:
    kept = {item.id: [(calibration.logit(z), cells) for z, cells in scores.get(item.id, ())] for item in test}
    return Row(kept, dict.fromkeys(kept, calibration.threshold))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = command_parser("python -m train.online", __doc__, encoder=False)
    parser.add_argument("--cuts", type=int, help=f"cut copies a trajectory; the recipe's or {CUTS} by default")
    parser.add_argument("--folds", type=int, nargs="+", help="these folds only")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    return guarded(parser.prog, lambda: run(options))


def run(options: argparse.Namespace) -> None:
    """Ask, measure and report.

    Raises
    ------
    ValueError
        If a number is not a positive one, or there is no such fold.
    """
    for name in ("cuts", "workers"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name}: expected a positive number, got {value}")
    recipe = load_recipe(options.config, options.set)
    items, folds = load_items(options.data)
    known = sorted(set(folds.values()))
    wanted = options.folds or known
    if not set(wanted) <= set(known):
        raise ValueError(f"--folds: expected some of {known}, got {wanted}")
    cuts = options.cuts or recipe.augmentation.cuts or CUTS
    about = header(items, recipe.seed, "train.online", recipe=recipe.to_dict(), cuts=cuts, folds=wanted)
    directory = Path(options.runs) / f"{recipe.name}-online"
    sides: dict[tuple[str, str], Side] = {}
    originals: list[Table] | None = None
    for rows, number in (((WHOLE, ONLINE), 0), ((WHOLE_CUTS, ONLINE_CUTS), cuts)):
        own = replace(recipe, augmentation=replace(recipe.augmentation, cuts=number))
        workshop = Workshop.open(own, items, clock_log, encoder=False, originals=originals)
        originals = workshop.originals
        place = Path(options.runs) / recipe.name / "relations"
        stack = Stack(originals, workshop.extra, folds, own.boosting, place, own.seed, clock_log)
        sides[rows] = Side(workshop, stack, directory / f"cuts-{number}")
        claim(sides[rows].directory, own, workshop.digest)
    parts = []
    for fold in wanted:
        clock_log(f"fold {fold}")
        parts.append(run_fold(sides, fold, options.workers))
    scored = merged(parts)
    text, numbers = measured(scored, [item for item in items if folds[item.id] in wanted])
    note = f"Relations. Online is the run up to {AHEAD} interactions after the step, or its last result.\n"
    title = f"Online and on the whole run, recipe `{recipe.name}`"
    write_report(Path(options.output), f"online-{recipe.name}", title, about, [note, *text], numbers)


def measured(rows: Mapping[str, Row], items: Sequence[LabelledTrajectory]) -> tuple[list[str], dict[str, Any]]:
    """Return the text and numbers of all parts: figures, differences, and breakdowns of the last row."""
    text: list[str] = []
    numbers: dict[str, Any] = {}
    for part, members in split_parts(items).items():
        evaluations: dict[str, Evaluation] = {}
        for name, row in rows.items():
            evaluations[name] = evaluate(row.detector(name), members)
            clock_log(f"{part} {name}: {summary(evaluations[name])}")
        lines, numbers[part] = section(part, evaluations)
        text.append(lines)
        for first, second in PAIRS:
            difference = paired_difference(evaluations[first], evaluations[second])
            text.append(difference_table(first, second, difference).markdown())
            numbers[part][f"{first} - {second}"] = difference
    return text, numbers


if __name__ == "__main__":
    sys.exit(main())
