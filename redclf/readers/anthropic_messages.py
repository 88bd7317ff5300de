"""Anthropic Messages: a request, `{"system", "messages"}`, or its list of messages, or several of those."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redclf.readers.base import Reader, UniqueIds, build_each, default_id
from redclf.readers.blocks import add_blocks, has_blocks
from redclf.readers.building import Builder, model_of, text_of
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, optional_id, record_object
from redclf.readers.messages import system_text
from redclf.trajectory import Trajectory


class AnthropicReader(Reader):
    """Reads messages whose calls and results are content blocks."""

    name = "anthropic"
    description = 'Anthropic Messages: {"system", "messages"} or a list with tool_use and tool_result blocks'

    def sniff(self, document: Document) -> str | None:
        """Return None where messages have tool_use or tool_result blocks."""
        head = document.head
        if not document.is_lines and isinstance(head, list) and not has_blocks(head):
            head = next((item for item in head if isinstance(item, dict | list)), None)
        messages = head.get("messages") if isinstance(head, dict) else head
        if not isinstance(messages, list):
            return "no list of messages"
        return None if has_blocks(messages) else "no tool_use or tool_result blocks"

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the trajectories; a message with several results becomes one for each."""
        unique = UniqueIds()

        def build(place: Place, value: Any) -> Trajectory:
            record = {"messages": value} if isinstance(value, list) else record_object(value, place, "a request")
            builder = Builder(place)
            if record.get("system") is not None:
                builder.system(text_of(record["system"], place, "system"))
            given = record.get("messages")
            if not isinstance(given, list):
                raise place.expected("messages", "a list", given)
            for message in given:
                entry = record_object(message, builder.next, "a message")
                role = entry.get("role")
                if role not in ("user", "assistant", "system"):
                    raise builder.next.expected("role", "user, assistant or system", role)
                add_blocks(builder, role, entry.get("content"), entry.get("usage"))
            messages = builder.done()
            wanted = optional_id(record, "id", place) or default_id(document, place)
            model = record.get("model")
            return Trajectory(
                unique(wanted),
                messages,
                policy=system_text(messages),
                source=place.source,
                extra=model_of(model),
            )

        head = document.head
        if not document.is_lines and isinstance(head, list) and has_blocks(head):
            yield from build_each([(document.place, document.value)], build, on_error)
        else:
            yield from build_each(document.records(on_error), build, on_error)
