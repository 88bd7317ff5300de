"""What the chat APIs demand of a list of messages, as far as tool calls go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redclf.trajectory import Message


def openai_faults(messages: Sequence[dict[str, Any]]) -> list[str]:
    """Return what OpenAI's chat API would refuse: calls without results right behind them, results without calls."""
    faults = []
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_calls:
                faults.append(f"{index}: result without a call")
            else:
                open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            faults.append(f"{index}: {len(open_calls)} calls without results before it")
            open_calls = []
        if "tool_calls" in message:
            if not message["tool_calls"]:
                faults.append(f"{index}: empty tool_calls")
            open_calls = [call["id"] for call in message["tool_calls"]]
            if len(set(open_calls)) != len(open_calls):
                faults.append(f"{index}: the same id twice")
        elif message["role"] == "assistant" and not message.get("content"):
            faults.append(f"{index}: an empty message")
    if open_calls:
        faults.append("end: calls without results")
    return faults


def anthropic_faults(messages: Sequence[Message]) -> list[str]:
    """Return what Anthropic's API would refuse once results are joined to the user turn that follows each call."""
    faults = []
    turns: list[str] = []
    pending = 0
    for index, message in enumerate(messages):
        if message.role == "system":
            continue
        side = "assistant" if message.role == "assistant" else "user"
        if message.role == "tool":
            pending -= 1
            if pending < 0:
                faults.append(f"{index}: result without a call")
        elif pending > 0:
            faults.append(f"{index}: {pending} calls not answered in the next turn")
        if not turns or turns[-1] != side:
            turns.append(side)
        if message.role == "assistant":
            pending = len(message.tool_calls)
    if pending > 0:
        faults.append("end: calls without results")
    return faults
