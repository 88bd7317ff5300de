"""Trace exports of Langfuse: `{"id", "observations": [{"type", "input", "output"}]}`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redclf.readers.base import Reader, UniqueIds, build_each
from redclf.readers.building import Builder, model_of, text_of
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, clean, optional_id, record_object
from redclf.readers.messages import parse_message, system_text
from redclf.trajectory import Trajectory


class LangfuseReader(Reader):
    """Reads one trajectory a trace.

    Where generations hold chat messages, the longest one's are taken, with its reply: they have all before them. Else
    the observations of type TOOL are the calls, by their start.
    """

    name = "langfuse"
    description = "Langfuse traces: {id, observations: [{type, input, output}]}, a list or JSON lines of those"

    def sniff(self, document: Document) -> str | None:
        """Return None for traces with `observations` that have a type."""
        head = document.head
        if isinstance(head, dict) and isinstance(head.get("data"), list):
            head = head["data"]
        first = next((i for i in head if isinstance(i, dict)), None) if isinstance(head, list) else head
        found = first.get("observations") if isinstance(first, dict) else None
        if not isinstance(found, list):
            return "no `observations`"
        typed = any(isinstance(item, dict) and isinstance(item.get("type"), str) for item in found)
        return None if typed else "observations without a `type`"

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the traces."""
        unique = UniqueIds()

        def build(place: Place, value: Any) -> Trajectory:
            record = record_object(value, place, "a trace")
            given = record.get("observations")
            if not isinstance(given, list):
                raise place.expected("observations", "a list", given)
            observations = [record_object(item, place, "an observation") for item in given]
            observations.sort(key=lambda item: str(item.get("startTime") or ""))
            builder = Builder(place)
            model = _fill(builder, observations, record)
            messages = builder.done()
            name = optional_id(record, "id", place) or place.record or clean(document.path.stem)
            extra = model_of(model)
            return Trajectory(unique(name), messages, system_text(messages), source=place.source, extra=extra)

        head = document.head
        if isinstance(head, dict) and isinstance(head.get("data"), list):
            yield from build_each(document.listed("data"), build, on_error)
        else:
            yield from build_each(document.records(on_error), build, on_error)


def _fill(builder: Builder, observations: list[dict[str, Any]], record: dict[str, Any]) -> Any:
    """Add a trace's messages, and return the model's name."""
    generations = [item for item in observations if item.get("type") == "GENERATION" and _chat(item.get("input"))]
    if generations:
        last = max(generations, key=lambda item: len(_chat(item.get("input"))))
        output = last.get("output")
        said = [output] if isinstance(output, dict) and "role" in output else []
        if isinstance(output, str):
            said = [{"role": "assistant", "content": output}]
        for message in [*_chat(last.get("input")), *said]:
            builder.messages.append(parse_message(message, builder.next))
        return last.get("model")
    asked = record.get("input")
    if isinstance(asked, str):
        builder.user(asked)
    for item in observations:
        if item.get("type") == "TOOL":
            given = item.get("input")
            arguments = given if isinstance(given, dict | str) or given is None else {"input": given}
            builder.assistant("", [builder.call(item.get("name"), arguments, item.get("id"))])
            builder.result(item.get("id"), text_of(item.get("output"), builder.next, "output"))
    if isinstance(record.get("output"), str):
        builder.assistant(record["output"])
    return next((item.get("model") for item in observations if item.get("model")), None)


def _chat(value: object) -> list[Any]:
    """Return chat messages, of a list or an object with `messages`; none where it is neither."""
    found = value.get("messages") if isinstance(value, dict) else value
    is_chat = isinstance(found, list) and bool(found) and all(isinstance(m, dict) and "role" in m for m in found)
    return list(found) if is_chat and isinstance(found, list) else []
