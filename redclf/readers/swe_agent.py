"""Runs of SWE-agent (`.traj`): `{"trajectory", "history", "info"}`, with function calling or plain commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redclf.readers.base import Reader, build_each
from redclf.readers.building import Builder, text_of
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, clean, got, record_object
from redclf.readers.messages import parse_message, system_text
from redclf.readers.steps import add_steps
from redclf.trajectory import Trajectory

#: Commands of SWE-agent's own interface; all others go to the shell.
_COMMANDS = (
    "open", "goto", "scroll_up", "scroll_down", "create", "edit", "search_dir", "search_file", "find_file", "submit",
    "insert", "append", "str_replace_editor", "exit_forfeit", "skip",
)  # fmt: skip


class SweAgentReader(Reader):
    """Reads the history, which holds all messages; without one the steps of `trajectory`.

    Demonstrations are taken as part of what the agent works under.
    """

    name = "swe_agent"
    description = "SWE-agent runs (.traj): {trajectory, history, info}"

    def sniff(self, document: Document) -> str | None:
        """Return None for an object with a `trajectory` of steps with `action` and `observation`."""
        head = document.head
        steps = head.get("trajectory") if isinstance(head, dict) else None
        if not isinstance(steps, list) or document.is_lines:
            return "no `trajectory`"
        first = next((step for step in steps if isinstance(step, dict)), None)
        if first is None or "action" not in first or "observation" not in first:
            return "no steps with `action` and `observation`"
        return None if "history" in head or "info" in head else "no `history` or `info`"

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the run."""
        yield from build_each([(document.place, document.value)], self._build, on_error)

    def _build(self, place: Place, value: Any) -> Trajectory:
        record = record_object(value, place, "a run")
        history = record.get("history")
        builder = Builder(place)
        if isinstance(history, list) and history:
            _add_history(builder, history)
        else:
            steps = record.get("trajectory")
            if not isinstance(steps, list):
                raise place.expected("trajectory", "a list of steps", steps)
            add_steps(builder, steps)
        messages = builder.done()
        stem = clean(place.path.rsplit("/", 1)[-1].rsplit(".", 1)[0])
        return Trajectory(stem, messages, system_text(messages), source=place.source)


def _add_history(builder: Builder, history: list[Any]) -> None:
    waiting: list[str | None] = []
    for item in history:
        entry = record_object(item, builder.next, "a message")
        role = entry.get("role")
        text = text_of(entry.get("content"), builder.next, "content")
        if role == "assistant" and entry.get("tool_calls"):
            message = parse_message({**entry, "usage": None}, builder.next)
            builder.messages.append(message)
            waiting = [call.id for call in message.tool_calls]
        elif role == "assistant" and isinstance(entry.get("action"), str) and entry["action"].strip():
            builder.assistant(
                text_of(entry.get("thought"), builder.next, "thought"), [command_call(builder, entry["action"])]
            )
            waiting = [None]
        elif role == "assistant":
            builder.assistant(text)
            waiting = []
        elif role == "tool" or (role == "user" and waiting):
            ids = entry.get("tool_call_ids")
            builder.result(ids[0] if isinstance(ids, list) and ids else waiting[0] if waiting else None, text)
            waiting = waiting[1:]
        elif role == "system" or entry.get("is_demo"):
            builder.system(text)
        elif role == "user":
            builder.user(text)
        else:
            raise builder.next.error(f"role: expected system, user, assistant or tool, got {got(role)}")


def command_call(builder: Builder, action: str) -> Any:
    """Return a command line as a call: of SWE-agent's own command, or of the shell."""
    name, _, rest = action.strip().partition(" ")
    name = name.split("\n", 1)[0]
    if name in _COMMANDS:
        return builder.call(name, {"arguments": rest.strip()} if rest.strip() else {})
    return builder.call("bash", {"command": action.strip("\n")})
