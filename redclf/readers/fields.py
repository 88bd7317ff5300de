"""Typed access to the fields of a decoded JSON record, with errors that say where and what."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from typing import Any

from redclf.errors import TraceError

MAX_DEPTH = 100
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a trace file a value stands.

    Parameters
    ----------
    path : str
        The file, as shown to the user.
    record : str
        `record 3` (from 0) or `line 4` (from 1), "" where the file holds one trajectory only.
    message : int or None
        Message index, from 0.
    """

    path: str
    record: str = ""
    message: int | None = None

    def at(self, message: int) -> Place:
        """Return the place of one message in this record."""
        return replace(self, message=message)

    @property
    def source(self) -> str:
        """The file and record, as a trajectory's `source`."""
        return f"{self.path}, {self.record}" if self.record else self.path

    def error(self, text: str) -> TraceError:
        """Return (not raise) the error that names this place."""
        message = None if self.message is None else f"message {self.message}"
        where = ", ".join(part for part in (self.record, message) if part)
        return TraceError(text, self.path, where or None)

    def expected(self, field: str, what: str, value: object) -> TraceError:
        """Return the error for a `field` that should have been `what`."""
        return self.error(f"{field}: expected {what}, got {got(value)}")


def got(value: object) -> str:
    """Describe a JSON value in a few words, on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        shown = json.dumps(value[:40])
        return shown if len(value) <= 40 else f'{shown[:-1]}..."'
    if isinstance(value, int):
        return f"the number {value}" if abs(value) < _EXACT else "a huge number"
    if isinstance(value, float):
        return f"the number {value!r}"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "an object" if isinstance(value, dict) else type(value).__name__


def clean(text: str) -> str:
    """Return `text` with U+FFFD for lone surrogates, which no encoder or file can take.

    Programs that cut text in the middle of an emoji leave such halves, so they are no reason to
    refuse a trace.
    """
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def clean_value(value: Any, place: Place, field: str, depth: int = 0) -> Any:
    """Return a JSON value safe to hash, print and encode.

    Raises
    ------
    TraceError
        If it holds NaN or an infinite number, or is nested deeper than `MAX_DEPTH`.
    """
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise place.expected(field, "finite numbers", value)
    if not isinstance(value, (dict, list)):
        return value
    if depth >= MAX_DEPTH:
        raise place.error(f"{field}: expected at most {MAX_DEPTH} levels of nesting, got more")
    if isinstance(value, list):
        return [clean_value(item, place, field, depth + 1) for item in value]
    return {clean(key): clean_value(item, place, field, depth + 1) for key, item in value.items()}


def decode(text: str) -> Any:
    """Decode JSON that a model wrote, strictly.

    Raises
    ------
    ValueError
        If it is not JSON, holds NaN, or is nested too deep.
    """

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ValueError("nested too deep") from None


def record_object(value: object, place: Place, what: str) -> dict[str, Any]:
    """Return `value` if it is an object, the record `what`."""
    if not isinstance(value, dict):
        raise place.error(f"expected {what} (an object), got {got(value)}")
    return value


def optional_object(record: dict[str, Any], field: str, place: Place) -> dict[str, Any]:
    """Return an object, empty where the field is missing or null."""
    value = record.get(field)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise place.expected(field, "an object", value)
    return value


def optional_text(record: dict[str, Any], field: str, place: Place) -> str | None:
    """Return a text, None where the field is missing or null."""
    value = record.get(field)
    if value is None:
        return None
    if not isinstance(value, str):
        raise place.expected(field, "text", value)
    return clean(value)


def optional_id(record: dict[str, Any], field: str, place: Place) -> str | None:
    """Return an id as text, from text or a whole number; None where missing, null or empty."""
    value = record.get(field)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _EXACT:
        return str(value)
    if value is not None and not isinstance(value, str):
        raise place.expected(field, "an id (text or a whole number)", value)
    return clean(value) if value else None


def optional_number(record: dict[str, Any], field: str, place: Place) -> float | None:
    """Return a finite number, None where the field is missing or null."""
    value = record.get(field)
    if value is None:
        return None
    if isinstance(value, (int, float)) and abs(value) < _EXACT:
        return float(value)
    raise place.expected(field, "a finite number", value)


def optional_count(record: dict[str, Any], field: str, place: Place) -> int | None:
    """Return a whole number from 0, None where the field is missing or null."""
    value = optional_number(record, field, place)
    if value is None:
        return None
    if value < 0 or value != int(value):
        raise place.expected(field, "a whole number from 0", record.get(field))
    return int(value)
