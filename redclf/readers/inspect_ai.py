"""Evaluation logs of Inspect AI as JSON: `{"eval", "samples": [{"messages", "scores"}]}`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redclf.readers.base import Reader, UniqueIds, build_each
from redclf.readers.building import Builder, model_of, text_of
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, optional_id, record_object
from redclf.readers.messages import system_text
from redclf.trajectory import Trajectory

_SUCCESS = {"C": 1.0, "I": 0.0, True: 1.0, False: 0.0}


class InspectReader(Reader):
    """Reads one trajectory a sample and epoch, with the first score as its reward."""

    name = "inspect_ai"
    description = "Inspect AI eval logs (JSON): {eval, samples: [{messages}]}"

    def sniff(self, document: Document) -> str | None:
        """Return None for an object with `eval` and `samples`."""
        head = document.head
        if not isinstance(head, dict) or not isinstance(head.get("eval"), dict):
            return "no `eval`"
        return None if isinstance(head.get("samples"), list) else "no `samples`"

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the samples in file order."""
        unique = UniqueIds()
        plan = document.member("eval")
        model = plan.get("model") if isinstance(plan, dict) else None
        extra = model_of(model)

        def build(place: Place, value: Any) -> Trajectory:
            record = record_object(value, place, "a sample")
            given = record.get("messages")
            if not isinstance(given, list):
                raise place.expected("messages", "a list", given)
            builder = Builder(place)
            for item in given:
                _add(builder, record_object(item, builder.next, "a message"))
            messages = builder.done()
            sample = optional_id(record, "id", place) or place.record
            epoch = optional_id(record, "epoch", place)
            return Trajectory(
                unique(sample if epoch in (None, "1") else f"{sample}:{epoch}"),
                messages,
                system_text(messages),
                task_id=sample,
                reward=_reward(record.get("scores")),
                source=place.source,
                extra=extra,
            )

        yield from build_each(document.listed("samples"), build, on_error)


def _add(builder: Builder, message: dict[str, Any]) -> None:
    role, text = message.get("role"), text_of(message.get("content"), builder.next, "content")
    if role == "assistant":
        made = message.get("tool_calls")
        if made is not None and not isinstance(made, list):
            raise builder.next.expected("tool_calls", "a list", made)
        given = [record_object(call, builder.next, "a call") for call in made or []]
        builder.assistant(
            text, [builder.call(call.get("function"), call.get("arguments"), call.get("id")) for call in given]
        )
    elif role == "tool":
        error = message.get("error")
        told = error.get("message") if isinstance(error, dict) else None
        builder.result(message.get("tool_call_id"), text or (told if isinstance(told, str) else ""))
    elif role == "system":
        builder.system(text)
    elif role == "user":
        builder.user(text)
    else:
        raise builder.next.expected("role", "system, user, assistant or tool", role)


def _reward(scores: object) -> float | None:
    """Return the first score as a number, None where there is none."""
    first = next(iter(scores.values()), None) if isinstance(scores, dict) else None
    value = first.get("value") if isinstance(first, dict) else None
    if isinstance(value, str | bool):
        return _SUCCESS.get(value)
    return float(value) if isinstance(value, int | float) and value == value and abs(value) < 1e9 else None
