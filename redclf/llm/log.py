"""The request log: every reply that was received, on disk before anything is made of it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from redclf.errors import TraceError

try:
    import fcntl
except ImportError:  # Windows has no such locks.
    fcntl = None  # type: ignore[assignment]


class RequestLog:
    """Replies by the key of their request, appended to a JSONL file as they come.

    Each line is written in one piece, so that a killed process loses at most a line that it was just writing; such
    a torn line is dropped when the log is opened again.

    Parameters
    ----------
    path : Path
        Made, with its folder, when the first reply comes.
    waiting : callable, optional
        Called when somebody else is writing it, before waiting for that.

    Raises
    ------
    TraceError
        If the file can't be read, or a line in it is no record.
    """

    def __init__(self, path: Path, waiting: Callable[[], None] | None = None) -> None:
        self.path = path
        self._waiting = waiting
        self._records: dict[str, dict[str, Any]] = {}
        self._handle: int | None = None
        self._end = 0
        self._lines = 0
        self._lock = threading.Lock()
        self.refresh()

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what was recorded for a request."""
        return self._records.get(key)

    def refresh(self) -> None:
        """Read what others have added, if there is a file."""
        if self.path.exists():
            self._read()

    def open(self) -> None:
        """Get ready for writing: wait until nobody else is, read what they have added, and keep them out meanwhile.

        Raises
        ------
        TraceError
            If it can't be written.
        """
        if self._handle is not None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise TraceError(f"can't be written: {error.strerror}", str(self.path)) from None
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if self._waiting is not None:
                    self._waiting()
                fcntl.flock(handle, fcntl.LOCK_EX)
        self._read()
        if self._end < os.fstat(handle).st_size:
            os.ftruncate(handle, self._end)
        self._handle = handle

    def add(self, record: dict[str, Any]) -> None:
        """Write a record, with its `key`, and keep it."""
        # ASCII, so that lone surrogates in a reply are kept, too.
        line = json.dumps(record, ensure_ascii=True, allow_nan=True).encode() + b"\n"
        with self._lock:
            assert self._handle is not None, "the log is not open"
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._handle, rest) :]
            self._end += len(line)
            self._lines += 1
            self._records[record["key"]] = record
        os.fsync(self._handle)

    def close(self) -> None:
        """Let other processes write the log."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _read(self) -> None:
        """Read the whole lines that are new."""
        try:
            with self.path.open("rb") as stream:
                stream.seek(self._end)
                data = stream.read()
        except OSError as error:
            raise TraceError(f"can't be read: {error.strerror}", str(self.path)) from None
        for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
            self._lines += 1
            try:
                record = json.loads(line)
                self._records[record["key"]] = record
            except (ValueError, TypeError, KeyError, RecursionError):
                raise TraceError("expected a record with a key", str(self.path), f"line {self._lines}") from None
            self._end += len(line)
