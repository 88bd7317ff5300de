"""Sessions of the Gemini CLI: `{"sessionId", "messages": [{"type", "content", "toolCalls"}]}`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redclf.readers.base import Reader, build_each
from redclf.readers.building import Builder, model_of, text_of, usage_of
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, clean, got, optional_id, record_object
from redclf.trajectory import Trajectory


class GeminiCLIReader(Reader):
    """Reads a session as one trajectory; each call's result is in its own entry."""

    name = "gemini_cli"
    description = "Gemini CLI sessions: {sessionId, messages: [{type, content, toolCalls}]}"

    def sniff(self, document: Document) -> str | None:
        """Return None for a session whose messages have a `type` user or gemini."""
        head = document.head
        if not isinstance(head, dict) or "sessionId" not in head:
            return "no `sessionId`"
        messages = head.get("messages")
        found = [item.get("type") for item in messages if isinstance(item, dict)] if isinstance(messages, list) else []
        return None if any(kind in ("user", "gemini") for kind in found) else "no messages of type user or gemini"

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the session."""
        yield from build_each(document.records(on_error), self._build, on_error)

    def _build(self, place: Place, value: Any) -> Trajectory:
        record = record_object(value, place, "a session")
        given = record.get("messages")
        if not isinstance(given, list):
            raise place.expected("messages", "a list", given)
        builder = Builder(place)
        model = None
        for item in given:
            entry = record_object(item, builder.next, "a message")
            text = text_of(entry.get("content"), builder.next, "content")
            if entry.get("type") == "user":
                builder.user(text)
            elif entry.get("type") == "gemini":
                self._reply(builder, entry, text)
                model = entry.get("model") or model
        name = optional_id(record, "sessionId", place) or clean(place.path)
        extra = model_of(model)
        return Trajectory(name, builder.done(), source=place.source, extra=extra)

    @staticmethod
    def _reply(builder: Builder, entry: dict[str, Any], text: str) -> None:
        made = entry.get("toolCalls")
        if made is not None and not isinstance(made, list):
            raise builder.next.expected("toolCalls", "a list", made)
        given = [record_object(item, builder.next, "a call") for item in made or []]
        calls = [builder.call(item.get("name"), item.get("args"), item.get("id")) for item in given]
        usage = usage_of(entry.get("tokens"), builder.next, ("input",), ("output", "thoughts"))
        builder.assistant(text, calls, usage)
        for item in given:
            if item.get("result") is not None or item.get("status") in ("error", "cancelled"):
                builder.result(item.get("id"), _result(item.get("result"), builder))


def _result(value: Any, builder: Builder) -> str:
    """Return the text of a result: the output or error of its `functionResponse`."""
    if not isinstance(value, list):
        return text_of(value, builder.next, "result")
    parts = []
    for item in value:
        if not isinstance(item, dict):
            raise builder.next.error(f"result: expected parts, got {got(item)}")
        response = item.get("functionResponse")
        inner = response.get("response") if isinstance(response, dict) else None
        if isinstance(inner, dict):
            parts.append(text_of(inner.get("output", inner.get("error", inner)), builder.next, "result"))
        else:
            parts.append(text_of([item], builder.next, "result"))
    return "\n".join(parts)
