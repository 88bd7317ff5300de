"""`redclf detect`: find the redundant steps of recorded runs, as a table or as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redclf import __version__
from redclf.commands.output import ResumableWriter, complain, console, count, one_line, print_json
from redclf.commands.progress import Progress
from redclf.detectors.base import Prediction
from redclf.detectors.registry import PREFIXES
from redclf.engine.local import score_all
from redclf.engine.scorer import Counts, Done, Key, Outcome, Scorer, ScorerSettings
from redclf.errors import RedclfError
from redclf.readers import Reading, find_files
from redclf.readers.registry import AUTO, reader_named
from redclf.redact import redact
from redclf.tokens import step_tokens
from redclf.trajectory import Trajectory

if TYPE_CHECKING:
    from rich.console import RenderableType

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY)

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
    workers: int = 1
    engine: str = LOCAL
    resume: bool = False
    redact: bool = False


@dataclass
class _Totals:
    trajectories: int = 0
    steps: int = 0
    redundant: int = 0
    tokens: int = 0
    redundant_tokens: int = 0
    errors: int = 0

    def add(self, counts: Counts) -> None:
        self.trajectories += 1
        self.steps += counts.steps
        self.redundant += counts.redundant
        self.tokens += counts.tokens
        self.redundant_tokens += counts.redundant_tokens

    def __str__(self) -> str:
        share = f" ({self.redundant / self.steps:.0%})" if self.steps else ""
        runs, steps = count(self.trajectories, "trajectory"), count(self.steps, "step")
        tokens = f"about {self.redundant_tokens:,} of {count(self.tokens, 'token')} in redundant steps"
        return f"{runs}, {steps}, {self.redundant:,} redundant{share}; {tokens}"


@dataclass
class _Run:
    """One call of the command: where results go, and what has been counted."""

    options: DetectOptions
    writer: ResumableWriter | None
    show: Callable[[RenderableType], None] | None
    progress: Progress
    totals: _Totals = field(default_factory=_Totals)

    def fail(self, error: RedclfError) -> None:
        """Report an error and go on, or stop where that was asked for."""
        shown = redact(str(error)) if self.options.redact else str(error)
        if self.options.strict:
            raise RedclfError(shown)
        complain(shown)
        self.totals.errors += 1

    def take(self, outcome: Outcome) -> None:
        """Count, write and show what became of a trajectory."""
        self.progress.advance()
        if outcome.error is not None:
            self.fail(outcome.error)
            return
        for warning in outcome.warnings:
            complain(f"{outcome.where}: {warning}", "warning")
        self.totals.add(outcome.counts)
        if outcome.record is not None and self.writer is not None:
            self.writer.write(outcome.record)
        if outcome.record is not None and self.options.as_json:
            print_json(outcome.record)
        if outcome.drawing is not None and self.show is not None:
            self.show(outcome.drawing)


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
    if options.resume and options.output is None:
        raise RedclfError("--resume: expected --output, the file of the run that goes on")
    if options.workers > 1 and options.detector.startswith(tuple(PREFIXES)):
        raise RedclfError(
            f"--workers: expected 1 for {options.detector}, which sends several requests at a time itself"
        )
    if options.resume and options.redact:
        raise RedclfError("--resume: expected none with --redact, which masks the names that it goes by")
    quiet = options.as_json or options.output is not None
    settings = ScorerSettings(
        options.detector,
        options.model,
        options.threshold,
        options.top_k,
        render=None if quiet else render,
        redact=options.redact,
    )
    screen = None if options.as_json else console()
    done: dict[Key, list[tuple[int, int]]] = {}
    if options.output is not None:
        _check_output(options)
        if options.resume and options.output.exists() and not ResumableWriter.part_of(options.output).exists():
            console(stderr=True).print(f"nothing to resume: {options.output} is complete", markup=False)
            return 0
    scorer = Scorer(settings)  # before any file is opened: an unfinished run is not given up for a mistyped name
    writer = None
    if options.output is not None:
        writer = ResumableWriter(options.output, _about(options), options.resume, partial(_note_done, done))
    with Progress(wanted=quiet) as progress:
        run = _Run(options, writer, None if quiet or screen is None else screen.print, progress)
        try:
            if options.engine == RAY:
                _score_on_ray(run, scorer, done)
            else:
                trajectories = _read_all(run)
                for outcome in score_all(trajectories, scorer, options.workers, done):
                    run.take(outcome)
        except BaseException:
            if writer is not None:
                _leave(writer, bool(run.totals.trajectories or done))
            raise
    if writer is not None:
        if not run.totals.trajectories:
            _leave(writer, bool(done))
            raise RedclfError(f"{options.output}: not written, since no trajectory could be read")
        writer.finish()
    if screen is not None:
        screen.print(str(run.totals), style="bold", markup=False)
        if options.output is not None:
            screen.print(f"written to {one_line(str(options.output))}", markup=False)
    return run.totals.errors


def _about(options: DetectOptions) -> dict[str, Any]:
    """Return what decides the results, as an unfinished run notes it."""
    values = {
        "version": __version__,
        "detector": options.detector,
        "model": options.model,
        "threshold": options.threshold,
        "top_k": options.top_k,
        "format": options.format,
        "redact": options.redact,
    }
    return {key.replace("_", "-"): value for key, value in values.items()}


def _note_done(done: dict[Key, list[tuple[int, int]]], record: dict[str, Any]) -> None:
    steps = [tuple(found["redundant_step_idx"]) for found in record["predictions"]]
    done[record["source"], record["trajectory_id"]] = steps


def _leave(writer: ResumableWriter, has_results: bool) -> None:
    """Keep an interrupted run's results for `--resume`, if it has any."""
    if not has_results:
        writer.discard()
        return
    writer.close()
    complain(f"what was scored is in {writer.part}; the same command with --resume goes on from there", "note")


def _read_all(run: _Run) -> Iterator[Trajectory]:
    """Yield the trajectories of all paths, and report what can't be read."""
    readings = [Reading(path, run.options.format, run.fail) for path in run.options.paths]
    run.progress.start(readings)
    for reading in readings:
        yield from reading


def _score_on_ray(run: _Run, scorer: Scorer, done: Done) -> None:
    from redclf.engine.ray_engine import score_files

    files: list[Path] = []
    for path in run.options.paths:
        try:
            files += find_files(path)
        except RedclfError as error:
            run.fail(error)
    for item in score_files(files, scorer, run.options.format, run.options.workers, done):
        if isinstance(item, RedclfError):
            run.fail(item)
        else:
            run.take(item)


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
