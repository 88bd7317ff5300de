"""Trajectories in a few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redclf.trajectory import Message, ToolCall, Trajectory


def user(text: str) -> Message:
    return Message("user", text)


def said(text: str) -> Message:
    return Message("assistant", text)


def step(tool: str, result: str, arguments: Any = None, requestor: str = "assistant", id: str | None = None) -> list:
    """A call and its result."""
    call = ToolCall(tool, {} if arguments is None else arguments, id, requestor)  # type: ignore[arg-type]
    return [
        Message(requestor, "", (call,)),  # type: ignore[arg-type]
        Message("tool", result, tool_call_id=id, requestor=requestor),  # type: ignore[arg-type]
    ]


def parallel(*steps: tuple[str, Any, str]) -> list[Message]:
    """One message with several calls (tool, arguments, result), and their results."""
    calls = tuple(ToolCall(tool, arguments, f"p{place}") for place, (tool, arguments, _) in enumerate(steps))
    results = [Message("tool", result, tool_call_id=f"p{place}") for place, (_, _, result) in enumerate(steps)]
    return [Message("assistant", "", calls), *results]


def trace(*parts: Message | Sequence[Message], policy: str = "", name: str = "t") -> Trajectory:
    messages: list[Message] = []
    for part in parts:
        messages += [part] if isinstance(part, Message) else part
    return Trajectory(name, tuple(messages), policy=policy)


def chain(count: int, per_message: int = 1) -> Trajectory:
    """A long run: reads and writes of many items, several calls a message."""
    messages: list[Message] = [user("Please sort the crates of dock 12")]
    for start in range(0, count, per_message):
        numbers = range(start, min(start + per_message, count))
        calls = tuple(
            ToolCall("update_crate" if n % 5 == 0 else "get_crate", {"crate": f"cr_{n % 97}"}, f"c{n}") for n in numbers
        )
        messages.append(Message("assistant", "", calls))
        messages += [
            Message("tool", f'{{"crate": "cr_{n % 97}", "weight": {n % 13}}}', tool_call_id=f"c{n}") for n in numbers
        ]
    return Trajectory("chain", tuple(messages))
