"""A progress bar on stderr, with rate and time left."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from redclf.commands.output import console
from redclf.readers import Reading

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


class Progress:
    """Shows how much of the input has been scored, where stderr is a terminal and stdout is not drawn on.

    Parameters
    ----------
    wanted : bool
        Whether to show anything at all.
    """

    def __init__(self, wanted: bool) -> None:
        self._readings: Sequence[Reading] = ()
        self._count = 0
        self._bar: Bar | None = None
        if wanted and sys.stderr.isatty():
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.fields[count]:,} trajectories"),
                BarColumn(),
                TextColumn("{task.percentage:3.0f} %, {task.fields[rate]} a second"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("detect", total=None, count=0, rate="-")

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *details: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def start(self, readings: Sequence[Reading]) -> None:
        """Say what will be read."""
        self._readings = readings

    def advance(self) -> None:
        """Note that one more trajectory is done."""
        self._count += 1
        if self._bar is None:
            return
        elapsed = self._bar.tasks[0].elapsed
        rate = f"{self._count / elapsed:.1f}" if elapsed else "-"
        values: dict[str, Any] = {"count": self._count, "rate": rate}
        if self._readings:
            values["completed"] = sum(reading.position for reading in self._readings)
            values["total"] = sum(reading.size for reading in self._readings)
        self._bar.update(self._task, **values)
