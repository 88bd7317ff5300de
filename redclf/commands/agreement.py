"""`redclf agreement`: how far one annotation of the benchmark agrees with another."""

from __future__ import annotations

import json
from pathlib import Path

from redclf.benchmark.agreement import Agreement, agree, load_annotation
from redclf.benchmark.tables import Table, percent
from redclf.commands.output import atomic_writer, complain, console
from redclf.errors import RedclfError
from redclf.taxonomy import CATEGORIES

#: Columns of the first table: heading to figure.
COLUMNS = {
    "P": "precision",
    "R (idx)": "recall_idx",
    "R (idx+type)": "recall_idx_type",
    "F1": "f1",
    "partial credit": "partial_credit",
    "type acc.": "type_accuracy",
    "evidence": "evidence_agreement",
    "triplets R": "triplet_recall",
    "identical": "identical",
    "coverage": "coverage",
    "E2E R": "end_to_end_recall",
}


def run_agreement(reference: Path, other: Path, json_file: Path | None) -> None:
    """Run the command.

    Raises
    ------
    RedclfError
        If an annotation can't be read, or they have no trajectory in common.
    """
    first, second = load_annotation(reference), load_annotation(other)
    parts = agree(first, second)
    if not parts[""].covered:
        raise RedclfError(f"expected trajectories of {reference} in {other}, found none of {len(first)}")
    unknown = len(second.keys() - first.keys())
    if unknown:
        complain(f"{other}: {unknown} trajectories that the reference does not have, left out", "warning")
    screen = console()
    screen.print(_overall(parts).rich())
    screen.print(_confusion(parts[""]).rich())
    if json_file is not None:
        record = parts[""].to_dict() | {
            "confusion": [[parts[""].confusion[a, b] for b in CATEGORIES] for a in CATEGORIES],
            "categories": list(CATEGORIES),
            "by_domain": {name: part.to_dict() for name, part in parts.items() if name},
        }
        with atomic_writer(json_file) as stream:
            json.dump(record, stream, indent=1)
            stream.write("\n")


def _overall(parts: dict[str, Agreement]) -> Table:
    rows = []
    for name, part in sorted(parts.items(), key=lambda item: (not item[0], item[0])):
        figures = part.to_dict()
        rows.append((name or "all", *(percent(figures[key]) for key in COLUMNS.values())))
    return Table("Agreement with the reference, %", ("domain", *COLUMNS), tuple(rows))


def _confusion(part: Agreement) -> Table:
    rows = [(category, *(f"{part.confusion[category, other]:,}" for other in CATEGORIES)) for category in CATEGORIES]
    title = f"Types of the {part.matched:,} steps that both name: reference down, other across"
    return Table(title, ("", *CATEGORIES), tuple(rows))
