"""Items of OpenAI's Responses API, which Codex rollouts and the Agents SDK hold, too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from redclf.readers.building import Builder, text_of
from redclf.readers.fields import Place
from redclf.trajectory import ToolCall

_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "mcp_call", "computer_call")
ITEMS = ("message", *_CALLS, "function_call_output", "custom_tool_call_output", "local_shell_call_output", "reasoning")
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def add_items(builder: Builder, items: Iterable[tuple[Place, dict[str, Any]]]) -> None:
    """Add items in order; calls that come one after the other are one message.

    Raises
    ------
    TraceError
        If a call has no name, or a message no known role.
    """
    text: str = ""
    calls: list[ToolCall] = []

    def flush() -> None:
        nonlocal text, calls
        builder.assistant(text, calls)
        text, calls = "", []

    for place, item in items:
        builder.place = place
        kind = item.get("type", "message" if "role" in item else None)
        if kind == "message":
            role = item.get("role")
            if not isinstance(role, str) or role not in _ROLES:
                raise builder.next.expected("role", f"one of {', '.join(_ROLES)}", role)
            said = text_of(item.get("content"), builder.next, "content")
            flush()
            if _ROLES[role] == "assistant":
                text = said
            elif _ROLES[role] == "system":
                builder.system(said)
            else:
                builder.user(said)
        elif kind in _CALLS:
            calls.append(_call(builder, item))
            if item.get("output") is not None:  # an mcp_call holds its own result
                flush()
                builder.result(_id(item), text_of(item["output"], builder.next, "output"))
        elif isinstance(kind, str) and kind.endswith("_output"):
            flush()
            builder.result(_id(item), _output(builder, item))
    flush()


def _id(item: dict[str, Any]) -> object:
    return item.get("call_id") or item.get("id")


def _call(builder: Builder, item: dict[str, Any]) -> ToolCall:
    if item.get("type") == "local_shell_call":
        return builder.call("shell", item.get("action"), _id(item))
    given = item.get("arguments") if "arguments" in item else item.get("input", item.get("action"))
    return builder.call(item.get("name") or item.get("type"), given, _id(item))


def _output(builder: Builder, item: dict[str, Any]) -> str:
    """Return a result's text, out of the JSON `{"output": ...}` that Codex wraps it in."""
    import json

    value = item.get("output")
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return str(item["output"])
    if isinstance(value, dict) and isinstance(value.get("output"), str):
        return str(value["output"])
    return text_of(value, builder.next, "output")
