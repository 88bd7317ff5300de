"""Online: the same models on trajectories cut two steps after the target, which is what an agent loop has.

    python -m train.online --config configs/minilm.yaml --data ROOT [--data ROOT2] [--limit 4] --output results

Over the folds of `splits.json`, every target of a test trajectory is judged by itself, on the trajectory
up to two interactions after it, and beside that on the whole. Two models are asked: the recipe without
cut copies, and with them (`augmentation.cuts`, `--cuts`), whose calibration and threshold come from cut
copies, too. StepCls and EvidenceRet count the steps whose evidence is inside the cut. Relations alone:
the encoder is not asked. Results go to `<output>/online-<name>.*`.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from redclf.benchmark.data import LabelledTrajectory
from redclf.benchmark.evaluate import REPLICATES
from redclf.benchmark.metrics import FloatArray, average_precision
from redclf.benchmark.predictions import evidence_key
from redclf.benchmark.tables import Table as TextTable
from redclf.benchmark.tables import percent
from redclf.detectors.distribution import as_candidate
from redclf.detectors.model_folder import Calibration
from redclf.relations.candidates import Candidate
from redclf.relations.features import Relations
from redclf.relations.views import TrajectoryView
from redclf.taxonomy import CATEGORIES
from train.augment import cut
from train.boosting import Boosting
from train.command import clock_log, command_parser, guarded, load_items
from train.copies import AHEAD, cut_copies
from train.fitting import Workshop, relations_calibration
from train.provenance import header
from train.recipe import Recipe, claim, load_recipe
from train.report import split_parts, write_report
from train.stacking import Scores, Stack
from train.tables import CATEGORY_INDEX, Table

#: Cut copies a trajectory of the model that is trained with them, where the recipe says nothing.
CUTS = 3
#: Model (trained without or with cuts) and view (the whole or the cut) of each row.
ROWS: dict[str, tuple[str, str]] = {
    "whole run": ("without", "whole"),
    "online": ("without", "cut"),
    "whole run, trained with cuts": ("with", "whole"),
    "online, trained with cuts": ("with", "cut"),
}
#: Rows whose difference is reported.
PAIRS = (
    ("online", "whole run"),
    ("online, trained with cuts", "online"),
    ("online, trained with cuts", "whole run"),
    ("whole run, trained with cuts", "whole run"),
)
FIGURES = ("AP", "precision", "recall", "category", "StepCls", "EvidenceRet")


@dataclass
class Asked:
    """Some targets of one trajectory, each as its view shows it.

    Parameters
    ----------
    table : Table
        A row a target, then further rows for gold evidence that was no candidate.
    given : list of tuple or None
        Per target, row and candidate of its gold evidence; None where there is none in view.
    """

    table: Table
    given: list[tuple[int, int] | None]


def ask(item: LabelledTrajectory, ordinals: Sequence[int], ahead: int | None) -> Asked:
    """Compute the relations of some targets.

    Parameters
    ----------
    ordinals : sequence of int
        Of the targets among the interactions.
    ahead : int or None
        Each target is seen in the trajectory up to so many interactions after it; None for the whole.
    """
    steps = [item.trajectory.interactions[ordinal].step for ordinal in ordinals]
    gold_of = {step.step: step for step in item.gold}
    whole = Relations(TrajectoryView(item.trajectory)) if ahead is None else None
    rows: list[tuple[np.ndarray, np.ndarray, list[Candidate]]] = []
    extra: list[tuple[np.ndarray, np.ndarray, list[Candidate]]] = []
    given: list[tuple[int, int] | None] = []
    for ordinal, step in zip(ordinals, steps, strict=True):
        if whole is not None:
            trajectory, relations, place = item.trajectory, whole, whole.targets.index(ordinal)
        else:
            trajectory = cut(item, ordinal + int(ahead or 0)).trajectory
            relations, place = Relations(TrajectoryView(trajectory), only=ordinal), 0
        candidates = relations.candidates[place]
        rows.append((relations.target_features[place], relations.pair_features[place], candidates))
        label = gold_of.get(step)
        if label is None or max(label.evidence) >= len(trajectory.messages):
            given.append(None)
            continue
        wanted = evidence_key(label.evidence)
        at = next((i for i, c in enumerate(candidates) if evidence_key(c.evidence) == wanted), None)
        other = as_candidate(trajectory, label.evidence) if at is None else None
        if at is not None:
            given.append((len(rows) - 1, at))
        elif other is not None:
            wider = Relations(relations.view, extra={ordinal: other}, only=ordinal)
            given.append((len(ordinals) + len(extra), len(wider.candidates[0]) - 1))
            extra.append((wider.target_features[0], wider.pair_features[0], wider.candidates[0]))
        else:
            given.append(None)
    every = rows + extra
    labels = [gold_of.get(step) for step in steps]
    unused = [0] * len(extra)
    table = Table(
        id=item.id,
        origin=item.id,
        domain=item.domain,
        group=item.group,
        targets=np.asarray([row[0] for row in every], dtype=np.float32),
        pairs=[row[1] for row in every],
        evidence=[[candidate.evidence for candidate in row[2]] for row in every],
        redundant=np.asarray([int(label is not None) for label in labels] + unused),
        category=np.asarray([CATEGORY_INDEX[label.category] if label else -1 for label in labels] + unused),
        gold=[found[1] if found else None for found in given] + [None] * len(extra),
        weight=np.ones(len(every), dtype=np.float32),
        pair_weight=np.ones(len(every), dtype=np.float32),
        steps=steps,
    )
    return Asked(table, given)


def choose_targets(item: LabelledTrajectory, limit: int | None, seed: int) -> list[tuple[int, float]]:
    """Return ordinals and weights of the targets that are asked about.

    Parameters
    ----------
    limit : int or None
        How many necessary steps are drawn, which then stand for all of them; None for all. Gold
        steps are all there; disputed ones are not.
    """
    gold = {step.step for step in item.gold}
    steps = [step for step in item.trajectory.assistant_interactions if step.step not in item.disputed]
    necessary = [step.ordinal for step in steps if step.step not in gold]
    drawn = necessary
    if limit is not None and limit < len(necessary):
        drawn = random.Random(f"online:{seed}:{item.id}").sample(necessary, limit)
    weight = len(necessary) / max(len(drawn), 1)
    found = [(step.ordinal, 1.0) for step in steps if step.step in gold]
    return sorted(found + [(ordinal, weight) for ordinal in drawn])


def answer(model: Boosting, calibration: Calibration, asked: Asked, item: LabelledTrajectory) -> list[dict[str, Any]]:
    """Return, per target, the probability of redundancy, the alarm, and what was right of a gold step."""
    gold_of = {step.step: step for step in item.gold}
    scores = model.predict(asked.table)
    found = []
    for place, (step, given) in enumerate(zip(asked.table.steps, asked.given, strict=True)):
        logit, cells = scores[place]
        probability = 1 / (1 + math.exp(-calibration.logit(logit)))
        record: dict[str, Any] = {"p": probability, "alarm": probability >= calibration.threshold}
        label = gold_of.get(step)
        if label is not None:
            category = CATEGORIES[int(np.logaddexp.reduce(cells, axis=1).argmax())]
            best, candidate = np.unravel_index(int(cells.argmax()), cells.shape)
            told = CATEGORIES[int(scores[given[0]][1][:, given[1]].argmax())] if given else category
            evidence = asked.table.evidence[place][int(candidate)]
            record |= {
                "category": category == label.category,
                "stepcls": told == label.category,
                "evidence": CATEGORIES[int(best)] == label.category
                and evidence_key(evidence) == evidence_key(label.evidence),
            }
        found.append(record)
    return found


def _ask(job: tuple[LabelledTrajectory, list[int], int | None]) -> Asked:
    return ask(*job)


@dataclass
class Side:
    """One of the two models: its tables, its folds, and how it is calibrated on each view."""

    workshop: Workshop
    stack: Stack

    def fitted(self, fold: int) -> tuple[Boosting, dict[str, Calibration]]:
        """Return the model without a fold, and its calibration by view."""
        workshop = self.workshop
        train = [item for item in workshop.items if self.stack.folds[item.id] != fold]
        scores: Mapping[str, Sequence[Scores]] = self.stack.stacked(fold)
        whole = relations_calibration(workshop, train, scores)
        recipe = workshop.recipe
        cuts = [copy for item in train for copy, _ in cut_copies(item, recipe.augmentation, recipe.seed)]
        short = relations_calibration(workshop, cuts, scores) if cuts else whole
        return self.stack.model(frozenset({fold})), {"whole": whole, "cut": short}


def run_fold(
    sides: Mapping[str, Side],
    fold: int,
    items: Sequence[LabelledTrajectory],
    limit: int | None,
    seed: int,
    workers: int,
) -> list[dict[str, Any]]:
    """Return a record a target of one fold's trajectories, with the answers of every row."""
    chosen = [(item, targets) for item in items if (targets := choose_targets(item, limit, seed))]
    records: list[dict[str, Any]] = []
    for item, targets in chosen:
        gold_of = {step.step: step for step in item.gold}
        for ordinal, weight in targets:
            step = item.trajectory.interactions[ordinal].step
            label = gold_of.get(step)
            end = len(cut(item, ordinal + AHEAD).trajectory.messages)
            records.append(
                {"id": item.id, "step": list(step), "weight": weight, "gold": label.category if label else None}
                | {"seen": label is not None and max(label.evidence) < end, "rows": {}}
            )
    asked: dict[str, list[Asked]] = {}
    with ProcessPoolExecutor(workers) as pool:
        for view, ahead in (("whole", None), ("cut", AHEAD)):
            jobs = [(item, [ordinal for ordinal, _ in targets], ahead) for item, targets in chosen]
            asked[view] = list(pool.map(_ask, jobs, chunksize=4))
    for name, side in sides.items():
        model, calibrations = side.fitted(fold)
        for row, (own, view) in ROWS.items():
            if own == name:
                answers = (
                    found
                    for (item, _), part in zip(chosen, asked[view], strict=True)
                    for found in answer(model, calibrations[view], part, item)
                )
                for record, found in zip(records, answers, strict=True):
                    record["rows"][row] = found
    return records


class Answers:
    """The records as arrays.

    Parameters
    ----------
    records : sequence of dict
        As `run_fold` gives.
    group_of : mapping
        Trajectory id to its task, for the bootstrap.
    """

    def __init__(self, records: Sequence[Mapping[str, Any]], group_of: Mapping[str, tuple[str, str]]) -> None:
        groups = sorted({group_of[record["id"]] for record in records})
        self.tasks = len(groups)
        self.group = np.asarray([groups.index(group_of[record["id"]]) for record in records], dtype=np.int64)
        self.weight = np.asarray([record["weight"] for record in records], dtype=float)
        self.gold = np.asarray([record["gold"] is not None for record in records], dtype=float)
        self.seen = np.asarray([record["seen"] for record in records], dtype=float)
        self.rows = {
            row: {
                key: np.asarray([float(record["rows"][row].get(key, 0.0)) for record in records])
                for key in ("p", "alarm", "category", "stepcls", "evidence")
            }
            for row in ROWS
        }

    def figures(self, row: str, draws: FloatArray | None = None) -> dict[str, FloatArray]:
        """Return the figures of a row: of all targets, or of each replicate of a bootstrap over tasks.

        Parameters
        ----------
        draws : ndarray of shape (replicates, n_tasks), optional
            How often each replicate draws each task.
        """
        weight = self.weight if draws is None else self.weight * draws[:, self.group]
        own, gold = self.rows[row], self.gold

        def share(right: FloatArray, of: FloatArray) -> FloatArray:
            top, bottom = np.asarray((weight * right * of).sum(-1)), np.asarray((weight * of).sum(-1))
            values: FloatArray = np.divide(top, bottom, out=np.full(bottom.shape, np.nan), where=bottom > 0)
            return values

        return {
            "AP": average_precision(gold, own["p"], weight),
            "precision": share(gold, own["alarm"]),
            "recall": share(own["alarm"], gold),
            "category": share(own["category"], gold),
            "StepCls": share(own["stepcls"], gold * self.seen),
            "EvidenceRet": share(own["evidence"], gold * self.seen),
        }


def measure(answers: Answers, replicates: int = REPLICATES, seed: int = 0) -> dict[str, Any]:
    """Return figures, their 95 % intervals over tasks, and paired differences between rows, as JSON values."""
    point = {row: answers.figures(row) for row in ROWS}
    samples: dict[str, dict[str, list[FloatArray]]] = {row: {name: [] for name in FIGURES} for row in ROWS}
    if answers.tasks > 1:
        draws = np.random.default_rng(seed).multinomial(
            answers.tasks, [1 / answers.tasks] * answers.tasks, size=replicates
        )
        for start in range(0, replicates, 50):
            for row in ROWS:
                for name, values in answers.figures(row, draws[start : start + 50].astype(float)).items():
                    samples[row][name].append(values)
    drawn = {row: {n: np.concatenate(v) if v else np.zeros(0) for n, v in s.items()} for row, s in samples.items()}
    result: dict[str, Any] = {
        "targets": len(answers.gold),
        "gold": int(answers.gold.sum()),
        "gold with evidence inside the cut": int(answers.seen.sum()),
        "rows": {
            row: {name: {"value": _number(point[row][name]), "ci": _interval(drawn[row][name])} for name in FIGURES}
            for row in ROWS
        },
    }
    for first, second in PAIRS:
        result[f"{first} - {second}"] = {
            name: {
                "difference": _number(point[first][name] - point[second][name]),
                "ci": _interval(drawn[first][name] - drawn[second][name]),
            }
            for name in FIGURES
        }
    return result


def _number(value: FloatArray) -> float | None:
    return None if math.isnan(value) else float(value)


def _interval(values: FloatArray) -> list[float] | None:
    kept = values[~np.isnan(values)]
    return [float(value) for value in np.percentile(kept, [2.5, 97.5])] if kept.size else None


def tables(title: str, measured: Mapping[str, Any]) -> list[str]:
    """Return one part's figures and differences as Markdown."""
    rows = tuple(
        (row, *(percent(found["value"], found["ci"]) for found in measured["rows"][row].values())) for row in ROWS
    )
    pairs = tuple(
        (
            f"{first} - {second}",
            *(percent(found["difference"], found["ci"]) for found in measured[f"{first} - {second}"].values()),
        )
        for first, second in PAIRS
    )
    counted = (
        f"{title}, % [95 % interval over tasks]: {measured['targets']} targets, {measured['gold']} redundant, "
        f"{measured['gold with evidence inside the cut']} of them with their evidence inside the cut"
    )
    return [
        TextTable(counted, ("view and model", *FIGURES), rows).markdown(),
        TextTable(f"{title}, paired differences, points", ("rows", *FIGURES), pairs).markdown(),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = command_parser("python -m train.online", __doc__, encoder=False)
    parser.add_argument("--limit", type=int, help="necessary steps a trajectory, weighted to stand for all; all else")
    parser.add_argument("--cuts", type=int, help=f"cut copies a trajectory; the recipe's or {CUTS} by default")
    parser.add_argument("--folds", type=int, nargs="+", help="these folds only")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    return guarded(parser.prog, lambda: run(options))


def open_sides(
    recipe: Recipe,
    cuts: int,
    items: Sequence[LabelledTrajectory],
    folds: Mapping[str, int],
    directory: Path,
    log: Callable[[str], None],
) -> dict[str, Side]:
    """Return the model without cut copies and the one with them."""
    sides: dict[str, Side] = {}
    originals: list[Table] | None = None
    for name, number in (("without", 0), ("with", cuts)):
        own = replace(recipe, augmentation=replace(recipe.augmentation, cuts=number))
        workshop = Workshop.open(own, items, log, encoder=False, originals=originals)
        originals = workshop.originals
        stack = Stack(originals, workshop.extra, folds, own.boosting, directory, own.seed, log)
        sides[name] = Side(workshop, stack)
    return sides


def run(options: argparse.Namespace) -> None:
    """Ask, measure and report.

    Raises
    ------
    ValueError
        If a number is not a positive one.
    """
    for name in ("limit", "cuts", "workers"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name}: expected a positive number, got {value}")
    recipe = load_recipe(options.config, options.set)
    cuts = options.cuts or recipe.augmentation.cuts or CUTS
    items, folds = load_items(options.data)
    runs = Path(options.runs)
    directory = runs / f"{recipe.name}-online"
    about = header(items, recipe.seed, "train.online", recipe=recipe.to_dict(), cuts=cuts, limit=options.limit)
    sides = open_sides(recipe, cuts, items, folds, runs / recipe.name / "relations", clock_log)
    claim(directory, sides["with"].workshop.recipe, sides["with"].workshop.digest)
    wanted = options.folds or sorted(set(folds.values()))
    records: list[dict[str, Any]] = []
    for fold in wanted:
        path = directory / f"answers-{fold}-limit-{options.limit or 'none'}.json"
        if not path.exists():
            clock_log(f"fold {fold}")
            test = [item for item in items if folds[item.id] == fold]
            found = run_fold(sides, fold, test, options.limit, recipe.seed, options.workers)
            part = path.with_suffix(".part")
            part.write_text(json.dumps(found), encoding="utf-8")
            part.replace(path)
        records += json.loads(path.read_text(encoding="utf-8"))
    report(about, recipe, items, records, wanted, Path(options.output))


def report(
    about: Mapping[str, Any],
    recipe: Recipe,
    items: Sequence[LabelledTrajectory],
    records: Sequence[Mapping[str, Any]],
    folds: Iterable[int],
    output: Path,
) -> None:
    """Write tables and numbers: the whole, by domain, by category."""
    group_of = {item.id: item.group for item in items}
    domain_of = {item.id: item.domain for item in items}
    text = [
        f"Folds {', '.join(map(str, folds))}. Online is the trajectory up to {AHEAD} interactions after the target, or "
        "its last result. StepCls and EvidenceRet are of the redundant steps whose evidence is inside the cut.\n"
    ]
    numbers: dict[str, Any] = {}
    for part, members in split_parts(items).items():
        ids = {item.id for item in members}
        own = [record for record in records if record["id"] in ids]
        if not own:
            continue
        measured = measure(Answers(own, group_of))
        text += [f"\n## {part}\n", *tables("All", measured)]
        for row, found in measured["rows"].items():
            values = ", ".join(f"{name} {percent(value['value'])}" for name, value in found.items())
            clock_log(f"{part} {row}: {values}")
        numbers[part] = measured | {"by_domain": {}, "by_category": {}}
        for domain in sorted({domain_of[record["id"]] for record in own}):
            some = measure(Answers([r for r in own if domain_of[r["id"]] == domain], group_of))
            numbers[part]["by_domain"][domain] = some
            if part != domain:
                text += tables(domain, some)[:1]
        for category in CATEGORIES:
            kept = [record for record in own if record["gold"] == category]
            if kept:
                # Of gold steps alone, so that precision and AP say nothing.
                some = measure(Answers(kept, group_of))
                numbers[part]["by_category"][category] = some
                rows = tuple(
                    (row, *(percent(found[name]["value"], found[name]["ci"]) for name in FIGURES[2:]))
                    for row, found in some["rows"].items()
                )
                title = f"{category}: {some['gold']} steps, {some['gold with evidence inside the cut']} inside, %"
                text.append(TextTable(title, ("view and model", *FIGURES[2:]), rows).markdown())
    title = f"Online and on the whole run, relations, recipe `{recipe.name}`"
    write_report(output, f"online-{recipe.name}", title, about, text, numbers)


if __name__ == "__main__":
    sys.exit(main())
