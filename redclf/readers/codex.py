"""Rollouts of Codex: JSON lines of `{"type", "payload"}`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redclf.readers.base import Reader
from redclf.readers.building import Builder, head_objects, line_objects
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, clean, optional_id, optional_object
from redclf.readers.response_items import add_items
from redclf.trajectory import Trajectory

_KINDS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")


class CodexReader(Reader):
    """Reads a rollout as one trajectory; events and the context of turns say nothing that items do not."""

    name = "codex"
    description = "Codex rollouts: JSON lines with `type` and `payload`"

    def sniff(self, document: Document) -> str | None:
        """Return None for lines with a `payload` and one of Codex's types."""
        if not document.is_lines:
            return "no JSON lines"
        known = (item for item in head_objects(document) if item.get("type") in _KINDS)
        return None if any(isinstance(item.get("payload"), dict) for item in known) else "no lines with a `payload`"

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the rollout."""
        found: dict[str, str] = {}

        def items() -> Iterator[tuple[Place, dict[str, Any]]]:
            for place, line in line_objects(document):
                payload = optional_object(line, "payload", place)
                if line.get("type") == "response_item":
                    yield place, payload
                elif line.get("type") == "session_meta":
                    found.setdefault("id", optional_id(payload, "id", place) or "")
                elif line.get("type") == "turn_context" and isinstance(payload.get("model"), str):
                    found["model"] = clean(payload["model"])

        builder = Builder(document.place)
        add_items(builder, items())
        builder.place = document.place
        yield Trajectory(
            found.get("id") or clean(document.path.stem),
            builder.done(),
            source=document.place.source,
            extra={"model": found["model"]} if "model" in found else {},
        )
