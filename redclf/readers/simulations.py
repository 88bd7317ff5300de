"""The `simulations` list that tau2-bench and RedundancyBench files have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redclf.readers.document import Document
from redclf.readers.fields import Place, got
from redclf.readers.large import RECORDS


def first_simulation(document: Document) -> dict[str, Any] | str:
    """Return the first simulation that is an object, or why there is none."""
    if document.is_lines:
        return "JSON lines, not one object"
    if not isinstance(document.head, dict):
        return f"{got(document.head)}, not an object with `simulations`"
    if "simulations" not in document.head:
        return "no `simulations`"
    value = document.head["simulations"]
    if not isinstance(value, list):
        return f"`simulations` is {got(value)}, not a list"
    found = next((item for item in value if isinstance(item, dict)), None)
    return "`simulations` holds no objects" if found is None else found


def each_simulation(document: Document) -> Iterator[tuple[Place, Any]]:
    """Yield every simulation with its place.

    Raises
    ------
    TraceError
        If the file has no list of simulations.
    """
    return document.listed(RECORDS)


def simulation_messages(record: Any) -> list[Any] | None:
    """Return a simulation's list of messages, None where it has none."""
    found = record.get("messages") if isinstance(record, dict) else None
    return found if isinstance(found, list) else None
