"""Messages in the OpenAI style and in that of tau2-bench, which share roles and calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from redclf.readers.fields import (
    Place,
    clean,
    clean_value,
    decode,
    optional_count,
    optional_id,
    optional_object,
    record_object,
)
from redclf.trajectory import Message, Requestor, Role, ToolCall

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_USAGE = (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))


def parse_messages(value: object, place: Place, field: str = "messages") -> tuple[Message, ...]:
    """Return the messages of a record, one for one, so that indices stay those of the file.

    Parameters
    ----------
    value : object
        The decoded list.
    place : Place
        The record.
    field : str
        What the format calls the list.

    Raises
    ------
    TraceError
        Naming the message at fault.
    """
    if not isinstance(value, list):
        raise place.expected(field, "a list of messages", value)
    if not value:
        raise place.error(f"{field}: expected at least one message, got an empty list")
    return tuple(parse_message(item, place.at(index)) for index, item in enumerate(value))


def parse_message(value: object, place: Place) -> Message:
    """Return one message.

    A result's call id is `tool_call_id` (OpenAI) or `id` (tau2-bench). The legacy `function_call`
    and role `function` give a call and a result without an id.
    """
    record = record_object(value, place, "a message")
    name = record.get("role")
    role = _ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        raise place.expected("role", f"one of {', '.join(_ROLES)}", name)
    usage = _usage(record, place)
    if role == "tool":
        _refuse_calls(record, place)
        call_id = optional_id(record, "tool_call_id", place) or optional_id(record, "id", place)
        requestor = _requestor(record, "assistant", place)
        return Message(role, content_text(record, place), (), call_id, requestor, usage)
    if role == "system":
        _refuse_calls(record, place)
        return Message(role, content_text(record, place), usage=usage)
    requestor = "user" if role == "user" else "assistant"
    calls = _tool_calls(record, requestor, place)
    return Message(role, content_text(record, place), calls, requestor=requestor, usage=usage)


def system_text(messages: Sequence[Message]) -> str:
    """Return the first system message's text, "" without one."""
    return next((message.content for message in messages if message.role == "system"), "")


def content_text(record: Mapping[str, Any], place: Place) -> str:
    """Return the text of `content`: a string, null, or a list of parts.

    A part that is no text (image, audio, file) is kept as its type in brackets.
    """
    value = record.get("content")
    if isinstance(value, str):
        return clean(value)
    if value is None:
        refusal = record.get("refusal")
        return clean(refusal) if isinstance(refusal, str) else ""
    if not isinstance(value, list):
        raise place.expected("content", "text, null or a list of parts", value)
    return "\n".join(_part_text(part, place) for part in value)


def _part_text(part: object, place: Place) -> str:
    if isinstance(part, str):
        return clean(part)
    if isinstance(part, dict):
        for key in ("text", "refusal"):
            if isinstance(part.get(key), str):
                return clean(part[key])
        kind = part.get("type")
        if isinstance(kind, str) and "text" not in part:
            return f"[{clean(kind)}]"
        if "text" in part:
            raise place.expected("content: text of a part", "text", part["text"])
    raise place.expected("content", "parts with a `type` or `text`", part)


def _tool_calls(record: dict[str, Any], requestor: Requestor, place: Place) -> tuple[ToolCall, ...]:
    value = record.get("tool_calls")
    if value is None:
        value = []
    if not isinstance(value, list):
        raise place.expected("tool_calls", "a list or null", value)
    calls = [_tool_call(item, requestor, place) for item in value]
    legacy = record.get("function_call")
    if legacy is not None and not calls:
        calls.append(_named_call(legacy, "function_call", None, requestor, place))
    return tuple(calls)


def _tool_call(value: object, requestor: Requestor, place: Place) -> ToolCall:
    if not isinstance(value, dict):
        raise place.expected("tool_calls", "objects", value)
    call_id = optional_id(value, "id", place)
    requestor = _requestor(value, requestor, place)
    for key in ("function", "custom"):
        if value.get(key) is not None:
            return _named_call(value[key], f"tool_calls: {key}", call_id, requestor, place)
    return _named_call(value, "tool_calls", call_id, requestor, place)


def _named_call(value: object, field: str, call_id: str | None, requestor: Requestor, place: Place) -> ToolCall:
    if not isinstance(value, dict):
        raise place.expected(field, "an object with `name` and `arguments`", value)
    name = value.get("name")
    if not isinstance(name, str):
        raise place.expected(f"{field}: name", "text", name)
    given = value.get("arguments", value.get("input"))
    arguments = parse_arguments(given, place, f"{field}: arguments")
    return ToolCall(clean(name), arguments, call_id, requestor)


def parse_arguments(value: object, place: Place, field: str = "arguments") -> Any:
    """Return decoded arguments; the raw string where it does not decode.

    Raises
    ------
    TraceError
        If they are neither an object, a string nor null, or hold NaN, or nest too deep.
    """
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            value = decode(value)
        except ValueError:
            return clean(str(value))
    elif not isinstance(value, dict):
        raise place.expected(field, "an object or a JSON string", value)
    return clean_value(value, place, field)


def _requestor(record: dict[str, Any], default: Requestor, place: Place) -> Requestor:
    value = record.get("requestor")
    if value is None:
        return default
    if value == "user":
        return "user"
    if value == "assistant":
        return "assistant"
    raise place.expected("requestor", "assistant or user", value)


def _refuse_calls(record: dict[str, Any], place: Place) -> None:
    if record.get("tool_calls") not in (None, []):
        role = record.get("role")
        raise place.error(f"tool_calls: expected none in a message of role {role}, got some")


def _usage(record: dict[str, Any], place: Place) -> dict[str, int] | None:
    value = optional_object(record, "usage", place)
    usage: dict[str, int] = {}
    for name, other in _USAGE:
        count = optional_count(value, name if value.get(name) is not None else other, place)
        if count is not None:
            usage[name] = count
    return usage or None
