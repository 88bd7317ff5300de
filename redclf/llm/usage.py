"""What a detector's answers took: requests, tokens, time and money."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from redclf.llm.prices import Price


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used.

    Parameters
    ----------
    requests : int or None
        Different requests, each counted once however often it had to be sent.
    failed : int or None
        Requests without a usable answer.
    input_tokens, output_tokens : int or None
        As the endpoint reports them; None where it never does.
    seconds : float or None
        Time during which a request was under way, or that a local detector took. Pauses between two runs do not count.
    cost_usd : float or None
        None where no price is known.
    """

    requests: int | None = None
    failed: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    cost_usd: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Usage:
        """Read it back; what is no number becomes None."""
        return cls(**{name: _number(values.get(name)) for name in cls.__slots__})


def total(records: Iterable[Mapping[str, Any] | None], failed: int, price: Price | None) -> Usage:
    """Add up the log records of all requests, None standing for one without an answer."""
    every = list(records)
    known = [record for record in every if record is not None]
    given, produced = (_sum(known, name) for name in ("input_tokens", "output_tokens"))
    cost = None
    if price is not None and (given is not None or not every):
        cost = price.cost(given or 0, produced or 0)
    return Usage(len(every), failed, given, produced, round(_busy(known), 3), cost)


def _sum(records: Iterable[Mapping[str, Any]], name: str) -> int | None:
    values = [value for record in records if (value := record.get(name)) is not None]
    return sum(values) if values else None


def _busy(records: Iterable[Mapping[str, Any]]) -> float:
    """Return how long at least one request was under way."""
    spans = sorted((record["started"], record["started"] + record["seconds"]) for record in records)
    busy, until = 0.0, float("-inf")
    for start, end in spans:
        busy += max(0.0, end - max(start, until))
        until = max(until, end)
    return busy


def _number(value: Any) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
