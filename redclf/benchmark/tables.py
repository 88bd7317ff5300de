"""Tables of an evaluation, for the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from redclf.benchmark.evaluate import HEADLINE, Evaluation

IN_SAMPLE = "IN-SAMPLE"

#: Column heading to metric path, by block.
OVERALL = {
    "StepCls": "stepcls.accuracy",
    "category": "category.accuracy",
    "EvidenceRet": "evidenceret.accuracy",
    "P@1": "stepdet.p@1",
    "P@5": "stepdet.p@5",
    "P@10": "stepdet.p@10",
    "mean": "stepdet.mean",
}
AT_LEAST_ONE = {
    "P@1": "stepdet.at_least_one.p@1",
    "P@5": "stepdet.at_least_one.p@5",
    "P@10": "stepdet.at_least_one.p@10",
    "mean": "stepdet.at_least_one.mean",
}
LOCALISATION = {
    "precision": "localisation.precision",
    "recall": "localisation.recall",
    "F1": "localisation.f1",
    "AP": "localisation.ap",
}
TRIPLE = {"precision": "triple.precision", "recall": "triple.recall", "F1": "triple.f1"}
BREAKDOWNS = {
    "by_domain": "domain",
    "by_subset": "subset",
    "by_category": "category",
    "by_length": "messages",
}


@dataclass(frozen=True)
class Table:
    """A table of texts; the first column holds names, all others numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def rich(self) -> RichTable:
        """Return it for a rich console."""
        table = RichTable(title=self.title, title_justify="left", title_style="bold")
        for place, name in enumerate(self.columns):
            table.add_column(name, justify="right" if place else "left", no_wrap=not place)
        for cells in self.rows:
            table.add_row(*(Text(cell) for cell in cells))
        return table

    def markdown(self) -> str:
        """Return it as Markdown, the title as a bold line above."""
        rule = ["---", *("---:" for _ in self.columns[1:])]
        lines = [self.columns, rule, *self.rows]
        body = "\n".join("| " + " | ".join(_escape(c) for c in cells) + " |" for cells in lines)
        return f"**{self.title}**\n\n{body}\n"


def percent(value: float | None, interval: Sequence[float] | None = None) -> str:
    """Return a fraction as a percentage with one decimal, its interval in brackets."""
    if value is None:
        return "-"
    text = f"{100 * value:.1f}"
    if interval is not None:
        text += f" [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]"
    return text


def overall_table(evaluations: Sequence[Evaluation]) -> Table:
    """Return StepCls, category, EvidenceRet and P@K, a row a detector."""
    return _detectors(
        "Official scores, % [95 % interval over tasks]",
        evaluations,
        OVERALL,
        {"steps": "stepcls.n", "trajectories": "stepdet.n"},
    )


def at_least_one_table(evaluations: Sequence[Evaluation]) -> Table:
    """Return P@K with at least one prediction a trajectory, a row a detector."""
    return _detectors(
        "StepDet with at least one prediction a trajectory, %",
        evaluations,
        AT_LEAST_ONE,
        {"trajectories": "stepdet.n"},
    )


def localisation_table(evaluations: Sequence[Evaluation]) -> Table:
    """Return how well the steps alone are found, a row a detector."""
    table = _detectors(
        "Localisation (the step alone), %",
        evaluations,
        LOCALISATION,
        {"steps": "localisation.n", "interactions": "localisation.interactions"},
    )
    rows = []
    for cells, evaluation in zip(table.rows, evaluations, strict=True):
        block = evaluation.to_dict()["localisation"]
        alarms = block["false_alarms_per_clean_trajectory"]
        rows.append((*cells, "-" if alarms is None else f"{alarms:.2f}", percent(block["ece"])))
    return Table(table.title, (*table.columns, "alarms per clean run", "ECE"), tuple(rows))


def triple_table(evaluations: Sequence[Evaluation]) -> Table:
    """Return how well step, category and evidence together are found, a row a detector."""
    return _detectors(
        "Triples (step, category and evidence exact), %",
        evaluations,
        TRIPLE,
        {"steps": "triple.n"},
    )


def breakdown_table(evaluation: Evaluation, which: str) -> Table:
    """Return one breakdown of one detector.

    Parameters
    ----------
    evaluation : Evaluation
    which : str
        A key of `BREAKDOWNS`, such as `"by_domain"`.
    """
    parts: Mapping[str, Any] = evaluation.to_dict()[which]
    columns = dict(OVERALL)
    if which == "by_category":
        columns |= {"located": "localisation.recall", "triple F1": "triple.f1"}
    else:
        columns |= {
            "AP": "localisation.ap",
            "loc. F1": "localisation.f1",
            "triple F1": "triple.f1",
        }
    rows = tuple(
        (
            name,
            str(part["stepcls"]["n"]),
            str(part["stepdet"]["n"]),
            *(_cell(part, path) for path in columns.values()),
        )
        for name, part in parts.items()
    )
    title = f"{_name(evaluation)} by {BREAKDOWNS[which]}, % [95 % interval over tasks]"
    return Table(title, (BREAKDOWNS[which], "steps", "traj.", *columns), rows)


def difference_table(first: str, second: str, difference: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return a paired difference, in points of a percentage.

    Parameters
    ----------
    first, second : str
        Names of the detectors.
    difference : mapping
        As `redclf.benchmark.evaluate.paired_difference` gives.
    """
    rows = []
    for path in HEADLINE:
        entry = difference[path]
        interval = entry["ci"]
        rows.append(
            (
                path,
                percent(entry["a"]),
                percent(entry["b"]),
                percent(entry["difference"], interval),
                "yes" if interval is not None and interval[0] > 0 else "no",
            )
        )
    title = f"{first} - {second}, paired over tasks, points [95 % interval]"
    return Table(title, ("metric", first, second, "difference", "above 0"), tuple(rows))


def tables(evaluation: Evaluation, breakdowns: bool = True) -> list[Table]:
    """Return all tables of one evaluation, in the order in which to print them."""
    result = [
        overall_table([evaluation]),
        at_least_one_table([evaluation]),
        localisation_table([evaluation]),
        triple_table([evaluation]),
    ]
    if breakdowns:
        result += [breakdown_table(evaluation, which) for which in BREAKDOWNS]
    return result


def render(evaluation: Evaluation, breakdowns: bool = True) -> RenderableType:
    """Return all tables of one evaluation for a rich console."""
    parts: list[RenderableType] = []
    notice = in_sample_notice(evaluation)
    if notice:
        parts.append(Text(notice, style="bold red"))
    parts += [table.rich() for table in tables(evaluation, breakdowns)]
    return Group(*parts)


def to_markdown(evaluation: Evaluation, breakdowns: bool = True) -> str:
    """Return all tables of one evaluation as Markdown."""
    notice = in_sample_notice(evaluation)
    parts = [f"**{notice}**\n"] if notice else []
    parts += [table.markdown() for table in tables(evaluation, breakdowns)]
    return "\n".join(parts)


def in_sample_notice(evaluation: Evaluation) -> str:
    """Return the warning above the tables of a detector that was trained on these runs, or ""."""
    if not evaluation.in_sample:
        return ""
    return (
        f"{IN_SAMPLE}: {evaluation.detector} was trained on {evaluation.in_sample} of these "
        f"{len(evaluation.items)} trajectories; the figures say nothing about new ones."
    )


def _name(evaluation: Evaluation) -> str:
    return f"{evaluation.detector} ({IN_SAMPLE})" if evaluation.in_sample else evaluation.detector


def _detectors(
    title: str,
    evaluations: Sequence[Evaluation],
    columns: Mapping[str, str],
    numbers: Mapping[str, str],
) -> Table:
    rows = []
    for evaluation in evaluations:
        scores = evaluation.to_dict()
        cells = [_cell(scores, path) for path in columns.values()]
        counts = [str(_find(scores, path)) for path in numbers.values()]
        rows.append((_name(evaluation), *cells, *counts))
    return Table(title, ("detector", *columns, *numbers), tuple(rows))


def _find(scores: Mapping[str, Any], path: str) -> Any:
    value: Any = scores
    for name in path.split("."):
        value = value[name]
    return value


def _cell(scores: Mapping[str, Any], path: str) -> str:
    block, _, name = path.rpartition(".")
    values = _find(scores, block)
    return percent(values.get(name), values["ci"].get(name))


def _escape(cell: str) -> str:
    return cell.replace("|", "\\|")
