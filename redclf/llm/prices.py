"""What tokens cost: price tables with their date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redclf.llm.config import ConfigError, read_yaml

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens."""

    input: float
    output: float

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """Return dollars."""
        return (self.input * input_tokens + self.output * output_tokens) / _MILLION


@dataclass(frozen=True)
class PriceTable:
    """Prices of some models.

    Parameters
    ----------
    date : str
        When they were looked up.
    source : str
        Where.
    models : mapping
        Model to its price.
    """

    date: str
    source: str
    models: Mapping[str, Price]


def load_prices(path: Path) -> PriceTable:
    """Read a price table: `date`, `source`, and `models` with `input` and `output` for a million tokens.

    Raises
    ------
    ConfigError
        If it can't be read or a price is no number from 0.
    """
    value = read_yaml(path)
    models = value.get("models")
    if not value.get("date") or not isinstance(models, dict) or not models:
        raise ConfigError(f"{path}: expected date, source and models")
    return PriceTable(
        str(value["date"]),
        str(value.get("source") or ""),
        {str(model): _price(price, path, model) for model, price in models.items()},
    )


def _price(value: Any, path: Path, model: object) -> Price:
    given = value if isinstance(value, dict) else {}
    rates = [given.get("input"), given.get("output")]
    if not all(isinstance(rate, int | float) and not isinstance(rate, bool) and rate >= 0 for rate in rates):
        raise ConfigError(f"{path}: {model}: expected input and output, in dollars for a million tokens")
    return Price(float(given["input"]), float(given["output"]))
