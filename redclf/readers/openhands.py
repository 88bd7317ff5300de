"""Event lists of OpenHands: actions of the agent, and the observations that they cause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redclf.readers.base import Reader, build_each
from redclf.readers.building import Builder, head_objects, text_of
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, clean, record_object
from redclf.readers.messages import system_text
from redclf.trajectory import Trajectory

#: Actions that are no tool calls.
_SPOKEN = ("message", "finish", "think", "system", "recall", "change_agent_state", "condensation")


class OpenHandsReader(Reader):
    """Reads the events of one run; an observation answers the action of its `cause`."""

    name = "openhands"
    description = "OpenHands events: a list or JSON lines of {id, source, action | observation, args, cause}"

    def sniff(self, document: Document) -> str | None:
        """Return None for events with a `source` and an `action` or `observation`."""
        events = [
            item
            for item in head_objects(document)
            if isinstance(item.get("source"), str) and ("observation" in item or isinstance(item.get("args"), dict))
        ]
        known = any(isinstance(item.get("action"), str) or isinstance(item.get("cause"), int) for item in events)
        return None if known else "no events with `source` and `action`"

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the run."""
        events = [value for _, value in document.records(on_error)]
        yield from build_each([(document.place, events)], self._build, on_error)

    @staticmethod
    def _build(place: Place, events: Any) -> Trajectory:
        builder = Builder(place)
        calls: set[str] = set()
        for value in events:
            event = record_object(value, builder.next, "an event")
            given = event.get("args")
            args: dict[str, Any] = given if isinstance(given, dict) else {}
            action, cause = event.get("action"), event.get("cause")
            if isinstance(event.get("observation"), str):
                if str(cause) in calls:
                    builder.result(cause, text_of(event.get("content"), builder.next, "content"))
            elif action == "message":
                text = text_of(args.get("content", event.get("message")), builder.next, "content")
                (builder.user if event.get("source") == "user" else builder.assistant)(text)
            elif action == "system":
                builder.system(text_of(args.get("content"), builder.next, "content"))
            elif isinstance(action, str) and event.get("source") == "agent" and action not in _SPOKEN:
                thought = args.get("thought")
                rest = {key: item for key, item in args.items() if key != "thought" and item not in (None, "")}
                calls.add(str(event.get("id")))
                builder.assistant(thought if isinstance(thought, str) else "", [_call(builder, action, rest, event)])
            elif action == "finish":
                builder.assistant(text_of(args.get("final_thought", args.get("thought")), builder.next, "thought"))
        messages = builder.done()
        stem = clean(place.path.rsplit("/", 1)[-1].rsplit(".", 1)[0])
        return Trajectory(stem, messages, system_text(messages), source=place.source)


def _call(builder: Builder, action: str, args: dict[str, Any], event: dict[str, Any]) -> Any:
    """Return an action as a call: of the shell where it runs a command."""
    if action == "run" and isinstance(args.get("command"), str):
        return builder.call("bash", {"command": args["command"]}, event.get("id"))
    return builder.call(action, args, event.get("id"))
