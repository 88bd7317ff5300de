"""The trajectory of an agent: typed messages, tool calls and interactions. Plain data, no I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
Requestor = Literal["assistant", "user"]

ROLES: tuple[str, ...] = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call.

    Parameters
    ----------
    name : str
        The tool's name.
    arguments : Any
        The decoded arguments, normally a dict; the raw string where they do not decode.
    id : str or None
        The call id that its result carries, if the format has one.
    requestor : {"assistant", "user"}
        Who made the call. In dual-control domains users call tools, too.
    """

    name: str
    arguments: Any = field(default_factory=dict)
    id: str | None = None
    requestor: Requestor = "assistant"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a trajectory.

    Parameters
    ----------
    role : {"system", "user", "assistant", "tool"}
    content : str
        Text, empty where the message has none.
    tool_calls : tuple of ToolCall
        Calls made in this message; several where calls are parallel.
    tool_call_id : str or None
        For a tool result: the id of the call that it answers.
    requestor : {"assistant", "user"}
        For a tool result: who made the call.
    usage : mapping or None
        Recorded token usage (`prompt_tokens`, `completion_tokens`), where the trace has it.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    requestor: Requestor = "assistant"
    usage: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Interaction:
    """A step: a tool call together with its result.

    Parameters
    ----------
    ordinal : int
        Place among the trajectory's interactions, from 0, in the order of their results' calls.
    call_index, result_index : int
        Indices of the two messages. They need not be adjacent.
    call : ToolCall
    """

    ordinal: int
    call_index: int
    result_index: int
    call: ToolCall

    @property
    def step(self) -> tuple[int, int]:
        """The reference `(call_index, result_index)` that the benchmark uses."""
        return (self.call_index, self.result_index)

    @property
    def requestor(self) -> Requestor:
        """Who made the call."""
        return self.call.requestor


@dataclass(frozen=True)
class Pairing:
    """How calls and results of a message list belong together."""

    interactions: tuple[Interaction, ...]
    unanswered_calls: tuple[int, ...]
    """Message index of each call without a result (an index occurs once per such call)."""
    orphan_results: tuple[int, ...]
    """Message index of each result without a call."""


_OpenCalls = deque[tuple[int, int, ToolCall]]
"""Calls of one message, in their order: (message index, place in the message, call)."""


def _take_open(pool: list[_OpenCalls], answered: set[tuple[int, int]]) -> tuple[int, int, ToolCall] | None:
    """Return the first open call of the latest message that has one, dropping answered ones."""
    while pool:
        calls = pool[-1]
        while calls:
            call_index, place, call = calls.popleft()
            if (call_index, place) not in answered:
                return call_index, place, call
        pool.pop()
    return None


def pair_interactions(messages: Sequence[Message]) -> Pairing:
    """Pair tool calls with their results by call id.

    A result answers the latest open call with its id; among calls of one message, the first
    open one. A result without an id answers the first open call of the latest message that has open
    calls. So an id that occurs twice pairs with its own next result, and calls that were cut off
    stay open.

    Returns
    -------
    Pairing
        Interactions in the order of their calls.
    """
    by_id: dict[str, list[_OpenCalls]] = {}
    latest: list[_OpenCalls] = []
    paired: list[tuple[int, int, int, ToolCall]] = []
    answered: set[tuple[int, int]] = set()
    every: list[tuple[int, int]] = []
    orphans: list[int] = []
    for index, message in enumerate(messages):
        if message.role == "tool":
            call_id = message.tool_call_id
            pool = latest if call_id is None else by_id.get(call_id, [])
            found = _take_open(pool, answered)
            if found is None:
                orphans.append(index)
            else:
                call_index, place, call = found
                answered.add((call_index, place))
                paired.append((call_index, place, index, call))
        for place, call in enumerate(message.tool_calls):
            every.append((index, place))
            pools = [latest] if call.id is None else [latest, by_id.setdefault(call.id, [])]
            for pool in pools:
                if not pool or not pool[-1] or pool[-1][0][0] != index:
                    pool.append(deque())
                pool[-1].append((index, place, call))
    paired.sort(key=lambda item: (item[0], item[1]))
    interactions = tuple(
        Interaction(ordinal, call_index, result_index, call)
        for ordinal, (call_index, _, result_index, call) in enumerate(paired)
    )
    unanswered = tuple(index for index, place in every if (index, place) not in answered)
    return Pairing(interactions, unanswered, tuple(orphans))


@dataclass(frozen=True)
class Trajectory:
    """A recorded run of an agent.

    Parameters
    ----------
    id : str
        Unique within its file.
    messages : tuple of Message
    policy : str
        The domain policy or system prompt that the agent worked under, or "".
    domain, task_id, subset : str or None
        Where it comes from, for grouping results. No model reads them.
    reward : float or None
        The recorded outcome, where there is one; 0 marks a failed run.
    source : str or None
        File (and record) that it was read from.
    extra : mapping
        What else the format holds and a user may want back. No model reads it.
    """

    id: str
    messages: tuple[Message, ...]
    policy: str = ""
    domain: str | None = None
    task_id: str | None = None
    subset: str | None = None
    reward: float | None = None
    source: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def pairing(self) -> Pairing:
        """Calls and results, paired."""
        return pair_interactions(self.messages)

    @property
    def interactions(self) -> tuple[Interaction, ...]:
        """All interactions, the user's included, in the order of their calls."""
        return self.pairing.interactions

    @cached_property
    def assistant_interactions(self) -> tuple[Interaction, ...]:
        """The interactions that can be redundant: those of the assistant."""
        return tuple(item for item in self.interactions if item.requestor == "assistant")

    @cached_property
    def _by_step(self) -> dict[tuple[int, int], Interaction]:
        return {item.step: item for item in self.interactions}

    def interaction_at(self, step: Sequence[int]) -> Interaction:
        """Return the interaction `(call_index, result_index)`.

        Raises
        ------
        ValueError
            If there is no such interaction.
        """
        key = tuple(int(i) for i in step)
        found = self._by_step.get(key) if len(key) == 2 else None
        if found is None:
            raise ValueError(
                f"trajectory {self.id}: expected the (call, result) message indices of an "
                f"interaction, got {list(step)}; it has {len(self.messages)} messages and "
                f"{len(self.interactions)} interactions"
            )
        return found

    @property
    def failed(self) -> bool:
        """Whether the outcome is known to be a failure (reward 0)."""
        return self.reward is not None and self.reward <= 0
