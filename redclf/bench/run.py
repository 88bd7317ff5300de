"""The measurements of `redclf bench`, and their figures as JSON values."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from redclf import __version__
from redclf.bench.data import synthetic, write_lines
from redclf.bench.encoder import CountingDetector, measure
from redclf.bench.machine import describe, install_bytes
from redclf.benchmark.data import LabelledTrajectory, spread
from redclf.detectors.cross_encoder import CrossEncoderDetector
from redclf.engine.local import score_all
from redclf.engine.scorer import Scorer, ScorerSettings
from redclf.trajectory import Trajectory

#: Trajectories and steps of the whole benchmark (arXiv 2605.29893).
FULL, FULL_STEPS = 1920, 3613
#: Lengths of the made runs.
LENGTHS = (20, 50, 100, 200, 400)
_MEGABYTE = 2**20

Log = Callable[[str], None]


@dataclass(frozen=True)
class BenchSettings:
    """What is measured, and on how much.

    Parameters
    ----------
    model : str or None
    limit : int
        Trajectories for throughput and latency.
    pairs : int
        Pairs for the encoder's ratios.
    starts : int
        Cold starts.
    workers : int
        Processes of the second throughput; 1 leaves it out.
    """

    model: str | None = None
    limit: int = 150
    pairs: int = 120
    starts: int = 5
    workers: int = 2


def bench(
    trajectories: Sequence[Trajectory],
    labelled: Sequence[LabelledTrajectory],
    settings: BenchSettings,
    log: Log,
) -> dict[str, Any]:
    """Measure everything, and return it as JSON values.

    Parameters
    ----------
    trajectories : sequence of Trajectory
    labelled : sequence of LabelledTrajectory
        The same with labels, where there are any: for the time of all three tasks.
    settings : BenchSettings
    log : callable
        Told of what is being measured.
    """
    started = time.perf_counter()
    sample = spread(trajectories, settings.limit)
    longest = max(trajectories, key=lambda run: len(run.interactions))
    found: dict[str, Any] = {"version": __version__, "machine": describe(), "trajectories": len(sample)}
    detector = CrossEncoderDetector(settings.model)
    log("throughput and latency")
    found |= _latency(detector, sample, longest)
    if settings.workers > 1:
        log(f"throughput of {settings.workers} processes")
        found["throughput_workers"] = _throughput(settings, sample)
    if labelled:
        log("all three tasks")
        found["all_tasks"] = _all_tasks(detector, spread(labelled, settings.limit))
    log("cold start and memory")
    found["cold"] = _cold(settings, sample, detector)
    log("growth with the length")
    found["growth"] = _growth(settings.model)
    log("the encoder by itself")
    found["encoder"] = measure(settings.model, spread(sample, 40), settings.pairs, log)
    found["install_megabytes"] = None if (size := install_bytes()) is None else size / _MEGABYTE
    found["seconds_in_all"] = time.perf_counter() - started
    return found


def _latency(detector: CrossEncoderDetector, sample: Sequence[Trajectory], longest: Trajectory) -> dict[str, Any]:
    """Return throughput, and the time of a trajectory at median, 95th percentile and greatest length."""
    detector.detect(sample[0])
    times = []
    for trajectory in sample:
        started = time.perf_counter()
        detector.detect(trajectory)
        times.append(time.perf_counter() - started)
    repeated = []
    for _ in range(3):
        detector.forget()
        started = time.perf_counter()
        detector.detect(longest)
        repeated.append(time.perf_counter() - started)
    return {
        "throughput": len(sample) / sum(times),
        "latency": {
            "median": statistics.median(times),
            "p95": float(np.percentile(times, 95)),
            "longest": statistics.median(repeated),
            "longest_steps": len(longest.interactions),
        },
    }


def _throughput(settings: BenchSettings, sample: Sequence[Trajectory]) -> dict[str, Any]:
    """Return the throughput of several processes, the time of their start left out by the difference of two runs."""
    scorer = Scorer(ScorerSettings("cross-encoder", settings.model))
    seconds = []
    for part in (sample[: settings.workers], [*sample, *sample[: settings.workers]]):
        started = time.perf_counter()
        for _ in score_all(part, scorer, settings.workers):
            pass
        seconds.append(time.perf_counter() - started)
    return {
        "workers": settings.workers,
        "throughput": len(sample) / max(seconds[1] - seconds[0], 1e-9),
        "start_seconds": seconds[0],
    }


def _all_tasks(detector: CrossEncoderDetector, items: Sequence[LabelledTrajectory]) -> dict[str, Any]:
    """Return the time of detection, classification and retrieval of all gold steps, and of the whole benchmark."""
    steps = 0
    detector.forget()
    started = time.perf_counter()
    for item in items:
        detector.detect(item.trajectory)
        for gold in item.gold:
            detector.classify(item.trajectory, gold.step, gold.evidence)
            detector.retrieve(item.trajectory, gold.step)
            steps += 1
    seconds = time.perf_counter() - started
    return {
        "trajectories": len(items),
        "steps": steps,
        "seconds": seconds,
        "minutes_of_the_benchmark": seconds * FULL / len(items) / 60,
    }


def _cold(settings: BenchSettings, sample: Sequence[Trajectory], detector: CrossEncoderDetector) -> dict[str, Any]:
    """Return seconds and peak memory of the command in a process of its own."""
    typical = sorted(sample, key=lambda run: len(run.messages))[len(sample) // 2]
    with tempfile.TemporaryDirectory() as folder:
        one, many = Path(folder) / "one.jsonl", Path(folder) / "many.jsonl"
        write_lines([typical], one)
        write_lines(sample, many)
        starts = [_run(one, Path(folder), detector) for _ in range(settings.starts)]
        whole = _run(many, Path(folder), detector)
    seconds = [run[0] for run in starts]
    return {
        "seconds": {"best": min(seconds), "median": statistics.median(seconds)},
        "megabytes_one": max(run[1] for run in starts),
        "megabytes_all": whole[1],
        "messages": len(typical.messages),
    }


def _run(path: Path, folder: Path, detector: CrossEncoderDetector) -> tuple[float, float]:
    """Run the command on a file; return its seconds, and its peak memory in megabytes."""
    command = [sys.executable, "-m", "redclf", "detect", str(path), "--output", str(folder / "out.jsonl")]
    command += ["--model", str(detector.folder.path)]
    # The peak of all children so far would be that of the largest, so that a process of its own waits for it.
    code = (
        "import resource, subprocess, sys, time; started = time.perf_counter(); "
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); "
        "print(time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", code, *command], check=True, capture_output=True, text=True)
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak) * _RSS_UNIT / _MEGABYTE


#: `ru_maxrss` is in bytes on macOS, in kilobytes elsewhere.
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def _growth(model: str | None) -> dict[str, Any]:
    """Return time and encoder calls of made runs, and the exponents with which both grow."""
    detector = CountingDetector(model)
    rows = []
    for steps in LENGTHS:
        trajectory = synthetic(steps)
        detector.pairs.clear()
        detector.forget()
        started = time.perf_counter()
        detector.detect(trajectory)
        rows.append({"steps": steps, "seconds": time.perf_counter() - started, "pairs": len(detector.pairs)})
    return {
        "rows": rows,
        "exponent_seconds": _exponent([(row["steps"], row["seconds"]) for row in rows]),
        "exponent_pairs": _exponent([(row["steps"], row["pairs"]) for row in rows]),
    }


def _exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the slope of a line through the logarithms; None where there are too few points above zero."""
    kept = [(math.log(x), math.log(y)) for x, y in points if y > 0]
    if len(kept) < 3:
        return None
    return float(np.polyfit([x for x, _ in kept], [y for _, y in kept], 1)[0])
