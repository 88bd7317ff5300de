"""Ablations on one fold with one seed: what each part of a recipe is worth.

    python -m train.ablate --config configs/minilm.yaml --data ROOT [--fold 0] [--only NAME ...] --output results

Each is the recipe with a part changed, trained and scored like the full recipe and compared with it by
a paired bootstrap over tasks. The full recipe is the run of `train.crossval`, which is taken up where
it is there. Ablations of the encoder alone share its relations. Results go to
`<output>/ablate-<name>.*`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redclf.benchmark.data import LabelledTrajectory
from redclf.benchmark.evaluate import Evaluation, evaluate, paired_difference
from redclf.benchmark.tables import Table
from train.augment import FAMILIES
from train.command import clock_log, command_parser, guarded, load_items
from train.fitting import Workshop
from train.provenance import header
from train.recipe import Recipe, claim, load_recipe
from train.report import HEADLINE, difference_cells, headline_cells, split_parts, summary, write_report
from train.rows import Row, rows_of, run_fold
from train.stacking import Stack
from train.tables import build_originals

FULL = "full"
_CJK = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")

Change = Callable[[LabelledTrajectory], LabelledTrajectory]


@dataclass(frozen=True)
class Ablation:
    """One change of the recipe or of the trajectories.

    Parameters
    ----------
    name : str
    says : str
        What is changed, for the table.
    overrides : tuple of str
        As `--set` takes them.
    change : callable, optional
        What is done to trajectories.
    test_only : bool
        Whether `change` is for the test trajectories alone; the models are those of the full recipe.
    encoder : bool
        Whether the change is of the encoder alone.
    """

    name: str
    says: str
    overrides: tuple[str, ...] = ()
    change: Change | None = None
    test_only: bool = False
    encoder: bool = False


def without_retry_text(item: LabelledTrajectory) -> LabelledTrajectory:
    """Take out the Chinese sentence that goes with the retry of every synthetic failure, and only with those."""
    messages = tuple(
        replace(message, content="")
        if message.role == "assistant" and message.tool_calls and _CJK.search(message.content)
        else message
        for message in item.trajectory.messages
    )
    return replace(item, trajectory=replace(item.trajectory, messages=messages))


def without_policy(item: LabelledTrajectory) -> LabelledTrajectory:
    """Take out the policy: its text, the features that read it, and the rule on parallel calls."""
    return replace(item, trajectory=replace(item.trajectory, policy=""))


def _layers(kept: int, frozen: int) -> Ablation:
    overrides = (f"encoder.layers={kept}", f"encoder.frozen_layers={frozen}")
    return Ablation(f"layers-{kept}", f"{kept} layers, {kept - frozen} trained", overrides, encoder=True)


ABLATIONS: tuple[Ablation, ...] = (
    *(
        Ablation(f"without-{family}", f"no {', '.join(names)}", (f"augmentation.without=[{', '.join(names)}]",))
        for family, names in FAMILIES.items()
    ),
    Ablation("without-augmentation", "no copies", ("augmentation.copies=0", "augmentation.cuts=0")),
    Ablation("without-retry-text", "test runs without the sentence of synthetic retries", (), without_retry_text, True),
    Ablation("without-policy", "no policy text, in training and test", (), without_policy),
    Ablation("frozen", "encoder frozen, head trained", ("training.tuning=frozen",), encoder=True),
    Ablation("lora", "low-rank adapters in all layers", ("training.tuning=lora",), encoder=True),
    Ablation("full-tuning", "all layers trained", ("training.tuning=full",), encoder=True),
    Ablation("single-steps", "the partner's text blanked", ("partner_text=false",), encoder=True),
    _layers(6, 4),
    _layers(4, 2),
    _layers(3, 1),
)


def chosen_ablations(names: Sequence[str] | None, relations_only: bool) -> list[Ablation]:
    """Return the ablations that are wanted.

    Raises
    ------
    ValueError
        For an unknown name, or one that relations alone know nothing of.
    """
    known = {ablation.name: ablation for ablation in ABLATIONS}
    for name in names or ():
        if name not in known:
            raise ValueError(f"--only: expected some of {', '.join(known)}, got {name!r}")
        if relations_only and known[name].encoder:
            raise ValueError(f"--only {name}: is about the encoder, which --relations-only leaves out")
    return [
        ablation
        for ablation in ABLATIONS
        if (ablation.name in names if names else not (relations_only and ablation.encoder))
    ]


def prepare(base: Workshop, recipe: Recipe, ablation: Ablation, test: set[str], encoder: bool) -> Workshop:
    """Return the workshop of an ablation, with as many tables of the full recipe's as still hold.

    Parameters
    ----------
    base : Workshop
        Of the full recipe.
    recipe : Recipe
        The ablation's.
    test : set of str
        Ids of the test trajectories.
    """
    if ablation.change is not None and ablation.test_only:
        changed = {item.id: ablation.change(item) for item in base.items if item.id in test}
        tables = {table.id: table for table in build_originals(list(changed.values()), recipe.weights)}
        return replace(
            base, items=[changed.get(item.id, item) for item in base.items], tables={**base.tables, **tables}
        )
    if ablation.change is not None:
        return Workshop.open(recipe, [ablation.change(item) for item in base.items], base.log, encoder)
    if ablation.encoder:
        return base.retuned(recipe)
    return Workshop.open(recipe, base.items, base.log, encoder, base.originals)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = command_parser("python -m train.ablate", __doc__)
    parser.add_argument("--fold", type=int, default=0, help="the fold that is scored")
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"of {', '.join(a.name for a in ABLATIONS)}")
    parser.add_argument("--name", help="of the result files; the recipe's by default")
    options = parser.parse_args(arguments)
    return guarded(parser.prog, lambda: run(options))


def run(options: argparse.Namespace) -> None:
    """Train, score and compare.

    Raises
    ------
    ValueError
        If there is no such fold or ablation.
    """
    recipe = load_recipe(options.config, options.set)
    wanted = chosen_ablations(options.only, options.relations_only)
    items, folds = load_items(options.data)
    fold = options.fold
    if fold not in folds.values():
        raise ValueError(f"--fold: expected one of {sorted(set(folds.values()))}, got {fold}")
    rows = rows_of(options.relations_only)
    directory = Path(options.runs) / recipe.name
    about = header(items, recipe.seed, "train.ablate", recipe=recipe.to_dict(), fold=fold)
    test = {item.id for item in items if folds[item.id] == fold}
    base = Workshop.open(recipe, items, clock_log, encoder="both" in rows)
    claim(directory, recipe, base.digest)

    def scored(workshop: Workshop, place: Path, fitted: Path | None = None) -> dict[str, dict[str, Evaluation]]:
        stack = Stack(
            workshop.originals,
            workshop.extra,
            folds,
            workshop.recipe.boosting,
            directory / "relations",
            workshop.recipe.seed,
            clock_log,
        )
        found = run_fold(workshop, stack, fold, place, rows, fitted)
        return evaluated(found, [item for item in workshop.items if item.id in test])

    whole = directory / f"fold-{fold}"
    results = {FULL: scored(base, whole)}
    same: list[str] = []
    for ablation in wanted:
        own = load_recipe(options.config, [*options.set, *ablation.overrides])
        if ablation.change is None and own == recipe:
            same.append(ablation.name)
            continue
        clock_log(ablation.name)
        workshop = prepare(base, own, ablation, test, "both" in rows)
        place = directory / "ablate" / ablation.name
        claim(place, own, workshop.digest)
        fitted = whole if ablation.test_only else None
        results[ablation.name] = scored(workshop, place / f"fold-{fold}", fitted)
        for part, by_row in results[ablation.name].items():
            for row, evaluation in by_row.items():
                clock_log(f"{part} {row}: {summary(evaluation)}")
    text, numbers = compared(results, {ablation.name: ablation for ablation in wanted})
    note = f"Fold {fold} of one seed; the others are trained on. Differences are paired over tasks.\n"
    if same:
        note += f"\nThe recipe itself: {', '.join(same)}.\n"
    title = f"Ablations, recipe `{recipe.name}`"
    write_report(Path(options.output), f"ablate-{options.name or recipe.name}", title, about, [note, *text], numbers)


def evaluated(rows: Mapping[str, Row], items: Sequence[LabelledTrajectory]) -> dict[str, dict[str, Evaluation]]:
    """Return the scores by part and row."""
    return {
        part: {name: evaluate(row.detector(name), members) for name, row in rows.items()}
        for part, members in split_parts(items).items()
    }


def compared(
    results: Mapping[str, Mapping[str, Mapping[str, Evaluation]]], ablations: Mapping[str, Ablation]
) -> tuple[list[str], dict[str, Any]]:
    """Return tables and numbers of all ablations against the full recipe."""
    text: list[str] = []
    numbers: dict[str, Any] = {}
    for part, by_row in results[FULL].items():
        numbers[part] = {}
        for row, full in by_row.items():
            figures = [(FULL, "", *headline_cells(full))]
            differences: list[tuple[str, ...]] = []
            numbers[part][row] = {FULL: full.to_dict()}
            for name, ablation in ablations.items():
                if name not in results or (ablation.encoder and row == "relations"):
                    continue
                found = results[name][part][row]
                difference = paired_difference(found, full)
                figures.append((name, ablation.says, *headline_cells(found)))
                differences.append((name, *difference_cells(difference)))
                numbers[part][row][name] = difference
            text += [
                f"\n## {part}, {row}\n",
                Table("Figures, %", ("run", "change", *HEADLINE), tuple(figures)).markdown(),
            ]
            title = f"Ablation - {FULL}, paired over tasks, points [95 % interval]"
            text.append(Table(title, ("run", *HEADLINE), tuple(differences)).markdown())
    return text, numbers


if __name__ == "__main__":
    sys.exit(main())
