"""OpenTelemetry GenAI spans as OTLP JSON or JSON lines: chat and execute_tool spans."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from redclf.errors import TraceError
from redclf.readers.base import Reader
from redclf.readers.building import Builder, head_objects, line_objects, text_of, usage_of
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, clean
from redclf.readers.messages import system_text
from redclf.trajectory import ToolCall, Trajectory

_OPERATION = "gen_ai.operation.name"
_CHAT = ("chat", "generate_content", "text_completion")
_GIVEN = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_MADE = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
#: Attributes by their current name, then by earlier ones.
_INPUT = ("gen_ai.input.messages", "gen_ai.prompt")
_OUTPUT = ("gen_ai.output.messages", "gen_ai.completion")
_SYSTEM = ("gen_ai.system_instructions",)
_ARGUMENTS = ("gen_ai.tool.call.arguments", "gen_ai.tool.arguments", "input.value")
_RESULT = ("gen_ai.tool.call.result", "gen_ai.tool.result", "gen_ai.tool.message", "output.value")
_MODEL = ("gen_ai.response.model", "gen_ai.request.model")


class OtelGenAIReader(Reader):
    """Reads one trajectory a conversation, or a trace where there is no `gen_ai.conversation.id`.

    Where chat spans hold their messages, the last one's are taken: they have all before them. Else the calls come from
    the execute_tool spans, by their start.
    """

    name = "otel_genai"
    description = "OpenTelemetry GenAI spans: OTLP JSON or JSON lines with resourceSpans"

    def sniff(self, document: Document) -> str | None:
        """Return None for OTLP with at least one span of generative AI."""
        found = [item for item in head_objects(document) if isinstance(item.get("resourceSpans"), list)]
        if not found:
            return "no `resourceSpans`"
        spans = (span for item in found for span in _spans(item))
        known = any(key.startswith("gen_ai.") for span in spans for key in _attributes(span))
        return None if known else "no span with gen_ai attributes"

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the conversations by the start of their first span."""
        groups: dict[str, list[tuple[int, dict[str, Any], dict[str, Any]]]] = {}
        for _, item in line_objects(document):
            for span in _spans(item):
                attributes = _attributes(span)
                key = attributes.get("gen_ai.conversation.id") or span.get("traceId")
                groups.setdefault(clean(str(key)), []).append((_time(span), span, attributes))
        silent = True
        for key, spans in groups.items():
            spans.sort(key=lambda entry: entry[0])
            place = Place(document.name, f"conversation {key}" if len(groups) > 1 else "")
            try:
                trajectory = _conversation(key, [(span, attributes) for _, span, attributes in spans], place)
            except TraceError as error:
                silent = False
                on_error(error)
                continue
            if trajectory is not None:
                silent = False
                yield trajectory
        if silent:
            raise document.place.error("expected chat spans with messages or execute_tool spans, got neither")


def _spans(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in _list(item.get("resourceSpans")):
        for scope in _list(resource.get("scopeSpans", resource.get("instrumentationLibrarySpans"))):
            yield from _list(scope.get("spans"))


def _list(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {str(item.get("key")): _value(item.get("value")) for item in _list(span.get("attributes"))}


def _value(value: object, depth: int = 0) -> Any:
    """Return an OTLP value as plain JSON."""
    if not isinstance(value, dict) or depth > 20:
        return value
    for kind in ("stringValue", "intValue", "doubleValue", "boolValue"):
        if kind in value:
            found = value[kind]
            return int(found) if kind == "intValue" and isinstance(found, str) and found.isdigit() else found
    if isinstance(value.get("arrayValue"), dict):
        inner = value["arrayValue"].get("values")
        return [_value(item, depth + 1) for item in inner] if isinstance(inner, list) else []
    if isinstance(value.get("kvlistValue"), dict):
        return {str(i.get("key")): _value(i.get("value"), depth + 1) for i in _list(value["kvlistValue"].get("values"))}
    return None


def _time(span: dict[str, Any]) -> int:
    value = span.get("startTimeUnixNano")
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.isdigit()) else 0


def _first(attributes: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((attributes[name] for name in names if attributes.get(name) not in (None, "")), None)


def _decoded(value: Any) -> Any:
    """Return what an attribute holds: JSON as text in most exporters."""
    if isinstance(value, str) and value[:1] in "[{":
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _conversation(key: str, spans: list[tuple[dict[str, Any], dict[str, Any]]], place: Place) -> Trajectory | None:
    chats = [a for _, a in spans if a.get(_OPERATION) in _CHAT and isinstance(_decoded(_first(a, _INPUT)), list)]
    tools = [(s, a) for s, a in spans if a.get(_OPERATION) == "execute_tool"]
    if not chats and not tools:
        return None
    builder = Builder(place)
    if chats:
        last = max(chats, key=lambda attributes: len(_decoded(_first(attributes, _INPUT))))
        instructions = _decoded(_first(last, _SYSTEM))
        if instructions:
            builder.system(text_of(_texts(instructions), place, "gen_ai.system_instructions"))
        for message in _decoded(_first(last, _INPUT)):
            _add(builder, message)
        output = _decoded(_first(last, _OUTPUT))
        usage = usage_of(last, builder.next, _GIVEN, _MADE)
        for message in output if isinstance(output, list) else ():
            _add(builder, message, usage)
    else:
        asked = next((found for _, a in spans if isinstance(found := _decoded(_first(a, _INPUT)), list)), [])
        for message in asked:
            _add(builder, message)
        for span, attributes in tools:
            id = attributes.get("gen_ai.tool.call.id") or span.get("spanId")
            given = _decoded(_first(attributes, _ARGUMENTS))
            builder.assistant("", [builder.call(attributes.get("gen_ai.tool.name"), given, id)])
            result = _first(attributes, _RESULT)
            if result is not None:
                builder.result(id, text_of(result, builder.next, "gen_ai.tool.call.result"))
    model = next((found for _, a in spans if isinstance(found := _first(a, _MODEL), str)), None)
    messages = builder.done()
    extra = {"model": clean(model)} if model else {}
    return Trajectory(key, messages, system_text(messages), source=place.source, extra=extra)


def _texts(value: Any) -> Any:
    """Return parts with their text where the conventions have it: in `content`."""
    if isinstance(value, list):
        return [part.get("content") or "" if isinstance(part, dict) and "content" in part else part for part in value]
    return value


def _add(builder: Builder, message: object, usage: dict[str, int] | None = None) -> None:
    """Add a message with `parts`, as the conventions have it, or with `content` and `tool_calls`."""
    if not isinstance(message, dict):
        raise builder.next.error("expected messages that are objects")
    role = message.get("role")
    parts = message.get("parts")
    if not isinstance(parts, list):
        parts = [{"type": "text", "content": text_of(message.get("content"), builder.next, "content")}]
        for item in _list(message.get("tool_calls")):
            function = item.get("function") if isinstance(item.get("function"), dict) else item
            assert isinstance(function, dict)
            parts.append({"type": "tool_call", "id": item.get("id"), **function})
        if role == "tool":
            parts = [
                {"type": "tool_call_response", "id": message.get("tool_call_id"), "result": message.get("content")}
            ]
    texts: list[str] = []
    calls: list[ToolCall] = []
    for part in _list(parts):
        if part.get("type") == "tool_call":
            calls.append(builder.call(part.get("name"), part.get("arguments"), part.get("id")))
        elif part.get("type") == "tool_call_response":
            shown = part.get("response", part.get("result"))
            builder.result(part.get("id"), text_of(shown, builder.next, "a tool call's response"))
        elif part.get("type") != "reasoning":
            texts.append(text_of(_texts([part]), builder.next, "parts"))
    text = "\n".join(text for text in texts if text)
    if role == "assistant" or calls:
        builder.assistant(text, calls, usage)
    elif role in ("system", "developer"):
        builder.system(text)
    elif text:
        builder.user(text)
