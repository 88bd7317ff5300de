"""Readers of trace formats: one module a format, recognised by content.

Records and messages count from 0 in errors, lines from 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from redclf.errors import TraceError
from redclf.readers.base import Reader
from redclf.readers.document import Document, OnError
from redclf.readers.files import find_files
from redclf.readers.registry import AUTO, formats, reader_named, recognise
from redclf.trajectory import Trajectory

__all__ = ["Reader", "Reading", "find_files", "formats", "iter_trajectories", "load"]


def load(path: str | Path, format: str = AUTO) -> list[Trajectory]:
    """Read all trajectories of a file or directory.

    Parameters
    ----------
    path : str or Path
    format : str
        A name among `formats()`, or "auto" to tell it from each file's content.

    Returns
    -------
    list of Trajectory
        In the order of the sorted files, and of the records in them.

    Raises
    ------
    TraceError
        At the first record that can't be read.
    """
    return list(iter_trajectories(path, format))


def iter_trajectories(path: str | Path, format: str = AUTO, on_error: OnError | None = None) -> Iterator[Trajectory]:
    """Yield the trajectories of a file or directory one at a time.

    JSON lines are read line by line, so that memory does not grow with the file.

    Parameters
    ----------
    path : str or Path
    format : str
        A name among `formats()`, or "auto".
    on_error : callable, optional
        Told of each file or record that can't be read (a `TraceError`); the next one follows.
        Without it the first one raises. An unknown `format` raises in any case.

    Raises
    ------
    TraceError
    """
    return iter(Reading(path, format, on_error))


class Reading:
    """The trajectories of a file or directory, and how much of it has been read.

    Parameters
    ----------
    path : str or Path
    format : str
    on_error : callable, optional
        All three as `iter_trajectories` takes them.
    """

    def __init__(self, path: str | Path, format: str = AUTO, on_error: OnError | None = None) -> None:
        self._forced = None if format == AUTO else reader_named(format)
        self._on_error = on_error
        self._reported: TraceError | None = None
        self._read = 0
        self._document: Document | None = None
        self._files: list[Path] = []
        try:
            self._files = find_files(path)
        except TraceError as error:
            self._report(error)
        #: Bytes of all files.
        self.size = sum(_size(file) for file in self._files)

    @property
    def position(self) -> int:
        """Bytes that have been read, about."""
        if self._document is None:
            return self._read
        return self._read + int(self._document.share * _size(self._document.path))

    def __iter__(self) -> Iterator[Trajectory]:
        for file in self._files:
            try:
                self._document = Document(file)
                reader = self._forced or recognise(self._document)
                yield from reader.read(self._document, self._report)
            except TraceError as error:
                if error is self._reported:
                    raise
                self._report(error)
            self._document = None
            self._read += _size(file)

    def _report(self, error: TraceError) -> None:
        self._reported = error
        if self._on_error is None:
            raise error
        self._on_error(error)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
