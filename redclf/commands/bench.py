"""`redclf bench`: latency, throughput, memory, growth, cost, and how near the encoder is to the machine's limit."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from redclf.bench.data import synthetic
from redclf.bench.run import BenchSettings, bench
from redclf.benchmark.data import LabelledTrajectory, load_benchmark
from redclf.commands.output import atomic_writer, console

#: Dollars for an hour of one virtual CPU, on demand, and when that was looked up.
CPU_HOUR, CPU_HOUR_DATE = 0.05, "2025-09"
_MADE = 24


def run_bench(data: Path | None, json_file: Path | None, settings: BenchSettings) -> None:
    """Measure and print.

    Parameters
    ----------
    data : Path or None
        Benchmark folder; made trajectories are measured on without one.
    json_file : Path or None
    settings : BenchSettings

    Raises
    ------
    RedclfError
        If the data or the model can't be loaded.
    """
    labelled: list[LabelledTrajectory] = [] if data is None else load_benchmark(data)
    trajectories = [item.trajectory for item in labelled] or [synthetic(4 + n, n) for n in range(_MADE)]
    screen = console(stderr=True)
    figures = bench(trajectories, labelled, settings, lambda text: screen.print(text, style="dim", markup=False))
    figures = {"command": shlex.join(["redclf", *sys.argv[1:]]), "data": _data(data, labelled), **figures}
    _show(figures)
    if json_file is not None:
        with atomic_writer(json_file) as stream:
            json.dump(figures, stream, indent=1, allow_nan=False)
            stream.write("\n")


def _data(data: Path | None, labelled: list[LabelledTrajectory]) -> str:
    return "made trajectories" if data is None else f"{data.name}, {len(labelled)} trajectories"


def rows(figures: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what the terminal shows: name and value of each figure."""
    latency, cold, growth, encoder = (figures[key] for key in ("latency", "cold", "growth", "encoder"))
    yield "throughput of detect, model loaded, one process", f"{figures['throughput']:.1f} trajectories/s"
    workers = figures.get("throughput_workers")
    if workers:
        yield f"the same, {workers['workers']} processes", f"{workers['throughput']:.1f} trajectories/s"
    yield "latency of one trajectory: median, 95th percentile", f"{_ms(latency['median'])}, {_ms(latency['p95'])}"
    yield f"the longest, {latency['longest_steps']} steps", _ms(latency["longest"])
    yield (
        "redclf detect, cold, one trajectory: best, median",
        (f"{cold['seconds']['best']:.2f} s, {cold['seconds']['median']:.2f} s"),
    )
    yield "peak memory: one trajectory, all of them", f"{cold['megabytes_one']:.0f} MB, {cold['megabytes_all']:.0f} MB"
    if figures["install_megabytes"] is not None:
        yield "installed, with dependencies", f"{figures['install_megabytes']:.0f} MB"
    tasks = figures.get("all_tasks")
    if tasks:
        minutes = tasks["minutes_of_the_benchmark"]
        yield "all three tasks over 1,920 trajectories, extrapolated", f"{minutes:.1f} min"
        cost = minutes / 60 * figures["machine"]["cores"] * CPU_HOUR
        yield f"at ${CPU_HOUR} a CPU hour ({CPU_HOUR_DATE})", f"${cost:.4f}"
    for row in growth["rows"]:
        yield f"made run of {row['steps']} steps", f"{_ms(row['seconds'])}, {row['pairs']} pairs read"
    if growth["exponent_seconds"] is not None:
        pairs = growth["exponent_pairs"]
        text = f"time ~ steps^{growth['exponent_seconds']:.2f}"
        yield "growth", text if pairs is None else f"{text}, pairs ~ steps^{pairs:.2f}"
    for name, ratio in encoder.get("ratios", {}).items():
        yield name, f"{ratio:.2f} times"
    limit = encoder.get("limit") or {}
    if limit.get("int8_rate") and limit.get("fp32_rate"):
        yield (
            "matrix rate of the machine: int8, fp32",
            (f"{limit['int8_rate'] / 1e9:.0f}, {limit['fp32_rate'] / 1e9:.0f} G operations/s"),
        )
        yield (
            f"operations on {encoder['tokens_timed']:,} tokens: int8, fp32",
            (f"{limit['int8_operations'] / 1e9:.0f}, {limit['fp32_operations'] / 1e9:.0f} G"),
        )
        yield "the encoder, of the arithmetic limit", f"{100 * limit['share_of_the_limit']:.0f} %"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms"


def _show(figures: dict[str, Any]) -> None:
    from rich import box
    from rich.table import Table

    machine = figures["machine"]
    load = "" if machine["load_average"] is None else f", load average {machine['load_average']:.1f} at the start"
    title = f"{machine['cores']} cores, {machine['processor']}{load}; {figures['data']}"
    table = Table(box=box.SIMPLE_HEAD, title=title, show_header=False)
    table.add_column("figure")
    table.add_column("value", justify="right")
    for row in rows(figures):
        table.add_row(*row)
    screen = console()
    screen.print(table)
    screen.print(f"measured in {figures['seconds_in_all']:.0f} s", style="dim", markup=False)
