"""Cross-validation over the folds of `splits.json`: relations alone, text alone, both.

    python -m train.crossval --config configs/minilm.yaml --data ROOT [--data ROOT2] --output results

Everything is fitted and chosen inside the training folds. A run that was killed goes on where it
stopped. Out-of-fold predictions go to `<output>/oof/`, the scores to `<output>/crossval-<name>.*`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from redclf.benchmark.data import LabelledTrajectory, load_benchmark, load_splits
from redclf.benchmark.evaluate import Evaluation, evaluate, paired_difference
from redclf.benchmark.results import ResultFileDetector, result_record, write_results
from redclf.benchmark.tables import (
    at_least_one_table,
    breakdown_table,
    difference_table,
    localisation_table,
    overall_table,
    triple_table,
)
from redclf.detectors.distribution import TargetScores
from redclf.runtime.fusion import text_alone
from train.encoder import predict
from train.fitting import Fit, Workshop, fit_encoder, floor_logit
from train.provenance import header
from train.recipe import Recipe, claim, load_recipe
from train.scored import ScoredDetector
from train.stacking import Scores, Stack, load_scores, save_scores

ROWS = ("relations", "text", "both")
BREAKDOWNS = ("by_domain", "by_subset", "by_category", "by_length")


def clock_log(message: str) -> None:
    """Print a message with the time."""
    print(f"{time.strftime('%H:%M:%S')} {message}", flush=True)


def load_items(roots: Sequence[str]) -> tuple[list[LabelledTrajectory], dict[str, int]]:
    """Load the trajectories and folds of several roots."""
    items: list[LabelledTrajectory] = []
    folds: dict[str, int] = {}
    for root in roots:
        items += load_benchmark(root)
        folds |= load_splits(root)
    return items, folds


def score_fold(
    workshop: Workshop, test: Sequence[LabelledTrajectory], scores: Mapping[str, Sequence[Scores]], fit: Fit
) -> dict[str, dict[str, list[tuple[float, np.ndarray]]]]:
    """Return, per row of the ablation, the calibrated distributions of the test trajectories."""
    floor = floor_logit(workshop.recipe)
    readable = workshop.targets(test, scores, lambda t, k, logit: logit > floor)
    if workshop.cache is not None:
        workshop.cache.add(readable)
    outputs = predict(fit.module, workshop.cache, readable)
    read = {(t.table, t.place): (t, rows) for t, rows in zip(readable, outputs, strict=True)}
    found: dict[str, dict[str, list[tuple[float, np.ndarray]]]] = {row: {} for row in ROWS}
    for item in test:
        key = item.trajectory.id
        for row in ROWS:
            found[row][key] = []
        for place, (logit, cells) in enumerate(scores.get(key, ())):
            plain = fit.relations.logit(logit)
            target, rows = read.get((key, place), (None, None))
            found["relations"][key].append((plain, cells))
            if target is None or rows is None:
                found["both"][key].append((plain, cells))
                found["text"][key].append((plain, np.full_like(cells, -np.log(cells.size))))
                continue
            joint = fit.fusion.join(rows, target.chosen, cells)
            found["both"][key].append((fit.fusion.log_odds(rows, logit), joint))
            alone, own = text_alone(rows, target.chosen, cells.shape[1])
            found["text"][key].append((fit.text.logit(alone), own))
    return found


def run_fold(
    workshop: Workshop, stack: Stack, folds: Mapping[str, int], fold: int, directory: Path
) -> tuple[dict[str, dict[str, list[Scores]]], dict[str, float]]:
    """Train and score one fold, or read what an earlier run left."""
    place = directory / f"fold-{fold}"
    files = {row: place / f"scores-{row}.npz" for row in ROWS}
    saved = place / "calibration.json"
    if not all(path.exists() for path in files.values()):
        workshop.log(f"fold {fold}")
        scores = stack.stacked(fold)
        train = [item for item in workshop.items if folds[item.trajectory.id] != fold]
        test = [item for item in workshop.items if folds[item.trajectory.id] == fold]
        fit = fit_encoder(workshop, train, scores, place)
        for row, found in score_fold(workshop, test, scores, fit).items():
            save_scores(files[row], found)
    thresholds = {row: float(value["threshold"]) for row, value in json.loads(saved.read_text()).items()}
    return {row: load_scores(path) for row, path in files.items()}, thresholds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m train.crossval", description=__doc__.split("\n")[0])
    parser.add_argument("--config", required=True)
    parser.add_argument("--data", required=True, action="append", help="benchmark root with splits.json; repeatable")
    parser.add_argument("--output", default="results")
    parser.add_argument("--runs", default="runs", help="where checkpoints are kept")
    parser.add_argument("--folds", type=int, nargs="+", help="work on these folds only, and report nothing")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a config value")
    options = parser.parse_args(arguments)
    recipe = load_recipe(options.config, options.set)
    items, folds = load_items(options.data)
    directory = Path(options.runs) / recipe.name
    claim(directory, recipe)
    about = header(items, recipe.seed, "train.crossval", recipe=recipe.to_dict())
    workshop = Workshop.open(recipe, items, clock_log)
    stack = Stack(
        workshop.originals, workshop.extra, folds, recipe.boosting, directory / "relations", recipe.seed, clock_log
    )
    if options.folds:
        for fold in options.folds:
            run_fold(workshop, stack, folds, fold, directory)
        return 0
    kept: dict[str, dict[str, list[Scores]]] = {row: {} for row in ROWS}
    thresholds: dict[str, dict[str, float]] = {row: {} for row in ROWS}
    for fold in sorted(set(folds.values())):
        scores, chosen = run_fold(workshop, stack, folds, fold, directory)
        for row in ROWS:
            kept[row] |= scores[row]
            members = [item.trajectory.id for item in items if folds[item.trajectory.id] == fold]
            thresholds[row] |= dict.fromkeys(members, chosen[row])
            for member in members:
                kept[row].setdefault(member, [])
    report(about, recipe, items, kept, thresholds, Path(options.output), clock_log)
    return 0


def report(
    about: Mapping[str, Any],
    recipe: Recipe,
    items: Sequence[LabelledTrajectory],
    kept: Mapping[str, Mapping[str, Sequence[Scores]]],
    thresholds: Mapping[str, Mapping[str, float]],
    output: Path,
    log: Callable[[str], None],
) -> None:
    """Write out-of-fold predictions and the tables, benchmark and coding apart."""
    parts = {
        "benchmark": [item for item in items if item.domain != "coding"],
        "coding": [item for item in items if item.domain == "coding"],
    }
    (output / "oof").mkdir(parents=True, exist_ok=True)
    text: list[str] = [f"# Cross-validation, recipe `{recipe.name}`\n"]
    numbers: dict[str, Any] = {}
    for part, members in parts.items():
        if not members:
            continue
        evaluations: dict[str, Evaluation] = {}
        for row in ROWS:
            detector = ScoredDetector(
                row,
                {k: [TargetScores(logit, cells) for logit, cells in v] for k, v in kept[row].items()},
                thresholds[row],
            )
            path = output / "oof" / f"{recipe.name}-{row}-{part}.jsonl"
            records = (without_reasons(result_record(detector, item)) for item in members)
            write_results(path, {**about, "row": row, "part": part}, records)
            evaluations[row] = replace(evaluate(ResultFileDetector(path), members), detector=row)
            log(f"{part} {row}: {summary(evaluations[row])}")
        text.append(f"\n## {part}\n")
        compared = [evaluations[row] for row in ROWS]
        for make in (overall_table, at_least_one_table, localisation_table, triple_table):
            text.append(make(compared).markdown())
        difference = paired_difference(evaluations["both"], evaluations["relations"])
        text.append(difference_table("both", "relations", difference).markdown())
        text += [breakdown_table(evaluations["both"], which).markdown() for which in BREAKDOWNS]
        numbers[part] = {row: e.to_dict() for row, e in evaluations.items()} | {"both - relations": difference}
    text.append("\n" + "\n".join(f"- {key}: `{about[key]}`" for key in ("command", "data", "seed", "commit")))
    (output / f"crossval-{recipe.name}.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    (output / f"crossval-{recipe.name}.json").write_text(
        json.dumps({"about": about, **numbers}, indent=1) + "\n", encoding="utf-8"
    )


def without_reasons(record: dict[str, Any]) -> dict[str, Any]:
    """Return a result record without the sentences, which quote the trajectories."""
    for key in ("predictions", "best"):
        for prediction in record.get(key) or ():
            prediction.pop("reason", None)
    return record


def summary(evaluation: Evaluation) -> str:
    """Return the headline figures in one line, in %."""
    names = {
        "StepCls": "stepcls.accuracy",
        "category": "category.accuracy",
        "EvidenceRet": "evidenceret.accuracy",
        "StepDet": "stepdet.mean",
        "StepDet >=1": "stepdet.at_least_one.mean",
        "AP": "localisation.ap",
        "P": "localisation.precision",
        "R": "localisation.recall",
    }
    return ", ".join(f"{label} {100 * evaluation.metric(key):.1f}" for label, key in names.items())


if __name__ == "__main__":
    sys.exit(main())
