"""`redclf detect`: find the redundant steps of recorded runs, as a table or as JSON lines."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from redclf.commands.output import atomic_writer, complain, console, count, one_line, print_json
from redclf.detectors.base import Detector, Prediction
from redclf.detectors.registry import create_detector
from redclf.errors import RedclfError, TraceError
from redclf.readers import find_files, iter_trajectories
from redclf.readers.registry import AUTO, reader_named
from redclf.tokens import step_tokens
from redclf.trajectory import Trajectory

if TYPE_CHECKING:
    from rich.console import RenderableType

_ARGUMENTS = 56
_TITLE = 100


@dataclass(frozen=True)
class DetectOptions:
    """The options of `redclf detect`."""

    paths: tuple[Path, ...]
    format: str = AUTO
    detector: str = "cross-encoder"
    model: str | None = None
    threshold: float | None = None
    top_k: int | None = None
    output: Path | None = None
    as_json: bool = False
    strict: bool = False


@dataclass
class _Totals:
    trajectories: int = 0
    steps: int = 0
    redundant: int = 0
    tokens: int = 0
    redundant_tokens: int = 0
    errors: int = 0

    def add(self, trajectory: Trajectory, predictions: Sequence[Prediction]) -> None:
        self.trajectories += 1
        self.steps += len(trajectory.assistant_interactions)
        self.tokens += sum(step_tokens(trajectory, item) for item in trajectory.assistant_interactions)
        found = {prediction.step for prediction in predictions}
        self.redundant += len(found)
        self.redundant_tokens += sum(step_tokens(trajectory, trajectory.interaction_at(step)) for step in found)

    def __str__(self) -> str:
        share = f" ({self.redundant / self.steps:.0%})" if self.steps else ""
        runs, steps = count(self.trajectories, "trajectory"), count(self.steps, "step")
        tokens = f"about {self.redundant_tokens:,} of {count(self.tokens, 'token')} in redundant steps"
        return f"{runs}, {steps}, {self.redundant:,} redundant{share}; {tokens}"


@dataclass
class _Run:
    """One call of the command: where results go, and what has been counted."""

    options: DetectOptions
    detector: Detector
    stream: IO[str] | None
    show: Callable[[RenderableType], None] | None
    totals: _Totals = field(default_factory=_Totals)

    def read(self, path: Path) -> None:
        for trajectory in iter_trajectories(path, self.options.format, self.fail):
            self.score(trajectory)

    def fail(self, error: RedclfError) -> None:
        """Report an error and go on, or stop where that was asked for."""
        if self.options.strict:
            raise error
        complain(str(error))
        self.totals.errors += 1

    def score(self, trajectory: Trajectory) -> None:
        try:
            predictions = self.detector.detect(trajectory, self.options.threshold, self.options.top_k)
            reason = None if predictions else self.detector.no_answer(trajectory)
            if reason is not None:
                raise TraceError(f"no answer of {self.detector.name}: {reason}", trajectory.source or trajectory.id)
        except RedclfError as error:
            self.fail(error)
            return
        except Exception as error:
            if os.environ.get("REDCLF_DEBUG"):
                raise
            place = trajectory.source or trajectory.id
            self.fail(RedclfError(f"{place}: unexpected {type(error).__name__}: {error} (REDCLF_DEBUG=1 shows where)"))
            return
        warnings = pairing_warnings(trajectory)
        for warning in warnings:
            complain(f"{trajectory.source or trajectory.id}: {warning}", "warning")
        self.totals.add(trajectory, predictions)
        if self.stream is not None or self.options.as_json:
            record = to_record(trajectory, predictions, warnings)
            if self.stream is not None:
                self.stream.write(json.dumps(record, ensure_ascii=False) + "\n")
            if self.options.as_json:
                print_json(record)
        if self.show is not None:
            self.show(render(trajectory, predictions))


def run_detect(options: DetectOptions) -> int:
    """Run the command.

    Returns
    -------
    int
        How many files, records or trajectories were refused; each has been reported on stderr.

    Raises
    ------
    RedclfError
        If nothing can be done at all, or at the first error with `strict`.
    """
    if options.format != AUTO:
        reader_named(options.format)
    if options.output is not None:
        _check_output(options)
    detector = create_detector(options.detector, options.model)
    quiet = options.as_json or options.output is not None
    screen = None if options.as_json else console()
    with ExitStack() as stack:
        stream = None if options.output is None else stack.enter_context(atomic_writer(options.output))
        show = None if quiet or screen is None else screen.print
        run = _Run(options, detector, stream, show)
        for path in options.paths:
            try:
                run.read(path)
            except RedclfError as error:
                if options.strict:
                    raise
                run.fail(error)
        if not run.totals.trajectories and options.output is not None:
            raise RedclfError(f"{options.output}: not written, since no trajectory could be read")
    if screen is not None:
        screen.print(str(run.totals), style="bold", markup=False)
        if options.output is not None:
            screen.print(f"written to {one_line(str(options.output))}", markup=False)
    return run.totals.errors


def pairing_warnings(trajectory: Trajectory) -> list[str]:
    """Return what is odd about a trajectory: calls and results that have no partner."""
    unanswered, orphans = trajectory.pairing.unanswered_calls, trajectory.pairing.orphan_results
    warnings = []
    if unanswered:
        warnings.append(f"{count(len(unanswered), 'call')} without a result, not scored")
    if orphans:
        warnings.append(f"{count(len(orphans), 'result')} without a call, not scored")
    return warnings


def to_record(trajectory: Trajectory, predictions: Sequence[Prediction], warnings: Sequence[str]) -> dict[str, Any]:
    """Return one line of the JSON output."""
    return {
        "trajectory_id": trajectory.id,
        "source": trajectory.source,
        "failed": trajectory.failed,
        "warnings": list(warnings),
        "predictions": [prediction.to_dict() for prediction in predictions],
    }


def render(trajectory: Trajectory, predictions: Sequence[Prediction]) -> RenderableType:
    """Return a trajectory's table for a rich console."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    steps = len(trajectory.assistant_interactions)
    title = Text(one_line(trajectory.id, _TITLE), style="bold")
    title.append(f"  {count(len(trajectory.messages), 'message')}, {count(steps, 'step')}", style="not bold dim")
    if trajectory.source:
        title.append(f"  {one_line(trajectory.source)}", style="not bold dim")
    parts: list[RenderableType] = [title]
    if trajectory.failed:
        parts.append(Text("FAILED RUN (reward 0): redundancy is defined on successful runs", style="yellow"))
    if not predictions:
        parts.append(Text("no redundant steps found\n" if steps else "no tool calls with results\n"))
        return Group(*parts)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    table.add_column("step", no_wrap=True)
    table.add_column("tool call and reason", ratio=1, min_width=30)
    table.add_column("category", no_wrap=True)
    table.add_column("conf.", justify="right", no_wrap=True)
    table.add_column("evidence", max_width=16)
    table.add_column("tokens", justify="right", no_wrap=True)
    for prediction in predictions:
        call = Text(call_text(trajectory, prediction), style="bold")
        if prediction.reason:
            call.append(f"\n{one_line(prediction.reason)}", style="not bold")
        table.add_row(
            Text(_indices(prediction.step)),
            call,
            Text(prediction.category.removesuffix(" Step"), style=_STYLES.get(prediction.category, "")),
            Text(f"{prediction.confidence:.2f}"),
            Text("policy or rule" if prediction.evidence == (-1,) else _indices(prediction.evidence)),
            Text(f"{prediction.tokens or step_tokens(trajectory, trajectory.interaction_at(prediction.step)):,}"),
        )
    parts.append(table)
    return Group(*parts)


_STYLES = {
    "Incorrect Step": "red",
    "Abnormal Step": "yellow",
    "Duplicated Step": "cyan",
    "Exploratory Step": "magenta",
}


def call_text(trajectory: Trajectory, prediction: Prediction) -> str:
    """Return the tool and its arguments, clipped to a line."""
    call = trajectory.interaction_at(prediction.step).call
    if isinstance(call.arguments, dict):
        parts = (
            f"{key}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)}"
            for key, value in call.arguments.items()
        )
        arguments = ", ".join(parts)
    else:
        arguments = "" if call.arguments is None else str(call.arguments)
    return f"{one_line(call.name, _ARGUMENTS)}({one_line(arguments, _ARGUMENTS)})"


def _indices(indices: Sequence[int]) -> str:
    return f"[{', '.join(map(str, indices))}]"


def _check_output(options: DetectOptions) -> None:
    """Refuse before any work what would overwrite an input."""
    assert options.output is not None
    for path in options.paths:
        try:
            same = any(options.output.exists() and options.output.samefile(file) for file in find_files(path))
        except (OSError, ValueError, RedclfError):
            continue
        if same:
            raise RedclfError(f"--output: expected another file than the trace {options.output}")
