"""Leave one domain out: every domain is scored by models that saw all others and nothing of it.

    python -m train.lodo --config configs/minilm.yaml --data ROOT [--data ROOT2] --output results

The copies made from a left-out domain's trajectories stay out as well, and the inner folds are those
of `splits.json` on the other domains. A run that was killed goes on where it stopped. Predictions go
to `<output>/oof/`, the scores to `<output>/lodo-<name>.*`: every domain, the benchmark's pooled, and
coding apart.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from redclf.benchmark.data import LabelledTrajectory
from train.command import clock_log, command_parser, guarded, load_items
from train.fitting import Workshop
from train.provenance import header
from train.recipe import Recipe, claim, load_recipe
from train.report import report_rows, split_parts, write_report
from train.rows import ROWS, Row, merged, rows_of, run_fold
from train.stacking import Stack


def folds_without(
    items: Sequence[LabelledTrajectory], folds: Mapping[str, int], domain: str
) -> tuple[dict[str, int], int]:
    """Return the folds with one domain as a fold of its own, and that fold's number."""
    outer = max(folds.values()) + 1
    return {item.trajectory.id: outer if item.domain == domain else folds[item.trajectory.id] for item in items}, outer


def leave_domains_out(
    recipe: Recipe,
    items: Sequence[LabelledTrajectory],
    folds: Mapping[str, int],
    domains: Sequence[str],
    directory: Path,
    rows: Sequence[str] = ROWS,
) -> dict[str, Row]:
    """Return every row's scores of some domains, each from models fitted on all others."""
    workshop = Workshop.open(recipe, items, clock_log, encoder="both" in rows)
    claim(directory, recipe, workshop.digest)
    parts = []
    for domain in domains:
        clock_log(f"without {domain}")
        apart, outer = folds_without(items, folds, domain)
        stack = Stack(
            workshop.originals,
            workshop.extra,
            apart,
            recipe.boosting,
            directory / domain / "relations",
            recipe.seed,
            clock_log,
        )
        parts.append(run_fold(workshop, stack, outer, directory / domain, rows))
    return merged(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = command_parser("python -m train.lodo", __doc__)
    parser.add_argument("--domains", nargs="+", help="leave these out, one at a time; all of the data by default")
    options = parser.parse_args(arguments)
    return guarded(parser.prog, lambda: run(options))


def run(options: argparse.Namespace) -> None:
    """Leave out, score and report.

    Raises
    ------
    ValueError
        If the data has no such domain, or no other one.
    """
    recipe = load_recipe(options.config, options.set)
    items, folds = load_items(options.data)
    known = sorted({item.domain for item in items})
    domains = options.domains or known
    for domain in domains:
        if domain not in known:
            raise ValueError(f"--domains: expected some of {', '.join(known)}, got {domain!r}")
    if len(known) < 2:
        raise ValueError(f"expected data of two domains or more, found only {known[0]}")
    about = header(items, recipe.seed, "train.lodo", recipe=recipe.to_dict())
    directory = Path(options.runs) / f"{recipe.name}-lodo"
    rows = leave_domains_out(recipe, items, folds, domains, directory, rows_of(options.relations_only))
    by_domain = {domain: [item for item in items if item.domain == domain] for domain in domains}
    scored = [item for members in by_domain.values() for item in members]
    parts: dict[str, list[LabelledTrajectory]] = split_parts(scored)
    parts |= {domain: members for domain, members in by_domain.items() if members not in parts.values()}
    output = Path(options.output)
    text, numbers = report_rows(rows, parts, about, output / "oof", f"{recipe.name}-lodo", clock_log)
    title = f"One domain left out, recipe `{recipe.name}`"
    note = f"Left out in turn: {', '.join(domains)}. `benchmark` pools those of them that are not coding.\n"
    write_report(output, f"lodo-{recipe.name}", title, about, [note, *text], numbers)


if __name__ == "__main__":
    sys.exit(main())
