"""A progress bar with the time left, on a terminal only: log lines stay what a file gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


@contextmanager
def progress_bar(title: str, total: int, done: int = 0, console: Console | None = None) -> Iterator[Callable[[], None]]:
    """Show a bar and yield what advances it by one.

    Parameters
    ----------
    title : str
    total, done : int
        Units of work, and how many an earlier run had done.
    console : Console, optional
        Standard error by default.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield lambda: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=total, completed=done)
        yield lambda: bar.advance(task)
