"""Sessions of Claude Code: JSON lines of user and assistant turns."""

from __future__ import annotations

from collections.abc import Iterator

from redclf.readers.base import Reader
from redclf.readers.blocks import add_blocks
from redclf.readers.building import Builder, head_objects, line_objects
from redclf.readers.document import Document, OnError
from redclf.readers.fields import clean, optional_id, optional_object
from redclf.trajectory import Message, Trajectory

_TURNS = ("user", "assistant")
_OTHERS = ("summary", "system", "file-history-snapshot", "progress", "queue-operation", "mode", "last-prompt")


class ClaudeCodeReader(Reader):
    """Reads a session as one trajectory.

    Lines of one reply (the same `message.id`) are one message. Turns of sub-agents (`isSidechain`), lines that
    the program itself put in (`isMeta`) and summaries are left out.
    """

    name = "claude_code"
    description = "Claude Code sessions: JSON lines with `type` user or assistant and a `message`"

    def sniff(self, document: Document) -> str | None:
        """Return None for lines with `type` user or assistant and a `message`."""
        if not document.is_lines:
            return "no JSON lines"
        for item in head_objects(document):
            if item.get("type") in _TURNS and isinstance(item.get("message"), dict):
                return None
            if item.get("type") in _OTHERS and ("sessionId" in item or "leafUuid" in item or "messageId" in item):
                return None
        return "no line with `type` user or assistant and a `message`"

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the session."""
        builder = Builder(document.place)
        name = model = last = None
        for place, line in line_objects(document):
            kind = line.get("type")
            name = name or optional_id(line, "sessionId", place)
            if kind not in _TURNS or line.get("isSidechain") is True or line.get("isMeta") is True:
                continue
            message = optional_object(line, "message", place)
            builder.place = place
            before = len(builder.messages)
            add_blocks(builder, str(kind), message.get("content"), message.get("usage"))
            reply = message.get("id") if kind == "assistant" else None
            if reply is not None and reply == last and len(builder.messages) == before + 1 and before:
                second, first = builder.messages.pop(), builder.messages.pop()
                builder.messages.append(_joined(first, second))
            last = reply
            if isinstance(message.get("model"), str):
                model = clean(message["model"])
        builder.place = document.place
        extra = {} if model is None else {"model": model}
        yield Trajectory(name or clean(document.path.stem), builder.done(), source=document.place.source, extra=extra)


def _joined(first: Message, second: Message) -> Message:
    """Return two parts of one reply as one message."""
    text = "\n".join(part for part in (first.content, second.content) if part)
    return Message("assistant", text, first.tool_calls + second.tool_calls, usage=second.usage or first.usage)
