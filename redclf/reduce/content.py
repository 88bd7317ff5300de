"""Shortening a tool's result without losing what may matter. Lines that tell of failures always stay.

Rules, each for runs of lines:

- what an earlier message shows line by line becomes a pointer to it;
- passed tests, and files in folders of dependencies and caches, become a count;
- of progress bars the last one stays, of lines that differ in numbers alone the first, with a count;
- a long argument of the call that the result repeats is named instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

#: Lines and characters from which a span that was shown before is worth a pointer.
SPAN_LINES, SPAN_CHARACTERS = 3, 160
#: Lines from which a run of like lines is folded.
RUN = 4
#: Characters from which an argument that the result repeats is named instead.
ECHO = 200
#: Shorter lines are too common to point to.
_SHORT = 12

_FAILURE = re.compile(
    r"error|fail|exception|traceback|fatal|panic|denied|refused|not found|no such|cannot|can't|unable|warn|assert"
    r"|invalid|missing|undefined|abort|crash|timed? ?out|✗|✘|\bKO\b",
    re.IGNORECASE,
)
_PASSED = re.compile(r"\bPASSED\b|\.{3} ?ok\b|^\s*ok \d+|✓|✔|\bPASS\b")
_PROGRESS = re.compile(r"\d{1,3} ?%|\[[#=>\-. ]{5,}\]|[█▏▎▍▌▋▊▉━]{3,}|\b\d+(\.\d+)?\s?[kMG]i?B/s")
_NOISE = re.compile(
    r"(^|[/\\])(node_modules|\.git|__pycache__|site-packages|\.venv|\.mypy_cache|\.pytest_cache)([/\\]|$)"
)
_LOG = re.compile(
    r"\s*(\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|\[?(DEBUG|INFO|TRACE)\b|(epoch|step|iter|batch)\b)", re.IGNORECASE
)
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")


@dataclass
class Shown:
    """Which message has shown each line.

    Parameters
    ----------
    messages : mapping
        Message index to its text, ascending.
    """

    messages: Mapping[int, str]
    lines: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.lines = {}
        for index, text in self.messages.items():
            for line in text.splitlines():
                key = line.strip()
                if len(key) >= _SHORT:
                    self.lines.setdefault(key, index)


def shorten(text: str, shown: Shown | None = None, arguments: Iterable[str] = ()) -> str:
    """Return a result's text, shortened.

    Parameters
    ----------
    text : str
    shown : Shown, optional
        What the context has shown before.
    arguments : iterable of str
        Texts of the call's arguments.
    """
    for argument in arguments:
        if len(argument) >= ECHO and argument in text:
            text = text.replace(argument, f"[the {len(argument):,} characters of the call's argument]")
    lines = [line.rsplit("\r", 1)[-1] if "\r" in line.rstrip("\r") else line for line in text.split("\n")]
    if shown is not None:
        lines = list(_point(lines, shown))
    lines = list(_fold(lines, _is_passed, lambda run: [f"[{len(run)} lines of passed tests]"]))
    lines = list(_fold(lines, _is_noise, lambda run: [f"[{len(run)} paths of dependencies or caches]"]))
    lines = list(_fold(lines, _is_progress, lambda run: [run[-1]]))
    return "\n".join(_fold_alike(lines))


def _is_failure(line: str) -> bool:
    return bool(_FAILURE.search(line))


def _is_passed(line: str) -> bool:
    return bool(_PASSED.search(line)) and not _is_failure(line)


def _is_noise(line: str) -> bool:
    return bool(_NOISE.search(line)) and not _is_failure(line)


def _is_progress(line: str) -> bool:
    return bool(_PROGRESS.search(line)) and not _is_failure(line)


def _runs(lines: Sequence[str], same: Callable[[str], object]) -> Iterator[tuple[object, list[str]]]:
    """Yield runs of lines with the same key; None is no run."""
    run: list[str] = []
    last: object = None
    for line in lines:
        key = same(line)
        if run and (key != last or key is None):
            yield last, run
            run = []
        run.append(line)
        last = key
    if run:
        yield last, run


def _fold(
    lines: Sequence[str], belongs: Callable[[str], bool], fold: Callable[[list[str]], list[str]]
) -> Iterator[str]:
    for key, run in _runs(lines, lambda line: True if belongs(line) else None):
        yield from fold(run) if key and len(run) >= RUN else run


def _fold_alike(lines: Sequence[str]) -> Iterator[str]:
    """Fold lines that differ in their numbers alone."""

    def shape(line: str) -> str | None:
        stripped = line.strip()
        return None if len(stripped) < 4 or _is_failure(line) else _NUMBER.sub("0", stripped)

    for key, run in _runs(lines, shape):
        if key is not None and len(run) >= RUN and (len(set(run)) == 1 or all(map(_LOG.match, run))):
            yield run[0]
            yield f"[{len(run) - 1} more lines like it]"
        else:
            yield from run


def _point(lines: Sequence[str], shown: Shown) -> Iterator[str]:
    """Replace spans that an earlier message shows by a pointer to it; failures are no exception: they stay there."""

    def source(line: str) -> int | None:
        return shown.lines.get(line.strip())

    span: list[str] = []
    where: int | None = None
    for line in lines:
        found = source(line)
        if where is not None and (found == where or not line.strip()):
            span.append(line)
            continue
        yield from _pointer(span, where)
        span, where = ([line], found) if found is not None else ([], None)
        if found is None:
            yield line
    yield from _pointer(span, where)


def _pointer(span: list[str], where: int | None) -> Iterator[str]:
    blank = 0
    while span and not span[-1].strip():
        span = span[:-1]
        blank += 1
    if where is not None and len(span) >= SPAN_LINES and sum(map(len, span)) >= SPAN_CHARACTERS:
        yield f"[{len(span)} lines as in message {where}]"
    else:
        yield from span
    yield from [""] * blank
