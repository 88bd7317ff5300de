"""Writing trajectories back: a file's own records with some messages changed, or chat messages for any format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redclf.pruning import Plan
from redclf.tokens import arguments_text
from redclf.trajectory import Message, Trajectory


def edit_messages(raw: list[Any], plan: Plan) -> list[Any]:
    """Return a record's own list of messages with a plan carried out; what it does not touch stays as it is.

    Parameters
    ----------
    raw : list
        One item a message, in their order.
    plan : Plan
    """
    edited = []
    for index, item in enumerate(raw):
        if index in plan.dropped:
            continue
        changed = dict(item)
        places = plan.calls.get(index)
        if places:
            calls = [call for place, call in enumerate(changed.get("tool_calls") or []) if place not in places]
            if calls:
                changed["tool_calls"] = calls
            else:
                # An empty list is refused by the API where no list is not.
                changed.pop("tool_calls", None)
                changed.pop("function_call", None)
        if index in plan.notes:
            changed["content"] = plan.notes[index]
        edited.append(changed)
    return edited


def to_chat(trajectory: Trajectory) -> dict[str, Any]:
    """Return a trajectory as OpenAI chat messages, whatever format it came from."""
    names = {(item.call_index, id(item.call)): f"call_{item.ordinal}" for item in trajectory.interactions}
    answers = {item.result_index: f"call_{item.ordinal}" for item in trajectory.interactions}
    record: dict[str, Any] = {"id": trajectory.id}
    for key, value in (("task_id", trajectory.task_id), ("reward", trajectory.reward)):
        if value is not None:
            record[key] = value
    messages = [_to_chat(message, index, names, answers) for index, message in enumerate(trajectory.messages)]
    return record | {"messages": messages}


def _to_chat(
    message: Message, index: int, names: Mapping[tuple[int, int], str], answers: Mapping[int, str]
) -> dict[str, Any]:
    record: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        record["tool_call_id"] = answers.get(index, message.tool_call_id or f"call_of_{index}")
        if message.requestor == "user":
            record["requestor"] = "user"
    if message.tool_calls:
        record["tool_calls"] = [
            {
                "id": names.get((index, id(call)), call.id or f"unanswered_{index}_{place}"),
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_text(call.arguments)},
            }
            | ({"requestor": "user"} if call.requestor == "user" else {})
            for place, call in enumerate(message.tool_calls)
        ]
    if message.usage:
        record["usage"] = dict(message.usage)
    return record
