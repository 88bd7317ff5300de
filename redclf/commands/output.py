"""How the commands write: one-line messages, safe text, whole files."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from redclf.errors import RedclfError

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 120
_UTF = "utf"


class OutputClosed(Exception):  # noqa: N818
    """The reader of stdout went away (`redclf ... | head`). Caught by `redclf.cli`.

    Not `BrokenPipeError`, which typer and rich would each answer with an exit of their own.
    """


def one_line(text: str, limit: int | None = None) -> str:
    """Return text on one line without control characters, clipped to `limit` characters."""
    if limit is not None:
        text = text[: 8 * limit]
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if limit is None or len(line) <= limit else f"{line[: limit - 1]}…"


def complain(message: str, kind: str = "error") -> None:
    """Print one line on stderr."""
    print(f"redclf: {kind}: {one_line(message)}", file=sys.stderr, flush=True)  # noqa: T201


def print_json(value: Any) -> None:
    """Print a JSON value on one line of stdout, in ASCII where its encoding is not Unicode."""
    unicode = (sys.stdout.encoding or "").lower().startswith(_UTF)
    try:
        sys.stdout.write(json.dumps(value, ensure_ascii=not unicode) + "\n")
    except BrokenPipeError:
        raise OutputClosed from None


def console(width: int = _WIDTH, stderr: bool = False) -> Console:
    """Return the console of stdout, or of stderr.

    Parameters
    ----------
    width : int
        Columns where it is no terminal.
    stderr : bool
    """
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            raise OutputClosed

    stream = sys.stderr if stderr else sys.stdout
    fixed = None if stream.isatty() or os.environ.get("COLUMNS") else width
    return _Console(stderr=stderr, width=fixed, highlight=False, soft_wrap=False, emoji=False)


@contextmanager
def atomic_writer(path: Path) -> Iterator[IO[str]]:
    """Open a text file that appears whole at the end, or not at all after an exception.

    Raises
    ------
    RedclfError
        If it can't be written.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise RedclfError(f"{path}: expected a regular file to write, got something else")
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:60]}.")
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as stream:
            yield stream
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _unwritable(path, error) from None
        raise


class ResumableWriter:
    """Writes JSON lines to a file that appears whole at the end; until then they are in `FILE.part`.

    Every line is handed to the system at once, so that a run that is killed loses none, and one with
    `resume` goes on after the last whole line.

    Parameters
    ----------
    path : Path
    about : dict
        What decides the lines, JSON values. A run can only be resumed by one that says the same.
    resume : bool
        Whether to go on from what is there.
    on_found : callable
        Told of each line of the earlier run.

    Raises
    ------
    RedclfError
        If it can't be written, or the unfinished run was another one.
    """

    def __init__(
        self, path: Path, about: Mapping[str, Any], resume: bool, on_found: Callable[[dict[str, Any]], None]
    ) -> None:
        self.path = path.resolve()
        if self.path.exists() and not self.path.is_file():
            raise RedclfError(f"{path}: expected a regular file to write, got something else")
        self.part = self.part_of(self.path)
        self._note = self.path.with_name(f"{self.path.name}.part.json")
        try:
            if resume and self.part.exists():
                self._check(about)
                end = self._read(on_found)
                self._stream: IO[bytes] = self.part.open("r+b")
                self._stream.truncate(end)
                self._stream.seek(end)
            else:
                self._note.write_text(json.dumps(dict(about)) + "\n", encoding="utf-8")
                self._stream = self.part.open("wb")
        except (OSError, ValueError) as error:
            raise _unwritable(path, error) from None

    @staticmethod
    def part_of(path: Path) -> Path:
        """Return where a file's lines are until it is finished."""
        path = path.resolve()
        return path.with_name(f"{path.name}.part")

    def _check(self, about: Mapping[str, Any]) -> None:
        try:
            known = json.loads(self._note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = None
        if not isinstance(known, dict):
            raise RedclfError(f"--resume: {self._note}: expected what the unfinished run was, found nothing")
        for key, value in about.items():
            if known.get(key) != value:
                raise RedclfError(
                    f"--resume: {self.part} was made with {key} {known.get(key)!r}, this run has {value!r}; "
                    "give the same, or leave --resume out to begin again"
                )

    def _read(self, on_found: Callable[[dict[str, Any]], None]) -> int:
        """Report the whole lines that are there, and return where they end."""
        end = 0
        with self.part.open("rb") as stream:
            for line in stream:
                if not line.endswith(b"\n"):
                    break
                try:
                    on_found(json.loads(line))
                except (ValueError, KeyError, TypeError):
                    raise RedclfError(
                        f"--resume: {self.part}: expected results of this command, got {line[:80]!r}"
                    ) from None
                end += len(line)
        return end

    def write(self, record: Mapping[str, Any]) -> None:
        """Add a line."""
        line = json.dumps(record, ensure_ascii=False) + "\n"
        try:
            self._stream.write(line.encode("utf-8", "replace"))
            self._stream.flush()
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def finish(self) -> None:
        """Put the file in its place."""
        try:
            self._stream.close()
            self.part.replace(self.path)
            self._note.unlink(missing_ok=True)
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def discard(self) -> None:
        """Leave no trace."""
        self._stream.close()
        self.part.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def close(self) -> None:
        """Keep what has been written for a run that goes on."""
        self._stream.close()


def _unwritable(path: Path, error: Exception) -> RedclfError:
    reason = getattr(error, "strerror", None) or str(error)
    return RedclfError(f"{path}: expected a file that can be written, got: {reason}")


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is not 1."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("ry") else f"{number:,} {noun}s"
