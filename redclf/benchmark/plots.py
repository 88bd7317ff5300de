"""Plots of a comparison, with matplotlib (the `plots` extra)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from redclf.benchmark.compare import MAIN, TASKS, Comparison
from redclf.errors import RedclfError
from redclf.taxonomy import CATEGORIES

COST, BARS, BAND = "accuracy_cost.png", "categories.png", "band.png"


def write_plots(comparison: Comparison, folder: Path) -> list[Path]:
    """Write accuracy against cost, bars per category and, for a cascade, the curve over its band.

    Only measured figures are drawn. Accuracy against cost needs at least one price.

    Raises
    ------
    RedclfError
        If matplotlib is missing or the folder can't be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise RedclfError(
            "--plots: expected the plots extra, matplotlib missing; run: pip install 'redclf[plots]'"
        ) from None
    drawn: dict[str, Any] = {BARS: _bars(comparison, Figure)}
    if any(row.usage.cost_usd for row in comparison.rows):
        drawn[COST] = _cost(comparison, Figure)
    if any(row.band for row in comparison.rows):
        drawn[BAND] = _band(comparison, Figure)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, figure in drawn.items():
            figure.savefig(folder / name, dpi=150)
    except OSError as error:
        raise RedclfError(f"{folder}: expected a folder that can be written, got: {error.strerror}") from None
    return [folder / name for name in drawn]


def _cost(comparison: Comparison, make: Any) -> Any:
    from matplotlib.ticker import NullFormatter

    figure = make(figsize=(12, 4.5), layout="constrained")
    priced = [row for row in comparison.rows if row.usage.cost_usd]
    powers = [math.log10(row.usage.cost_usd or 1) for row in priced]
    for axes, (task, path) in zip(figure.subplots(1, len(MAIN)), MAIN.items(), strict=True):
        for row in comparison.rows:
            value = 100 * row.evaluation.metric(path)
            if row.usage.cost_usd:
                axes.plot(row.usage.cost_usd, value, "o", label=row.label)
            elif row.usage.cost_usd == 0:
                # Zero has no place on a log axis: a line across.
                axes.axhline(value, linestyle="--", linewidth=1, color="grey")
                place = ("axes fraction", "data")
                axes.annotate(f"{row.label} (free)", (0.02, value), xycoords=place, fontsize=7, va="bottom")
        # Whole decades, so that the axis has labels however near the costs are.
        axes.set(xscale="log", xlabel="dollars (log)", ylabel="%", title=TASKS[task][0])
        axes.set_xlim(10 ** (math.floor(min(powers)) - 0.05), 10 ** (math.floor(max(powers)) + 1.05))
        axes.xaxis.set_minor_formatter(NullFormatter())
    _legend(figure, axes)
    return figure


def _bars(comparison: Comparison, make: Any) -> Any:
    figure = make(figsize=(12, 4.5), layout="constrained")
    width = 0.8 / len(comparison.rows)
    for axes, (task, path) in zip(figure.subplots(1, len(MAIN)), MAIN.items(), strict=True):
        block, name = path.split(".")
        for number, row in enumerate(comparison.rows):
            parts = row.evaluation.to_dict()["by_category"]
            values = [parts.get(category, {}).get(block, {}).get(name) for category in CATEGORIES]
            places = [place + (number + 0.5) * width - 0.4 for place in range(len(CATEGORIES))]
            axes.bar(places, [100 * (value or 0) for value in values], width, label=row.label)
        axes.set_xticks(range(len(CATEGORIES)), [category.removesuffix(" Step") for category in CATEGORIES], fontsize=8)
        axes.set(ylim=(0, 100), ylabel="%", title=TASKS[task][0])
    _legend(figure, axes)
    return figure


def _legend(figure: Any, axes: Any) -> None:
    """Put the legend of one of the axes, which all share it, below them."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)


def _band(comparison: Comparison, make: Any) -> Any:
    figure = make(figsize=(8, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for row in comparison.rows:
        if not row.band:
            continue
        widths = [point.width for point in row.band]
        for task, path in MAIN.items():
            values = [math.nan if (value := point.scores[path]) is None else 100 * value for point in row.band]
            left.plot(widths, values, marker=".", label=f"{row.label}: {TASKS[task][0]}")
        costs = [point.usage.cost_usd for point in row.band]
        priced = all(cost is not None for cost in costs)
        right.plot(widths, costs if priced else [point.usage.requests or 0 for point in row.band], marker=".")
        right.set(xlabel="width of the band", ylabel="dollars" if priced else "requests")
    left.set(xlabel="width of the band", ylabel="%")
    left.legend(fontsize=7)
    return figure
