"""What the training commands share: arguments, data, log and complaints."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from redclf.benchmark.data import SPLITS, LabelledTrajectory, load_benchmark, load_splits
from redclf.errors import RedclfError

#: Folds of a root that has no `splits.json`.
FOLDS = 5


def clock_log(message: str) -> None:
    """Print a message with the time."""
    print(f"{time.strftime('%H:%M:%S')} {message}", flush=True)


def load_items(roots: Sequence[str]) -> tuple[list[LabelledTrajectory], dict[str, int]]:
    """Load the trajectories and folds of several roots.

    Returns
    -------
    items : list of LabelledTrajectory
    folds : dict
        Trajectory id to fold: those of `splits.json`, or five with whole tasks where it is missing.
    """
    items: list[LabelledTrajectory] = []
    folds: dict[str, int] = {}
    for root in roots:
        found = load_benchmark(root)
        items += found
        if (Path(root) / SPLITS).exists():
            folds |= load_splits(root)
            continue
        groups = {group: place % FOLDS for place, group in enumerate(sorted({item.group for item in found}))}
        folds |= {item.trajectory.id: groups[item.group] for item in found}
    known = {item.trajectory.id for item in items}
    return items, {name: fold for name, fold in folds.items() if name in known}


def command_parser(prog: str, doc: str | None, needed: bool = True, encoder: bool = True) -> argparse.ArgumentParser:
    """Return a parser with what all protocols take.

    Parameters
    ----------
    doc : str
        The module's docstring, of which the first line is the help.
    needed : bool
        Whether a recipe and data must be given.
    encoder : bool
        Whether there is an encoder that can be left out.
    """
    parser = argparse.ArgumentParser(prog=prog, description=(doc or "").split("\n")[0])
    parser.add_argument("--config", required=needed, help="the recipe, a YAML file")
    parser.add_argument(
        "--data", required=needed, action="append", default=None, help="benchmark root to train on; repeatable"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a config value")
    parser.add_argument("--output", default="results", help="where JSON and Markdown are written")
    parser.add_argument("--runs", default="runs", help="where models and scores are kept, for a run to go on from")
    if encoder:
        parser.add_argument("--relations-only", action="store_true", help="leave the encoder out: minutes, not hours")
    return parser


def guarded(prog: str, work: Callable[[], None]) -> int:
    """Do the work of a command and return its exit code; wrong input is one line, not a traceback."""
    try:
        work()
    except (RedclfError, ValueError) as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return 2
    return 0
