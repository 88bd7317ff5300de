"""Anthropic's content blocks: text, tool_use, tool_result."""

from __future__ import annotations

from typing import Any

from redclf.readers.building import Builder, text_of, usage_of
from redclf.readers.fields import got
from redclf.trajectory import ToolCall

_GIVEN = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_MADE = ("output_tokens",)
#: Blocks that are no part of what is said.
_SILENT = ("thinking", "redacted_thinking")


def add_blocks(builder: Builder, role: str, content: object, usage: object = None) -> None:
    """Add a message of blocks: each result becomes a message of its own, before what the user says beside it.

    Raises
    ------
    TraceError
        If a block is no object, or a call has no name.
    """
    blocks = (
        content if isinstance(content, list) else [{"type": "text", "text": text_of(content, builder.next, "content")}]
    )
    texts: list[str] = []
    calls: list[ToolCall] = []
    for block in blocks:
        if isinstance(block, str):
            block = {"type": "text", "text": block}
        if not isinstance(block, dict):
            raise builder.next.error(f"content: expected blocks, got {got(block)}")
        kind = block.get("type")
        if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            calls.append(builder.call(block.get("name"), block.get("input"), block.get("id")))
        elif isinstance(kind, str) and kind.endswith("tool_result"):
            builder.result(
                block.get("tool_use_id"), text_of(block.get("content"), builder.next, "content of a tool_result")
            )
        elif kind not in _SILENT:
            texts.append(text_of([block], builder.next, "content"))
    text = "\n".join(text for text in texts if text)
    if role == "assistant":
        builder.assistant(text, calls, usage_of(usage, builder.next, _GIVEN, _MADE))
    elif role == "system":
        builder.system(text)
    elif text.strip():
        builder.user(text)


def has_blocks(messages: object) -> bool:
    """Return whether a list holds messages with calls or results as blocks."""
    return isinstance(messages, list) and any(
        isinstance(block, dict) and block.get("type") in ("tool_use", "tool_result")
        for message in messages
        if isinstance(message, dict) and message.get("role") in ("user", "assistant")
        for block in _blocks(message)
    )


def _blocks(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []
