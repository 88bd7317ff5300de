"""Items of OpenAI's Responses API and the Agents SDK: a list, or `{"input": [...], "output": [...]}`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redclf.readers.base import Reader, UniqueIds, build_each, default_id
from redclf.readers.building import Builder, model_of
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, got, optional_id, optional_text, record_object
from redclf.readers.messages import system_text
from redclf.readers.response_items import ITEMS, add_items
from redclf.trajectory import Trajectory


class OpenAIResponsesReader(Reader):
    """Reads items with `function_call` and `function_call_output`; reasoning is left out."""

    name = "openai_responses"
    description = 'OpenAI Responses and Agents SDK items: a list or {"input", "output"} with function_call items'

    def sniff(self, document: Document) -> str | None:
        """Return None where items have a type that only this API has."""
        head = document.head
        if isinstance(head, dict):
            items = _items(head)
        elif isinstance(head, list):
            nested = next((item for item in head if isinstance(item, dict)), {})
            items = head if nested.get("type") in ITEMS or "role" in nested else _items(nested)
        else:
            return "no items"
        if document.is_lines and isinstance(head, dict) and not items:
            return "no `input` or `output` items"
        calls = (item.get("type") for item in items if isinstance(item, dict))
        return None if any(kind in ITEMS and kind != "message" for kind in calls) else "no function_call items"

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the trajectories."""
        unique = UniqueIds()

        def build(place: Place, value: Any) -> Trajectory:
            record = {"input": value} if isinstance(value, list) else record_object(value, place, "a response")
            builder = Builder(place)
            instructions = optional_text(record, "instructions", place)
            if instructions:
                builder.system(instructions)
            asked = record.get("input")
            if isinstance(asked, str):
                builder.user(asked)
            add_items(builder, ((place, _object(item, place)) for item in _items(record)))
            builder.place = place
            messages = builder.done()
            wanted = optional_id(record, "id", place) or default_id(document, place)
            model = record.get("model")
            extra = model_of(model)
            return Trajectory(unique(wanted), messages, system_text(messages), source=place.source, extra=extra)

        head = document.head
        first = next((i for i in head if isinstance(i, dict)), {}) if isinstance(head, list) else {}
        if not document.is_lines and (first.get("type") in ITEMS or "role" in first):
            yield from build_each([(document.place, document.value)], build, on_error)
        else:
            yield from build_each(document.records(on_error), build, on_error)


def _items(record: dict[str, Any]) -> list[Any]:
    found = []
    for key in ("input", "output"):
        if isinstance(record.get(key), list):
            found += record[key]
    return found


def _object(item: object, place: Place) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise place.error(f"expected items that are objects, got {got(item)}")
    return item
