"""Results of a protocol: predictions, tables with intervals, and where they come from."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from redclf.benchmark.data import LabelledTrajectory
from redclf.benchmark.evaluate import Evaluation, evaluate, paired_difference
from redclf.benchmark.results import ResultFileDetector, result_record, write_results
from redclf.benchmark.tables import (
    BREAKDOWNS,
    at_least_one_table,
    breakdown_table,
    difference_table,
    localisation_table,
    overall_table,
    percent,
    triple_table,
)
from train.rows import Row

#: Headline figures: heading to metric path.
HEADLINE = {
    "StepCls": "stepcls.accuracy",
    "category": "category.accuracy",
    "EvidenceRet": "evidenceret.accuracy",
    "StepDet": "stepdet.mean",
    "StepDet >=1": "stepdet.at_least_one.mean",
    "AP": "localisation.ap",
    "P": "localisation.precision",
    "R": "localisation.recall",
}


def split_parts(items: Sequence[LabelledTrajectory]) -> dict[str, list[LabelledTrajectory]]:
    """Return the benchmark and the coding runs apart, without a part that is empty."""
    parts: dict[str, list[LabelledTrajectory]] = {}
    for item in items:
        parts.setdefault("coding" if item.domain == "coding" else "benchmark", []).append(item)
    return dict(sorted(parts.items()))


def headline_cells(evaluation: Evaluation) -> list[str]:
    """Return the headline figures as cells of a table, in %."""
    return [percent(None if math.isnan(value) else value) for value in map(evaluation.metric, HEADLINE.values())]


def difference_cells(difference: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the headline figures of a paired difference as cells, in points with their intervals."""
    return [percent(difference[path]["difference"], difference[path]["ci"]) for path in HEADLINE.values()]


def write_predictions(
    path: Path, about: Mapping[str, Any], name: str, row: Row, items: Sequence[LabelledTrajectory]
) -> Evaluation:
    """Write a row's predictions to a file, and score the file."""
    detector = row.detector(name)
    records = (without_reasons(result_record(detector, item)) for item in items)
    write_results(path, about, records)
    return replace(evaluate(ResultFileDetector(path), items), detector=name)


def without_reasons(record: dict[str, Any]) -> dict[str, Any]:
    """Return a result record without the sentences, which quote the trajectories."""
    for key in ("predictions", "best"):
        for prediction in record.get(key) or ():
            prediction.pop("reason", None)
    return record


def summary(evaluation: Evaluation) -> str:
    """Return the headline figures in one line, in %."""
    return ", ".join(f"{label} {100 * evaluation.metric(path):.1f}" for label, path in HEADLINE.items())


def section(
    title: str, evaluations: Mapping[str, Evaluation], breakdowns: Sequence[str] = tuple(BREAKDOWNS)
) -> tuple[str, dict[str, Any]]:
    """Return one part of a report: all rows side by side, their difference, breakdowns of the last row.

    Parameters
    ----------
    evaluations : mapping
        Row to its scores on the same trajectories; the last row is the one that is broken down.
    breakdowns : sequence of str
        Keys of `redclf.benchmark.tables.BREAKDOWNS`.

    Returns
    -------
    text : str
        Markdown.
    numbers : dict
        The same as JSON values.
    """
    compared = list(evaluations.values())
    text = [f"\n## {title}\n"]
    for make in (overall_table, at_least_one_table, localisation_table, triple_table):
        text.append(make(compared).markdown())
    numbers: dict[str, Any] = {row: evaluation.to_dict() for row, evaluation in evaluations.items()}
    if "both" in evaluations and "relations" in evaluations:
        difference = paired_difference(evaluations["both"], evaluations["relations"])
        text.append(difference_table("both", "relations", difference).markdown())
        numbers["both - relations"] = difference
    text += [breakdown_table(compared[-1], which).markdown() for which in breakdowns]
    return "\n".join(text), numbers


def write_report(
    output: Path, stem: str, title: str, about: Mapping[str, Any], text: Sequence[str], numbers: Mapping[str, Any]
) -> None:
    """Write `<stem>.md` and `<stem>.json`, both with where they come from."""
    output.mkdir(parents=True, exist_ok=True)
    origin = "\n".join(f"- {key}: `{about[key]}`" for key in ("command", "data", "seed", "commit"))
    (output / f"{stem}.md").write_text("\n".join([f"# {title}\n", *text, "\n" + origin]) + "\n", encoding="utf-8")
    (output / f"{stem}.json").write_text(
        json.dumps({"about": about, **numbers}, indent=1, allow_nan=False) + "\n", encoding="utf-8"
    )


def report_rows(
    rows: Mapping[str, Row],
    parts: Mapping[str, Sequence[LabelledTrajectory]],
    about: Mapping[str, Any],
    predictions: Path,
    stem: str,
    log: Callable[[str], None],
) -> tuple[list[str], dict[str, Any]]:
    """Write the out-of-fold predictions of every part, and return the text and numbers of all parts."""
    text: list[str] = []
    numbers: dict[str, Any] = {}
    for part, members in parts.items():
        evaluations: dict[str, Evaluation] = {}
        for name, row in rows.items():
            path = predictions / f"{stem}-{name}-{part}.jsonl"
            evaluations[name] = write_predictions(path, {**about, "row": name, "part": part}, name, row, members)
            log(f"{part} {name}: {summary(evaluations[name])}")
        lines, numbers[part] = section(part, evaluations)
        text.append(lines)
    return text, numbers
