"""Several detectors on the same trajectories: scores, differences, tokens, time and money side by side."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from redclf.benchmark.data import LabelledTrajectory
from redclf.benchmark.evaluate import HEADLINE, Evaluation, evaluate, paired_difference
from redclf.benchmark.published import COLUMNS, PUBLISHED, TASK_COLUMNS, Published
from redclf.benchmark.tables import BREAKDOWNS, Table, percent
from redclf.detectors.cascade import CascadeDetector
from redclf.detectors.endpoint import EndpointDetector
from redclf.llm.usage import Usage

#: Widths of the band over which a cascade is shown.
WIDTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)

#: The tables of the tasks: title, and column heading to metric path.
TASKS = {
    "stepcls": ("StepCls", {"accuracy": "stepcls.accuracy", "category": "category.accuracy"}),
    "evidenceret": ("EvidenceRet", {"accuracy": "evidenceret.accuracy"}),
    "stepdet": (
        "StepDet",
        {
            "P@1": "stepdet.p@1",
            "P@5": "stepdet.p@5",
            "P@10": "stepdet.p@10",
            "mean": "stepdet.mean",
            "recall": "localisation.recall",
            "F1": "localisation.f1",
            "AP": "localisation.ap",
            "triples F1": "triple.f1",
        },
    ),
}
#: The figure of each task that differences, breakdowns and plots are about.
MAIN = {"stepcls": "stepcls.accuracy", "evidenceret": "evidenceret.accuracy", "stepdet": "stepdet.mean"}


@dataclass(frozen=True)
class BandPoint:
    """A cascade at one width of its band, from recorded replies.

    Parameters
    ----------
    width : float
    scores : mapping
        Metric path to value; None where undefined.
    usage : Usage
    """

    width: float
    scores: Mapping[str, float | None]
    usage: Usage


@dataclass(frozen=True)
class Row:
    """One detector's part in a comparison.

    Parameters
    ----------
    spec : str
        How it was named; the key in the JSON.
    label : str
        Name in tables.
    evaluation : Evaluation
    usage : Usage
    band : tuple of BandPoint
        A cascade's other widths.
    """

    spec: str
    label: str
    evaluation: Evaluation
    usage: Usage
    band: tuple[BandPoint, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return scores as `evaluate` has them, and what they took."""
        result = {**self.evaluation.to_dict(), **self.usage.to_dict()}
        if self.band:
            result["band"] = [{"width": point.width, **point.scores, **point.usage.to_dict()} for point in self.band]
        return result


def sweep(cascade: CascadeDetector, items: Sequence[LabelledTrajectory]) -> tuple[BandPoint, ...]:
    """Score a cascade over the width of its band; nothing is sent.

    Returns
    -------
    tuple of BandPoint
        Up to the greatest width whose replies are all recorded.
    """
    second = cascade.second
    points = []
    for width in WIDTHS:
        if isinstance(second, EndpointDetector):
            second.reset()
            second.sender.replay_only, second.sender.missing = True, 0
        try:
            other = cascade.at(width)
            evaluation = evaluate(other, items)
        finally:
            if isinstance(second, EndpointDetector):
                second.sender.replay_only = False
        if isinstance(second, EndpointDetector) and second.sender.missing:
            break
        values = {path: evaluation.metric(path) for path in MAIN.values()}
        scores = {path: None if math.isnan(value) else value for path, value in values.items()}
        points.append(BandPoint(width, scores, other.usage()))
    return tuple(points)


@dataclass(frozen=True)
class Comparison:
    """Rows on the same trajectories; differences are to the first one."""

    rows: tuple[Row, ...]
    published: Published

    @cached_property
    def differences(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Spec of each further row to the paired difference of the first row and it."""
        first, *others = self.rows
        return {row.spec: paired_difference(first.evaluation, row.evaluation) for row in others}

    @property
    def domains(self) -> list[str]:
        """The domain of each trajectory."""
        return [item.domain for item in self.rows[0].evaluation.items]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "trajectories": len(self.rows[0].evaluation.items),
            "detectors": {row.spec: row.to_dict() for row in self.rows},
            "differences": {"first": self.rows[0].spec, "first_minus": self.differences},
            PUBLISHED: {
                "source": self.published.source,
                "data": self.published.data,
                "note": self.published.note(self.domains),
                "overall": [dict(row) for row in self.published.overall],
                "by_domain": [dict(row) for row in self.published.by_domain],
                "stepcls_cost": [dict(row) for row in self.published.stepcls_cost],
            },
        }

    def task_table(self, task: str) -> Table:
        """Return one task's scores, a row a detector, and below them the published rows, marked so."""
        title, columns = TASKS[task]
        wanted = MAIN[task]
        rows = []
        for row in self.rows:
            scores = row.evaluation.to_dict()
            cells = [_cell(scores, path) for path in columns.values()]
            difference = "" if row is self.rows[0] else _difference(self.differences[row.spec][wanted])
            rows.append((row.label, *cells, difference))
        number = self.rows[0].evaluation.to_dict()[task]["n"]
        unit = "trajectories" if task == "stepdet" else "steps"
        heading = f"{title}, {number:,} {unit}, % [95 % interval over tasks]"
        return Table(heading, ("detector", *columns, f"{self.rows[0].label} minus it"), tuple(rows))

    def published_table(self, task: str) -> Table:
        """Return the published rows of one task, on the paper's own trajectories."""
        names = TASK_COLUMNS[task]
        whole = self.published.overall_table()
        places = [whole.columns.index(name) for name in names]
        kept = [(cells[0], *(cells[place] for place in places)) for cells in whole.rows]
        rows = tuple(cells for cells in kept if any(cell != "-" for cell in cells[1:]))
        return Table(f"{TASKS[task][0]}: {whole.title[0].lower()}{whole.title[1:]}", ("detector", *names), rows)

    def cost_table(self) -> Table:
        """Return what each detector took."""
        costs = [row.usage.cost_usd for row in self.rows]
        least = min((cost for cost in costs if cost), default=None)
        rows = []
        for row, cost in zip(self.rows, costs, strict=True):
            usage = row.usage
            relative = "-" if not cost or least is None else f"{cost / least:.1f}x"
            rows.append(
                (
                    row.label,
                    *(_count(value) for value in (usage.requests, usage.failed)),
                    *(_count(value) for value in (usage.input_tokens, usage.output_tokens)),
                    "-" if usage.seconds is None else f"{usage.seconds:,.1f}",
                    "-" if cost is None else f"{cost:.4f}",
                    relative,
                )
            )
        columns = ("detector", "requests", "failed", "input tokens", "output tokens", "seconds", "dollars", "relative")
        return Table("Cost", columns, tuple(rows))

    def breakdown_table(self, which: str, task: str) -> Table:
        """Return one task's main figure by domain, category or length, a row a detector.

        Parameters
        ----------
        which : str
            A key of `redclf.benchmark.tables.BREAKDOWNS`.
        task : str
        """
        parts = [row.evaluation.to_dict()[which] for row in self.rows]
        names = list(dict.fromkeys(name for part in parts for name in part))
        rows = tuple(
            (row.label, *(_cell(part[name], MAIN[task]) if name in part else "-" for name in names))
            for row, part in zip(self.rows, parts, strict=True)
        )
        return Table(f"{TASKS[task][0]} by {BREAKDOWNS[which]}, %", ("detector", *names), rows)

    def band_table(self, row: Row) -> Table:
        """Return a cascade over the width of its band."""
        rows = tuple(
            (
                f"{point.width:g}",
                *(percent(point.scores[path]) for path in MAIN.values()),
                _count(point.usage.requests),
                _count(point.usage.input_tokens),
                _count(point.usage.output_tokens),
                "-" if point.usage.cost_usd is None else f"{point.usage.cost_usd:.4f}",
            )
            for point in row.band
        )
        columns = ("width", *(TASKS[task][0] for task in MAIN), "requests", "input tokens", "output tokens", "dollars")
        return Table(f"{row.label}: by width of the band, from recorded replies", columns, rows)

    def tables(self) -> list[Table]:
        """Return all tables, in the order in which to print them."""
        found = [table for task in TASKS for table in (self.task_table(task), self.published_table(task))]
        found += [self.cost_table(), self.published.cost_table()]
        shown = ("by_domain", "by_category", "by_length")
        found += [self.breakdown_table(which, task) for which in shown for task in TASKS]
        found.append(self.published.domain_table())
        return found + [self.band_table(row) for row in self.rows if row.band]

    def markdown(self) -> str:
        """Return all tables as Markdown."""
        return "\n".join([*(table.markdown() for table in self.tables()), self.published.note(self.domains), ""])

    def readme(self, command: str) -> str:
        """Return the short form for a README: scores, domains, and the published rows apart."""
        columns = {"StepCls": MAIN["stepcls"], "EvidenceRet": MAIN["evidenceret"]} | {
            name: f"stepdet.{field}" for name, field in COLUMNS.items() if name not in ("StepCls", "EvidenceRet")
        }
        number = len(self.domains)
        rows = tuple(
            (row.label, *(percent(_find(row.evaluation.to_dict(), path)[0]) for path in columns.values()))
            for row in self.rows
        )
        measured = Table(f"Measured, {number:,} trajectories, %", ("detector", *columns), rows)
        domain_columns = {name: path for name, path in columns.items() if name not in ("P@1", "mean")}
        by_domain = tuple(
            (row.label, domain, *(percent(_find(blocks, path)[0]) for path in domain_columns.values()))
            for row in self.rows
            for domain, blocks in row.evaluation.to_dict()["by_domain"].items()
        )
        domains = Table("Measured, by domain, %", ("detector", "domain", *domain_columns), by_domain)
        tables = (measured, domains, self.published.overall_table(), self.published.domain_table())
        parts = [*(table.markdown() for table in tables), self.published.note(self.domains), ""]
        return "\n".join([f"Made by `{command}`.", "", *parts])

    def csv(self) -> str:
        """Return all figures, one a line: measured ones as fractions, published ones too."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("detector", "kind", "breakdown", "part", "metric", "value", "low", "high"))
        for row in self.rows:
            scores = row.evaluation.to_dict()
            writer.writerows(_lines(row.spec, "", "", scores))
            for which, name in BREAKDOWNS.items():
                for part, blocks in scores[which].items():
                    writer.writerows(_lines(row.spec, name, part, blocks))
            for name, value in row.usage.to_dict().items():
                writer.writerow((row.spec, "measured", "", "", name, _plain(value), "", ""))
        for figures in (*self.published.overall, *self.published.by_domain):
            domain = figures.get("domain", "")
            for name, value in figures.items():
                if name not in ("detector", "domain"):
                    path = {**MAIN, "mean": MAIN["stepdet"]}.get(name, f"stepdet.{name}")
                    place = ("domain", domain) if domain else ("", "")
                    line = (figures["detector"], PUBLISHED, *place, path, round(value / 100, 6), "", "")
                    writer.writerow(line)
        return stream.getvalue()


def unique_labels(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows with labels that differ: those that are not unique are followed by the spec."""
    labels = [row.label for row in rows]
    return tuple(
        row if labels.count(row.label) == 1 else replace(row, label=f"{row.label} [{row.spec}]") for row in rows
    )


def _lines(spec: str, breakdown: str, part: str, scores: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    lines = []
    for path in HEADLINE:
        value, interval = _find(scores, path)
        if value is not None:
            low, high = interval or ("", "")
            lines.append((spec, "measured", breakdown, part, path, value, low, high))
    return lines


def _find(scores: Mapping[str, Any], path: str) -> tuple[float | None, Sequence[float] | None]:
    *parents, name = path.split(".")
    block: Any = scores
    for parent in parents:
        block = block.get(parent, {})
    return block.get(name), block.get("ci", {}).get(name)


def _cell(scores: Mapping[str, Any], path: str) -> str:
    return percent(*_find(scores, path))


def _difference(entry: Mapping[str, Any]) -> str:
    if entry["difference"] is None:
        return "-"
    text = percent(entry["difference"], entry["ci"])
    return text if text.startswith("-") else f"+{text}"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _plain(value: float | None) -> float | str:
    return "" if value is None else value
