"""`redclf evaluate`: score a detector on RedundancyBench."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

from redclf.benchmark.data import load_benchmark
from redclf.benchmark.evaluate import check_out_of_sample, evaluate
from redclf.benchmark.tables import render
from redclf.commands.output import atomic_writer, complain, console
from redclf.detectors.registry import create_detector

#: The tables with intervals are wide.
_WIDTH = 170


def run_evaluate(
    data: Path,
    subset: str | None = None,
    domain: str | None = None,
    detector: str = "cross-encoder",
    model: str | None = None,
    json_file: Path | None = None,
    allow_train: bool = False,
) -> None:
    """Run the command.

    Raises
    ------
    RedclfError
        If the data or the detector can't be loaded, or the figures would be in-sample.
    """
    judge = create_detector(detector, model, data)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        items = load_benchmark(data, subset, domain)
    for warning in caught:
        complain(str(warning.message), "warning")
    check_out_of_sample(judge, items, allow_train)

    from rich.console import Console
    from rich.progress import Progress

    quiet = not sys.stderr.isatty()
    with Progress(console=Console(file=sys.stderr), transient=True, disable=quiet) as bar:
        judge.prepare(items)
        task = bar.add_task(f"{judge.name}", total=len(items))
        result = evaluate(judge, items, lambda done, _: bar.update(task, completed=done))
        scores = result.to_dict()
    console(_WIDTH).print(render(result))
    if json_file is not None:
        with atomic_writer(json_file) as stream:
            json.dump(scores, stream, indent=2, ensure_ascii=False, allow_nan=False)
            stream.write("\n")
