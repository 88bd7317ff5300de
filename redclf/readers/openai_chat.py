"""OpenAI chat messages: a list, `{"messages": [...]}`, or several of those."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redclf.errors import TraceError
from redclf.readers.base import Reader, UniqueIds, build_each, default_id
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, got, optional_id, optional_number
from redclf.readers.messages import parse_messages, system_text
from redclf.trajectory import Trajectory

_BODY = ("content", "tool_calls", "function_call", "refusal")
#: Content parts by which other formats with the same roles carry calls and results.
_FOREIGN_PARTS = ("tool_use", "tool_result", "tool-call", "tool-result")


class OpenAIChatReader(Reader):
    """Reads chat messages with `tool_calls` or the legacy `function_call`.

    Lines that are single messages are one trajectory. `id` or `trajectory_id`, `task_id` and
    `reward` beside `messages` are taken where they are there.
    """

    name = "openai_chat"
    description = 'OpenAI chat messages: a JSON list, {"messages": [...]}, a list or JSONL of those'
    generic = True

    def sniff(self, document: Document) -> str | None:
        """Return None where the first record's messages have OpenAI's roles and fields."""
        found = _sample(document)
        if isinstance(found, str):
            return found
        first = next((item for item in found if isinstance(item, dict)), None)
        if first is None:
            return "a list of messages without objects" if found else None
        if not isinstance(first.get("role"), str):
            return "messages without `role`"
        if not any(key in first for key in _BODY):
            return f"messages without `{'`, `'.join(_BODY)}`"
        foreign = next((kind for item in found for kind in _foreign_parts(item)), None)
        return f"content parts of type {foreign}" if foreign else None

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the trajectories; JSON lines are read one at a time."""
        unique = UniqueIds()

        def build(place: Place, value: Any) -> Trajectory:
            record = {"messages": value} if isinstance(value, list) else value
            if not isinstance(record, dict) or "messages" not in record:
                what = "a list of messages or an object with `messages`"
                raise place.error(f"expected {what}, got {got(value)}")
            wanted = optional_id(record, "trajectory_id", place) or optional_id(record, "id", place)
            messages = parse_messages(record["messages"], place)
            return Trajectory(
                unique(wanted or default_id(document, place)),
                messages,
                policy=system_text(messages),
                task_id=optional_id(record, "task_id", place),
                reward=optional_number(record, "reward", place),
                source=place.source,
            )

        records: Iterator[tuple[Place, Any]]
        if document.is_lines and _is_message(document.head):
            records = iter([(document.place, list(_message_lines(document)))])
        elif not document.is_lines and _is_message_list(document.head):
            records = iter([(document.place, document.value)])
        else:
            records = document.records(on_error)
        yield from build_each(records, build, on_error)

    def raw_messages(self, record: Any) -> list[Any] | None:
        """Return the list of messages."""
        found = record if isinstance(record, list) else record.get("messages")
        return found if isinstance(found, list) else None


def _message_lines(document: Document) -> Iterator[Any]:
    def fail(error: TraceError) -> None:
        # Going on without the line would move the indices of all later messages.
        raise error

    return (value for _, value in document.records(fail))


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and "role" in value and "messages" not in value


def _is_message_list(value: object) -> bool:
    if not isinstance(value, list):
        return False
    return _is_message(next((item for item in value if isinstance(item, dict)), None))


def _sample(document: Document) -> list[Any] | str:
    """Return the messages of the first record, or why there are none."""
    head = document.head
    if document.is_lines and _is_message(head):
        return [head]
    if not document.is_lines and isinstance(head, list) and not _is_message_list(head):
        head = next((item for item in head if isinstance(item, (dict, list))), None)
        if head is None:
            return "a list without objects"
    if isinstance(head, dict):
        if "messages" not in head:
            return "no `messages`"
        head = head["messages"]
        if not isinstance(head, list):
            return f"`messages` is {got(head)}, not a list"
    if not isinstance(head, list):
        return f"{got(head)}, not messages"
    return head


def _foreign_parts(message: object) -> Iterator[str]:
    content = message.get("content") if isinstance(message, dict) else None
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind in _FOREIGN_PARTS:
            yield kind
