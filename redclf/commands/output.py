"""How the commands write: one-line messages, safe text, whole files."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
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


def console(width: int = _WIDTH) -> Console:
    """Return the console of stdout.

    Parameters
    ----------
    width : int
        Columns where it is no terminal.
    """
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            raise OutputClosed

    fixed = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else width
    return _Console(width=fixed, highlight=False, soft_wrap=False, emoji=False)


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


def _unwritable(path: Path, error: Exception) -> RedclfError:
    reason = getattr(error, "strerror", None) or str(error)
    return RedclfError(f"{path}: expected a file that can be written, got: {reason}")


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is not 1."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("ry") else f"{number:,} {noun}s"
