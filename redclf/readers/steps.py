"""Generic steps: a list of `{"action", "observation"}`, as many tools and papers dump their runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from redclf.readers.base import Reader, UniqueIds, build_each, default_id
from redclf.readers.building import Builder, text_of
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, optional_id, record_object
from redclf.readers.messages import system_text
from redclf.trajectory import Trajectory

_LISTS = ("steps", "trajectory")
_THOUGHTS = ("thought", "reasoning", "response", "message")
_NAMES = ("tool", "name", "tool_name", "function", "type")
_ARGUMENTS = ("arguments", "args", "input", "parameters", "tool_input")


class StepsReader(Reader):
    """Reads steps: `action` is a command line, or an object with a tool's name and its arguments."""

    name = "steps"
    description = 'generic steps: a list, {"steps": [...]} or JSONL of {action, observation}'

    def sniff(self, document: Document) -> str | None:
        """Return None for steps with `action` and `observation`."""
        head = document.head
        if isinstance(head, list):
            first = next((item for item in head if isinstance(item, dict)), {})
            steps = head if "action" in first else _steps(first)
        else:
            steps = _steps(head) if isinstance(head, dict) else None
        if isinstance(head, dict) and document.is_lines and "action" in head:
            steps = [head]
        if isinstance(head, dict) and ("history" in head or "info" in head or "messages" in head):
            return "an object with messages of its own"
        step = next((item for item in steps or () if isinstance(item, dict)), {})
        return None if "action" in step and "observation" in step else "no steps with `action` and `observation`"

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the trajectories."""
        unique = UniqueIds()

        def build(place: Place, value: Any) -> Trajectory:
            record = {"steps": value} if isinstance(value, list) else record_object(value, place, "a run")
            steps = _steps(record)
            if steps is None:
                raise place.error("expected a list of steps")
            builder = Builder(place)
            for key, add in (("system", builder.system), ("task", builder.user)):
                text = text_of(record.get(key), place, key)
                if text:
                    add(text)
            add_steps(builder, steps)
            messages = builder.done()
            wanted = optional_id(record, "id", place) or default_id(document, place)
            return Trajectory(unique(wanted), messages, system_text(messages), source=place.source)

        head = document.head
        first = next((i for i in head if isinstance(i, dict)), {}) if isinstance(head, list) else head
        if isinstance(first, dict) and "action" in first:
            lines = [value for _, value in document.records(on_error)] if document.is_lines else document.value
            yield from build_each([(document.place, lines)], build, on_error)
        else:
            yield from build_each(document.records(on_error), build, on_error)


def _steps(record: dict[str, Any]) -> list[Any] | None:
    return next((record[key] for key in _LISTS if isinstance(record.get(key), list)), None)


def add_steps(builder: Builder, steps: Sequence[Any]) -> None:
    """Add a call and its result for each step.

    Raises
    ------
    TraceError
        If a step is no object, or its action neither text nor an object with a tool's name.
    """
    for item in steps:
        step = record_object(item, builder.next, "a step")
        thought = next((step[key] for key in _THOUGHTS if isinstance(step.get(key), str)), "")
        action = step.get("action")
        if isinstance(action, dict):
            name = next((action[key] for key in _NAMES if isinstance(action.get(key), str)), None)
            given = next((action[key] for key in _ARGUMENTS if key in action), None)
            rest = {key: value for key, value in action.items() if key not in _NAMES}
            calls = [builder.call(name, rest if given is None else given)]
        elif isinstance(action, str):
            calls = [builder.call("bash", {"command": action.strip("\n")})] if action.strip() else []
        else:
            raise builder.next.expected("action", "text or an object", action)
        builder.assistant(thought, calls)
        if calls:
            builder.result(None, text_of(step.get("observation"), builder.next, "observation"))
