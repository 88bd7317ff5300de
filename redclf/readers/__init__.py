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

__all__ = ["Reader", "find_files", "formats", "iter_trajectories", "load"]


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
    forced = None if format == AUTO else reader_named(format)
    reported: TraceError | None = None

    def report(error: TraceError) -> None:
        nonlocal reported
        reported = error
        if on_error is None:
            raise error
        on_error(error)

    try:
        files = find_files(path)
    except TraceError as error:
        report(error)
        return
    for file in files:
        try:
            document = Document(file)
            reader = forced or recognise(document)
            yield from reader.read(document, report)
        except TraceError as error:
            if error is reported:
                raise
            report(error)
