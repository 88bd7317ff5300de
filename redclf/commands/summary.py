"""`redclf summary` and `redclf gate`: where the waste is, and whether there is too much of it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redclf.accounting import load_prices
from redclf.commands.output import atomic_writer, complain, console, count, one_line
from redclf.detectors.base import Prediction
from redclf.detectors.registry import create_detector
from redclf.errors import RedclfError
from redclf.gate import ALL, Limit, baseline_limits, check, junit, markdown
from redclf.readers import iter_trajectories
from redclf.readers.registry import AUTO, reader_named
from redclf.summary import GROUPS, Summary, Waste, summarise
from redclf.trajectory import Trajectory

#: Lines of a table in the terminal; the files have all.
_MOST = 12
_NAME = 60


@dataclass(frozen=True)
class SummaryOptions:
    """What is summed up, and how."""

    paths: tuple[Path, ...]
    format: str = AUTO
    detector: str = "cross-encoder"
    model: str | None = None
    threshold: float | None = None
    prices: Path | None = None
    priced_as: str | None = None


class _Runs:
    """Reads and scores, and keeps what was refused and what was found."""

    def __init__(self, options: SummaryOptions) -> None:
        if options.format != AUTO:
            reader_named(options.format)
        self.options = options
        self.errors = 0
        self.found: list[tuple[str, Prediction]] = []
        self._detector = create_detector(options.detector, options.model)

    def __iter__(self) -> Iterator[tuple[Trajectory, Sequence[Prediction]]]:
        for path in self.options.paths:
            for trajectory in iter_trajectories(path, self.options.format, self._fail):
                try:
                    predictions = self._detector.detect(trajectory, self.options.threshold)
                except RedclfError as error:
                    self._fail(error)
                    continue
                self.found += [(trajectory.source or trajectory.id, prediction) for prediction in predictions]
                yield trajectory, predictions

    def _fail(self, error: RedclfError) -> None:
        complain(str(error))
        self.errors += 1


def _summary(options: SummaryOptions) -> tuple[Summary, _Runs]:
    runs = _Runs(options)
    summary = summarise(runs, load_prices(options.prices), options.priced_as)
    if not summary.trajectories:
        raise RedclfError("expected trajectories that can be read, got none")
    return summary, runs


def run_summary(options: SummaryOptions, json_file: Path | None, csv_file: Path | None) -> int:
    """Print where the waste is.

    Returns
    -------
    int
        How many files or records were refused.
    """
    summary, runs = _summary(options)
    _show(summary)
    if json_file is not None:
        _write_json(summary.to_dict(), json_file)
    if csv_file is not None:
        with atomic_writer(csv_file) as stream:
            stream.write(_csv(summary))
    return runs.errors


def _write_json(value: Any, path: Path) -> None:
    with atomic_writer(path) as stream:
        json.dump(value, stream, indent=1, ensure_ascii=False)
        stream.write("\n")


def _csv(summary: Summary) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    names = list(Waste().to_dict())
    writer.writerow(["by", "name", *names])
    for kind, name, waste in summary.rows():
        writer.writerow([kind, name, *("" if value is None else value for value in waste.to_dict().values())])
    return text.getvalue()


def _show(summary: Summary) -> None:
    from rich import box
    from rich.table import Table

    screen = console()
    for kind in GROUPS:
        groups = [item for item in summary.ordered(kind) if item[1].steps]
        if not groups or (kind in ("model", "file") and len(summary.groups[kind]) == 1):
            continue
        table = Table(box=box.SIMPLE_HEAD, title=f"by {kind}", title_justify="left", pad_edge=False)
        table.add_column(kind)
        for heading in ("redundant", "of steps", "tokens", "$", "$ with cache"):
            table.add_column(heading, justify="right")
        for name, waste in groups[:_MOST]:
            table.add_row(one_line(name, _NAME), *_cells(waste))
        screen.print(table)
        if len(groups) > _MOST:
            screen.print(f"and {len(groups) - _MOST} more", style="dim", markup=False)
    total = summary.total
    share = f" ({total.share:.0%})" if total.share is not None else ""
    how = " and ".join(sorted(summary.sources))
    screen.print(
        f"{count(summary.trajectories, 'trajectory')}, {total.steps:,} of {count(total.of, 'step')} redundant{share}; "
        f"they cost about {total.tokens:,} of {summary.tokens:,} tokens ({how}), {_dollars(total.dollars)} "
        f"({_dollars(total.dollars_cached)} with a prompt cache)",
        style="bold",
        markup=False,
    )
    if total.dollars is None:
        screen.print("no price for every model; --priced-as NAME or --prices FILE gives one", style="dim", markup=False)


def _cells(waste: Waste) -> list[str]:
    share = "" if waste.share is None else f"{waste.of:,} ({waste.share:.0%})"
    return [f"{waste.steps:,}", share, f"{waste.tokens:,}", _dollars(waste.dollars), _dollars(waste.dollars_cached)]


def _dollars(value: float | None) -> str:
    return "unknown" if value is None else f"${value:,.4f}" if value < 1 else f"${value:,.2f}"


@dataclass(frozen=True)
class GateOptions:
    """The limits, and where the verdict goes."""

    limits: tuple[Limit, ...]
    baseline: Path | None = None
    tolerance: float = 0.0
    write_baseline: Path | None = None
    junit_file: Path | None = None
    markdown_file: Path | None = None


def run_gate(options: SummaryOptions, gate: GateOptions) -> bool:
    """Check the limits, and print what breaks them.

    Returns
    -------
    bool
        Whether all hold.

    Raises
    ------
    RedclfError
        If there is no limit, or a file can't be read: what was not checked did not pass.
    """
    limits = list(gate.limits)
    if gate.baseline is not None:
        limits += baseline_limits(_read_json(gate.baseline), gate.tolerance)
    if not limits and gate.write_baseline is None:
        raise RedclfError("expected a limit: --max-share, --max-count, --max-tokens or --baseline")
    summary, runs = _summary(options)
    if runs.errors:
        raise RedclfError(f"{count(runs.errors, 'error')} above: what can't be read can't be checked")
    checks = check(summary, limits)
    report = markdown(checks, summary)
    steps = {name: "\n".join(_lines(runs.found, name)) for name in {found.limit.category for found in checks}}
    if gate.junit_file is not None:
        with atomic_writer(gate.junit_file) as stream:
            stream.write(junit(checks, steps))
    if gate.markdown_file is not None:
        with atomic_writer(gate.markdown_file) as stream:
            stream.write(report)
    if gate.write_baseline is not None:
        _write_json(summary.to_dict(), gate.write_baseline)
    _show_checks(checks, summary, runs)
    return all(found.passed for found in checks)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise RedclfError(f"--baseline: expected a summary as --write-baseline writes it, got {path}") from None


def _lines(found: Sequence[tuple[str, Prediction]], category: str) -> Iterator[str]:
    for where, prediction in found:
        if category in (ALL, prediction.category):
            yield (
                f"{where}, step {list(prediction.step)}: {prediction.tool}, {prediction.category}, "
                f"evidence {list(prediction.evidence)}. {one_line(prediction.reason)}"
            )


def _show_checks(checks: Sequence[Any], summary: Summary, runs: _Runs) -> None:
    from rich import box
    from rich.table import Table

    screen = console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, side in (("limit", "left"), ("found", "right"), ("at most", "right"), ("", "left")):
        table.add_column(heading, justify=side)  # type: ignore[arg-type]
    for found in checks:
        name = f"{found.limit.name} ({found.limit.source})"
        style = None if found.passed else "red"
        verdict = "ok" if found.passed else "broken"
        table.add_row(name, found.text(found.found), found.text(found.limit.most), verdict, style=style)
    if checks:
        screen.print(table)
    broken = {found.limit.category for found in checks if not found.passed}
    if broken:
        lines = list(_lines(runs.found, ALL if ALL in broken else next(iter(broken))))
        for line in lines[:_MOST]:
            screen.print(one_line(line), markup=False)
        if len(lines) > _MOST:
            screen.print(f"and {len(lines) - _MOST} more", style="dim", markup=False)
    total = summary.total
    screen.print(f"{total.steps:,} of {count(total.of, 'step')} redundant", style="bold", markup=False)
