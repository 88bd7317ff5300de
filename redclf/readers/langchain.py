"""Message dumps of LangChain and LangGraph, in the three ways in which they are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redclf.readers.base import Reader, UniqueIds, build_each, default_id
from redclf.readers.building import Builder, model_of, text_of, usage_of
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, optional_id, record_object
from redclf.readers.messages import system_text
from redclf.trajectory import Trajectory

_TYPES = {
    "human": "user", "HumanMessage": "user", "ai": "assistant", "AIMessage": "assistant", "AIMessageChunk": "assistant",
    "tool": "tool", "ToolMessage": "tool", "function": "tool", "FunctionMessage": "tool",
    "system": "system", "SystemMessage": "system",
}  # fmt: skip


class LangChainReader(Reader):
    """Reads `messages_to_dict` (`{"type", "data"}`), `dumpd` (`{"lc", "id", "kwargs"}`), and plain model dumps."""

    name = "langchain"
    description = 'LangChain and LangGraph messages: a list, or {"messages"}, of human, ai and tool messages'

    def sniff(self, document: Document) -> str | None:
        """Return None where the first message is one of LangChain's."""
        messages = _messages(document.head)
        if messages is None and isinstance(document.head, list):
            messages = _messages(next((item for item in document.head if isinstance(item, dict | list)), None))
        first = next((item for item in messages or () if isinstance(item, dict)), None)
        return None if first is not None and _unpacked(first) is not None else "no messages of type human, ai or tool"

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the trajectories."""
        unique = UniqueIds()

        def build(place: Place, value: Any) -> Trajectory:
            given = _messages(value)
            if given is None:
                raise place.error("expected a list of messages")
            builder = Builder(place)
            model = None
            for item in given:
                found = _unpacked(record_object(item, builder.next, "a message"))
                if found is None:
                    raise builder.next.error("expected a message of type human, ai, tool or system")
                kind, data = found
                _add(builder, kind, data)
                metadata = data.get("response_metadata")
                model = (metadata.get("model_name") if isinstance(metadata, dict) else None) or model
            messages = builder.done()
            wanted = optional_id(value, "thread_id", place) if isinstance(value, dict) else None
            extra = model_of(model)
            name = wanted or default_id(document, place)
            return Trajectory(unique(name), messages, system_text(messages), source=place.source, extra=extra)

        head = document.head
        whole = isinstance(head, list) and any(isinstance(i, dict) and _unpacked(i) is not None for i in head)
        if not document.is_lines and whole:
            yield from build_each([(document.place, document.value)], build, on_error)
        else:
            yield from build_each(document.records(on_error), build, on_error)


def _messages(value: object) -> list[Any] | None:
    if isinstance(value, list):
        return value
    for key in ("messages", "values"):
        inner = value.get(key) if isinstance(value, dict) else None
        if inner is not None:
            return _messages(inner)
    return None


def _unpacked(item: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return role and fields of a message, None where it is none of LangChain's."""
    if item.get("lc") is not None and isinstance(item.get("kwargs"), dict) and isinstance(item.get("id"), list):
        name, data = (item["id"] or [None])[-1], item["kwargs"]
    else:
        name, data = item.get("type"), item["data"] if isinstance(item.get("data"), dict) else item
    role = _TYPES.get(name) if isinstance(name, str) else None
    return None if role is None or "content" not in data else (role, data)


def _add(builder: Builder, role: str, data: dict[str, Any]) -> None:
    text = text_of(_said(data.get("content")), builder.next, "content")
    if role == "assistant":
        made = data.get("tool_calls")
        if made is not None and not isinstance(made, list):
            raise builder.next.expected("tool_calls", "a list", made)
        given = [record_object(call, builder.next, "a call") for call in made or []]
        calls = [builder.call(call.get("name"), call.get("args"), call.get("id")) for call in given]
        usage = usage_of(data.get("usage_metadata"), builder.next, ("input_tokens",), ("output_tokens",))
        builder.assistant(text, calls, usage)
    elif role == "tool":
        builder.result(data.get("tool_call_id"), text)
    elif role == "system":
        builder.system(text)
    else:
        builder.user(text)


def _said(content: Any) -> Any:
    """Leave out the blocks of a call, which `tool_calls` holds, too."""
    if not isinstance(content, list):
        return content
    return [part for part in content if not (isinstance(part, dict) and part.get("type") in ("tool_use", "tool_call"))]
