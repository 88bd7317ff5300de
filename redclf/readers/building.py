"""Putting a trajectory's messages together from formats that have none of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from redclf.readers.document import Document
from redclf.readers.fields import Place, clean, got, optional_count
from redclf.readers.messages import parse_arguments
from redclf.trajectory import Message, ToolCall


class Builder:
    """Collects messages in order.

    Parameters
    ----------
    place : Place
        The record, for errors.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.messages: list[Message] = []

    @property
    def next(self) -> Place:
        """The place of the message that comes next."""
        return self.place.at(len(self.messages))

    def system(self, text: str) -> None:
        """Add what the agent works under."""
        self.messages.append(Message("system", clean(text)))

    def user(self, text: str) -> None:
        """Add what the user says."""
        self.messages.append(Message("user", clean(text)))

    def assistant(self, text: str, calls: Sequence[ToolCall] = (), usage: Mapping[str, int] | None = None) -> None:
        """Add what the assistant says and calls; nothing where it does neither."""
        if text.strip() or calls:
            self.messages.append(Message("assistant", clean(text), tuple(calls), usage=usage or None))

    def call(self, name: object, arguments: object, id: object = None) -> ToolCall:
        """Return a call.

        Raises
        ------
        TraceError
            If it has no name, or its arguments are neither an object nor a text.
        """
        if not isinstance(name, str) or not name:
            raise self.next.expected("a call's name", "text", name)
        if isinstance(arguments, list):
            arguments = {"arguments": arguments}
        return ToolCall(clean(name), parse_arguments(arguments, self.next, "a call's arguments"), as_id(id))

    def result(self, id: object, text: str) -> None:
        """Add a tool's result."""
        self.messages.append(Message("tool", clean(text), tool_call_id=as_id(id)))

    def done(self) -> tuple[Message, ...]:
        """Return the messages.

        Raises
        ------
        TraceError
            If there are none.
        """
        if not self.messages:
            raise self.place.error("expected messages or tool calls, got none")
        return tuple(self.messages)


def as_id(value: object) -> str | None:
    """Return a call id as text, None where there is none."""
    if isinstance(value, bool) or value is None or value == "":
        return None
    return clean(str(value)) if isinstance(value, str | int) else None


def text_of(value: object, place: Place, field: str) -> str:
    """Return the text of a content: a string, null, parts with `text`, or any other JSON as it is.

    Raises
    ------
    TraceError
        If a list holds something that is no part.
    """
    import json

    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(part for item in value if (part := _part(item, place, field)))
    return json.dumps(value, ensure_ascii=False, default=str)


def _part(item: object, place: Place, field: str) -> str:
    if isinstance(item, str):
        return item
    if not isinstance(item, dict):
        raise place.expected(field, "text or parts of content", item)
    for key in ("text", "content", "output"):
        value = item.get(key)
        if isinstance(value, str):
            return value
    kind = item.get("type")
    return f"[{kind}]" if isinstance(kind, str) else ""


def model_of(name: object) -> dict[str, str]:
    """Return what a trajectory's `extra` says of the model: its name, nothing where that is no text."""
    return {"model": clean(name)} if isinstance(name, str) and name else {}


def usage_of(value: object, place: Place, given: Sequence[str], made: Sequence[str]) -> dict[str, int]:
    """Return token counts: the sum of some fields as input, of others as output.

    Raises
    ------
    TraceError
        If one of them is no whole number from 0.
    """
    if not isinstance(value, dict):
        return {}
    found = {}
    for name, fields in (("prompt_tokens", given), ("completion_tokens", made)):
        counts = [count for field in fields if (count := optional_count(value, field, place)) is not None]
        if counts:
            found[name] = sum(counts)
    return found


def line_objects(document: Document) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield the objects of a file whose lines, or whose list, are one trajectory together.

    Raises
    ------
    TraceError
        At a line that is no JSON object: without it the others would not be the same run.
    """

    def fail(error: Exception) -> None:
        raise error

    for place, value in document.records(fail):
        if not isinstance(value, dict):
            raise place.error(f"expected an object, got {got(value)}")
        yield place, value


def head_objects(document: Document) -> list[dict[str, Any]]:
    """Return the objects by which a format of lines is told: the first of the lines or the list."""
    head = document.head
    if document.is_lines or isinstance(head, dict):
        return [head] if isinstance(head, dict) else []
    return [item for item in head[:50] if isinstance(item, dict)] if isinstance(head, list) else []
