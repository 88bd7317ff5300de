"""`redclf prune`: write recorded runs back without their redundant steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redclf.accounting import Account, account
from redclf.commands.output import atomic_writer, complain, console, count, one_line
from redclf.detectors.base import Detector
from redclf.detectors.registry import create_detector
from redclf.errors import RedclfError
from redclf.pruning import EVIDENCE, SOURCE, WRITE, Choice, Plan, apply_plan, choose, plan_placeholders, plan_removal
from redclf.readers import Reader, find_files
from redclf.readers.document import Document
from redclf.readers.registry import AUTO, reader_named, recognise
from redclf.readers.writing import edit_messages, to_chat
from redclf.trajectory import Trajectory

#: What trajectories can be written as: their own format, or chat messages.
SAME, CHAT = "same", "openai_chat"
TARGETS = (SAME, CHAT)


@dataclass(frozen=True)
class PruneOptions:
    """The options of `redclf prune`."""

    paths: tuple[Path, ...]
    output: Path
    format: str = AUTO
    to: str = SAME
    detector: str = "cross-encoder"
    model: str | None = None
    threshold: float | None = None
    writes: bool = False
    placeholder: bool = False
    map_file: Path | None = None
    strict: bool = False


@dataclass
class _Totals:
    trajectories: int = 0
    removed: int = 0
    kept: dict[str, int] = field(default_factory=lambda: dict.fromkeys((EVIDENCE, WRITE, SOURCE), 0))
    before: int = 0
    after: int = 0
    errors: int = 0

    def add(self, choice: Choice, before: Account, after: Account) -> None:
        self.trajectories += 1
        self.removed += len(choice.removed)
        for reason in choice.kept.values():
            self.kept[reason] += 1
        self.before += before.input + before.output
        self.after += after.input + after.output

    def __str__(self) -> str:
        saved = self.before - self.after
        share = f" ({saved / self.before:.1%})" if self.before else ""
        text = f"{count(self.trajectories, 'trajectory')}, {count(self.removed, 'step')} taken out"
        if self.kept[EVIDENCE]:
            text += f", {self.kept[EVIDENCE]:,} kept as evidence of others"
        if self.kept[WRITE]:
            text += f", {self.kept[WRITE]:,} kept since they changed something"
        if self.kept[SOURCE]:
            text += f", {self.kept[SOURCE]:,} kept since a later change rests on them"
        return f"{text}; about {saved:,} of {self.before:,} tokens saved{share}, input of all requests and output"


@dataclass(frozen=True)
class _Pruned:
    trajectory: Trajectory
    plan: Plan


class _Pruner:
    """Prunes one file after the other."""

    def __init__(self, options: PruneOptions, detector: Detector) -> None:
        self.options = options
        self.totals = _Totals()
        self.maps: list[dict[str, Any]] = []
        self._detector = detector

    def fail(self, error: RedclfError) -> None:
        """Report an error and go on, or stop where that was asked for."""
        if self.options.strict:
            raise error
        complain(str(error))
        self.totals.errors += 1

    def file(self, source: Path, target: Path) -> None:
        """Write one file's trajectories back."""
        document = Document(source)
        forced = None if self.options.format == AUTO else reader_named(self.options.format)
        reader = forced or recognise(document)
        pruned = {_record_of(item, document): item for item in self._each(reader, document)}
        if not pruned:
            raise document.place.error("expected trajectories that can be read, got none")
        if self.options.to == CHAT:
            chats = [to_chat(apply_plan(item.trajectory, item.plan)) for item in pruned.values()]
            _write(target, json.dumps(chats if len(chats) > 1 else chats[0], ensure_ascii=False) + "\n")
            return
        _write(target, _rewritten(reader, document, pruned))

    def _each(self, reader: Reader, document: Document) -> Iterator[_Pruned]:
        for trajectory in reader.read(document, self.fail):
            try:
                predictions = self._detector.detect(trajectory, self.options.threshold)
            except RedclfError as error:
                self.fail(error)
                continue
            choice = choose(trajectory, predictions, self.options.writes)
            if self.options.placeholder:
                plan = plan_placeholders(trajectory, choice.removed)
            else:
                plan = plan_removal(trajectory, [prediction.step for prediction in choice.removed])
            after = apply_plan(trajectory, plan)
            self.totals.add(choice, account(trajectory, recorded=False), account(after, recorded=False))
            if self.options.map_file is not None:
                self.maps.append(_map_record(trajectory, choice, plan))
            yield _Pruned(trajectory, plan)


def run_prune(options: PruneOptions) -> int:
    """Run the command.

    Returns
    -------
    int
        How many files, records or trajectories were refused.

    Raises
    ------
    RedclfError
        If nothing can be done at all, or at the first error with `strict`.
    """
    if options.format != AUTO:
        reader_named(options.format)
    pruner = _Pruner(options, create_detector(options.detector, options.model))
    written = 0
    for source, target in _targets(options, pruner).items():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            pruner.file(source, target)
            written += 1
        except RedclfError as error:
            if options.strict:
                raise
            pruner.fail(error)
        except OSError as error:
            raise RedclfError(f"--output: {target.parent}: expected a folder, got: {error.strerror}") from None
    if not written:
        raise RedclfError(f"{options.output}: nothing written, since no trajectory could be read")
    if options.map_file is not None:
        with atomic_writer(options.map_file) as stream:
            stream.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in pruner.maps)
    screen = console()
    screen.print(str(pruner.totals), style="bold", markup=False)
    screen.print(f"{count(written, 'file')} written to {one_line(str(options.output))}", markup=False)
    return pruner.totals.errors


def _targets(options: PruneOptions, pruner: _Pruner) -> dict[Path, Path]:
    """Return where each trace file goes: a file by its name, what is in a folder by its path in there."""
    targets: dict[Path, Path] = {}
    taken: dict[Path, Path] = {}
    for path in options.paths:
        try:
            files = find_files(path)
        except RedclfError as error:
            pruner.fail(error)
            continue
        for file in files:
            target = options.output / (file.name if path.is_file() else file.relative_to(path))
            other = taken.setdefault(target.resolve(), file)
            if other != file:
                raise RedclfError(f"--output: {other} and {file} would both be written to {target}")
            if target.exists() and target.samefile(file):
                raise RedclfError(f"--output: expected another folder than that of the trace {file}")
            targets[file] = target
    return targets


def _record_of(item: _Pruned, document: Document) -> str:
    """Return what the place of a trajectory's record calls it, "" where the file is one trajectory."""
    source = item.trajectory.source or ""
    return source.removeprefix(document.name).removeprefix(", ")


def _rewritten(reader: Reader, document: Document, pruned: Mapping[str, _Pruned]) -> str:
    """Return the file's text with its trajectories' messages edited; all else stays."""
    if document.is_lines:
        if set(pruned) == {""}:
            lines = edit_messages([value for _, value in document.raw_records()], pruned[""].plan)
        else:
            lines = [_edited(reader, document, value, pruned.get(name)) for name, value in document.raw_records()]
        return "".join(f"{line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    if set(pruned) == {""}:
        value = _edited(reader, document, document.value, pruned[""])
    else:
        value = document.value
        for name, record in document.raw_records():
            _edited(reader, document, record, pruned.get(name))
    with document.path.open("rb") as stream:
        indented = b"\n" in stream.read(4096).strip()
    return json.dumps(value, ensure_ascii=False, indent=2 if indented else None) + "\n"


def _edited(reader: Reader, document: Document, record: Any, pruned: _Pruned | None) -> Any:
    """Return a record with its messages edited in place; one that was refused stays as it is."""
    if pruned is None:
        return record
    raw = reader.raw_messages(record)
    if raw is None or len(raw) != len(pruned.trajectory.messages):
        raise document.place.error(
            f"expected a format that can be written back, got {reader.name}; --to {CHAT} writes chat messages"
        )
    raw[:] = edit_messages(raw, pruned.plan)
    return record


def _map_record(trajectory: Trajectory, choice: Choice, plan: Plan) -> dict[str, Any]:
    return {
        "trajectory_id": trajectory.id,
        "source": trajectory.source,
        "removed": [prediction.to_dict() for prediction in choice.removed],
        "kept": [{"step": list(step), "because": reason} for step, reason in choice.kept.items()],
        "new_indices": plan.new_indices(len(trajectory.messages)),
    }


def _write(path: Path, text: str) -> None:
    with atomic_writer(path) as stream:
        stream.write(text)
