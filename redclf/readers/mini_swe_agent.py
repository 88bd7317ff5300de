"""Runs of mini-swe-agent: chat messages whose calls are fenced blocks in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from redclf.readers.base import Reader, build_each
from redclf.readers.building import Builder, text_of, usage_of
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, clean, optional_id, record_object
from redclf.readers.messages import parse_messages, system_text
from redclf.trajectory import Message, Trajectory

_BLOCK = re.compile(r"```(?:bash|sh|shell|mswea_bash_command)[ \t]*\r?\n(.*?)\n?```", re.DOTALL)
_SUFFIX = ".traj"
_NAMED = "mini-swe-agent"


class MiniSweAgentReader(Reader):
    """Reads the current layout, `{"info", "messages", "trajectory_format"}`, and the older bare list.

    A reply's block is a call of `bash`, and the message that answers it the result. A reply with several blocks is
    a call, too: the tool refuses it, and says so in the result.
    """

    name = "mini_swe_agent"
    description = "mini-swe-agent runs (.traj.json): messages whose calls are fenced bash blocks"

    def sniff(self, document: Document) -> str | None:
        """Return None for mini-swe-agent's own mark, or a list of messages in which replies are fenced blocks."""
        head = document.head
        if document.is_lines:
            return "JSON lines"
        if isinstance(head, dict):
            info = head.get("info")
            marked = str(head.get("trajectory_format", "")).startswith(_NAMED)
            if isinstance(head.get("messages"), list) and (
                marked or (isinstance(info, dict) and "mini_version" in info)
            ):
                return None
            return "no `trajectory_format` of mini-swe-agent"
        if not isinstance(head, list):
            return "no messages"
        replies = [m for m in head if isinstance(m, dict) and m.get("role") == "assistant"]
        if any(m.get("role") == "tool" or m.get("tool_calls") for m in head if isinstance(m, dict)):
            return "messages with tool calls of their own"
        fenced = sum(isinstance(m.get("content"), str) and bool(_BLOCK.search(m["content"])) for m in replies)
        return None if fenced and 2 * fenced >= len(replies) else "replies without fenced blocks"

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the run; message indices are those of the file."""
        yield from build_each([(document.place, document.value)], self._build, on_error)

    def _build(self, place: Place, value: Any) -> Trajectory:
        record = {"messages": value} if isinstance(value, list) else record_object(value, place, "a run")
        messages = parse_messages(record.get("messages"), place)
        if not any(message.tool_calls for message in messages):
            messages = _with_calls(messages, record["messages"], place)
        stem = place.path.rsplit("/", 1)[-1].removesuffix(".json").removesuffix(_SUFFIX)
        name = optional_id(record, "instance_id", place) or clean(stem)
        model = _model(record)
        extra = {"model": model} if model else {}
        return Trajectory(name, messages, system_text(messages), source=place.source, extra=extra)


def _with_calls(messages: tuple[Message, ...], raw: list[Any], place: Place) -> tuple[Message, ...]:
    builder = Builder(place)
    waiting = False
    for message, item in zip(messages, raw, strict=True):
        if message.role == "assistant":
            blocks = _BLOCK.findall(message.content)
            call = (
                builder.call("bash", {"command": "\n".join(block.strip("\n") for block in blocks)}) if blocks else None
            )
            text = _BLOCK.sub("", message.content).strip() if blocks else message.content
            usage = message.usage or usage_of(_usage(item), builder.next, ("prompt_tokens",), ("completion_tokens",))
            builder.messages.append(Message("assistant", text, (call,) if call else (), usage=usage or None))
            waiting = call is not None
        elif message.role == "user" and waiting:
            builder.result(None, text_of(message.content, builder.next, "content"))
            waiting = False
        else:
            builder.messages.append(message)
    return builder.done()


def _usage(item: dict[str, Any]) -> Any:
    extra = item.get("extra")
    response = extra.get("response") if isinstance(extra, dict) else None
    return response.get("usage") if isinstance(response, dict) else None


def _model(record: dict[str, Any]) -> str | None:
    """Return the model's name: from the configuration, or from the first reply."""
    info = record.get("info")
    config = info.get("config") if isinstance(info, dict) else None
    model = config.get("model") if isinstance(config, dict) else None
    name = model.get("model_name") if isinstance(model, dict) else None
    if isinstance(name, str):
        return clean(name)
    for item in record["messages"]:
        extra = item.get("extra") if isinstance(item, dict) else None
        response = extra.get("response") if isinstance(extra, dict) else None
        if isinstance(response, dict) and isinstance(response.get("model"), str):
            return clean(response["model"])
    return None
