"""`redclf reduce-replay`: what a reducer would have saved on recorded runs, and what it would have cost the agent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redclf.accounting import Price, account, load_prices
from redclf.commands.output import atomic_writer, complain, console
from redclf.errors import RedclfError
from redclf.readers import iter_trajectories
from redclf.readers.registry import AUTO, reader_named
from redclf.reduce.reflectors import REFLECTORS, create_reflector
from redclf.reduce.replay import Replay, replay_all
from redclf.trajectory import Trajectory

_MILLION = 1_000_000
CEILING = "delete"


@dataclass(frozen=True)
class ReplayOptions:
    """The options of `redclf reduce-replay`."""

    paths: tuple[Path, ...]
    reflectors: tuple[str, ...] = ("classifier",)
    theta: int = 500
    a: int = 2
    b: int = 1
    format: str = AUTO
    json_file: Path | None = None
    prices: Path | None = None
    model: str | None = None


def run_reduce_replay(options: ReplayOptions) -> int:
    """Run the command.

    Returns
    -------
    int
        How many files or records were refused.

    Raises
    ------
    RedclfError
        If nothing can be done at all.
    """
    if options.format != AUTO:
        reader_named(options.format)
    for name in options.reflectors:
        if name not in REFLECTORS:
            raise RedclfError(f"--reflector: expected some of {', '.join(REFLECTORS)}, got {name!r}")
    errors: list[RedclfError] = []

    def fail(error: RedclfError) -> None:
        complain(str(error))
        errors.append(error)

    trajectories = [run for path in options.paths for run in iter_trajectories(path, options.format, fail)]
    if not trajectories:
        raise RedclfError("expected trajectories that can be read, got none")
    names = dict.fromkeys((*options.reflectors, CEILING))
    found = {name: _replay(trajectories, name, options) for name in names}
    price = load_prices(options.prices).of(options.model or account(trajectories[0]).model)
    _show(options, found, price)
    if options.json_file is not None:
        records = [_record(name, found[name], found[CEILING], options) for name in options.reflectors]
        with atomic_writer(options.json_file) as stream:
            json.dump(records[0] if len(records) == 1 else records, stream, indent=1)
            stream.write("\n")
    return len(errors)


def _replay(trajectories: Sequence[Trajectory], name: str, options: ReplayOptions) -> Replay:
    return replay_all(trajectories, create_reflector(name), options.a, options.b, options.theta)


def _record(name: str, found: Replay, ceiling: Replay, options: ReplayOptions) -> dict[str, Any]:
    return {
        "reflector": name,
        "trajectories": found.trajectories,
        "keep": found.keep,
        "input_tokens": found.input_tokens,
        "input_tokens_none": found.input_tokens_none,
        "output_tokens": found.output_tokens,
        "saved": found.saved,
        "saved_of_ceiling": found.saved / ceiling.saved if ceiling.saved else None,
        "harm": found.harm,
        "used": found.used,
        "theta": options.theta,
        "a": options.a,
        "b": options.b,
        "tokens": "estimated, four bytes a token",
    }


def _show(options: ReplayOptions, found: dict[str, Replay], price: Price | None) -> None:
    from rich import box
    from rich.table import Table

    first = next(iter(found.values()))
    table = Table(
        box=box.SIMPLE_HEAD, title=f"{first.trajectories} runs, {first.requests:,} requests, theta {options.theta}"
    )
    table.add_column("reflector")
    for heading in ("Keep %", "I", "I saved %", "of what delete saves %", "O", "$", "$ +", "harm %"):
        table.add_column(heading, justify="right")
    ceiling = found[CEILING]
    rows = [("none", Replay(input_tokens=first.input_tokens_none, input_tokens_none=first.input_tokens_none,
                            output_tokens=first.output_tokens))] if "none" not in found else []  # fmt: skip
    for name, result in (*rows, *found.items()):
        share = f"{100 * result.saved / ceiling.saved:.1f}" if ceiling.saved else "-"
        table.add_row(
            name,
            f"{100 * result.keep:.1f}",
            f"{result.input_tokens:,}",
            f"{100 * result.saved:.1f}",
            share,
            f"{result.output_tokens:,}",
            _dollars(result, price),
            "0",
            f"{100 * result.harm:.2f}",
        )
    console().print(table)
    if price is None:
        console().print("$ unknown: no price for the model; name one with --model", style="dim", markup=False)


def _dollars(result: Replay, price: Price | None) -> str:
    """Return what the agent's requests cost without a prompt cache."""
    if price is None:
        return "unknown"
    return f"{(result.input_tokens * price.input + result.output_tokens * price.output) / _MILLION:.2f}"
