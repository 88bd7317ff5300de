"""Trajectories to measure on: a benchmark's, or made ones of a given length."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

from redclf.readers.writing import to_chat
from redclf.trajectory import Message, ToolCall, Trajectory

_TOOLS = ("search_orders", "get_order", "get_customer", "list_stock", "update_order")


def synthetic(steps: int, seed: int = 0) -> Trajectory:
    """Return a made run of so many interactions: look-ups, repeats, failures with retries, writes, and talk.

    Parameters
    ----------
    steps : int
    seed : int
        The same numbers give the same run.
    """
    rng = random.Random(f"bench:{steps}:{seed}")
    messages = [Message("user", "Please see to my orders.")]
    known: list[tuple[str, dict[str, str], str]] = []
    for number in range(steps):
        draw = rng.random()
        if known and draw < 0.15:
            tool, arguments, result = rng.choice(known)
        else:
            tool = rng.choice(_TOOLS)
            arguments = {"id": f"ord_{rng.randrange(4 * steps)}", "page": str(rng.randrange(3))}
            fields = {f"field_{n}": f"value_{rng.randrange(10 * steps)}" for n in range(12)}
            result = json.dumps({**arguments, **fields, "state": rng.choice(("open", "sent", "paid"))})
            known.append((tool, arguments, result))
        if draw > 0.95:
            result = "Error: the request timed out"
        messages.append(Message("assistant", "", (ToolCall(tool, arguments, f"c{number}"),)))
        messages.append(Message("tool", result, tool_call_id=f"c{number}"))
        if number % 7 == 6:
            messages.append(Message("assistant", f"Order {arguments['id']} is looked after."))
            messages.append(Message("user", f"And order ord_{rng.randrange(4 * steps)}?"))
    return Trajectory(f"synthetic-{steps}-{seed}", tuple(messages), policy="Look before you change an order.")


def write_lines(trajectories: Sequence[Trajectory], path: Path) -> None:
    """Write trajectories as JSON lines of chat messages."""
    with path.open("w", encoding="utf-8", errors="replace") as stream:
        for trajectory in trajectories:
            stream.write(json.dumps(to_chat(trajectory)) + "\n")
