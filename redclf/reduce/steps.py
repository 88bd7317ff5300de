"""The steps of an agent's loop: a message with calls, and all their results."""

from __future__ import annotations

from dataclasses import dataclass

from redclf.trajectory import Trajectory


@dataclass(frozen=True)
class Round:
    """One turn of the loop.

    Parameters
    ----------
    call : int
        Index of the message with the calls.
    results : tuple of int
        Indices of the results, ascending.
    steps : tuple of tuple of int
        The interactions, as `(call_index, result_index)`.
    """

    call: int
    results: tuple[int, ...]
    steps: tuple[tuple[int, int], ...]


def rounds_of(trajectory: Trajectory) -> list[Round]:
    """Return the assistant's turns that all results have come for, in order."""
    waiting = set(trajectory.pairing.unanswered_calls)
    by_call: dict[int, list[tuple[int, int]]] = {}
    for item in trajectory.assistant_interactions:
        by_call.setdefault(item.call_index, []).append(item.step)
    return [
        Round(call, tuple(sorted(step[1] for step in steps)), tuple(steps))
        for call, steps in sorted(by_call.items())
        if call not in waiting
    ]
