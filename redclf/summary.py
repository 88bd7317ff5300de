"""Where the waste is: redundant steps by category, tool, model and file, in tokens and money."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from redclf.accounting import Account, Price, Prices, account
from redclf.detectors.base import Prediction
from redclf.taxonomy import CATEGORIES
from redclf.trajectory import Trajectory

#: What the waste is grouped by.
GROUPS = ("category", "tool", "model", "file")


@dataclass
class Waste:
    """Redundant steps of a group, and what they cost.

    Parameters
    ----------
    steps : int
        Redundant ones.
    of : int
        All steps of the group; 0 where that means nothing (a category).
    tokens : int
        What the redundant steps cost: when made, when first read, and again in every later request.
    dollars, dollars_cached : float or None
        The same in money, without and with a prompt cache; None where a price is unknown.
    """

    steps: int = 0
    of: int = 0
    tokens: int = 0
    dollars: float | None = 0.0
    dollars_cached: float | None = 0.0

    def add(self, steps: Sequence[tuple[int, int]], of: int, costs: Account, price: Price | None) -> None:
        """Add redundant steps of one trajectory."""
        self.steps += len(steps)
        self.of += of
        self.tokens += sum(costs.steps[step].total for step in steps)
        for name, cache in (("dollars", False), ("dollars_cached", True)):
            added = [costs.step_dollars(step, price, cache) for step in steps]
            known: float | None = getattr(self, name)
            if known is not None:
                setattr(self, name, None if None in added else known + sum(value or 0.0 for value in added))

    @property
    def share(self) -> float | None:
        """Share of the steps that is redundant, None where that means nothing."""
        return self.steps / self.of if self.of else None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {
            "redundant": self.steps,
            "steps": self.of or None,
            "share": self.share,
            "tokens": self.tokens,
            "dollars": self.dollars,
            "dollars_cached": self.dollars_cached,
        }


@dataclass
class Summary:
    """The waste of some runs.

    Parameters
    ----------
    prices : Prices
    model : str, optional
        Whose price applies where a trace does not say.
    """

    prices: Prices
    model: str | None = None
    trajectories: int = 0
    tokens: int = 0
    sources: set[str] = field(default_factory=set)
    total: Waste = field(default_factory=Waste)
    groups: dict[str, dict[str, Waste]] = field(default_factory=lambda: {name: {} for name in GROUPS})

    def add(self, trajectory: Trajectory, predictions: Sequence[Prediction]) -> None:
        """Take one trajectory and its redundant steps into account."""
        costs = account(trajectory)
        model = costs.model or self.model
        price = self.prices.of(model)
        self.trajectories += 1
        self.tokens += costs.input + costs.output
        self.sources.add(costs.source)
        items = trajectory.assistant_interactions
        found = {prediction.step: prediction for prediction in predictions}
        steps = list(found)
        self.total.add(steps, len(items), costs, price)
        self._group("model", model or "unknown").add(steps, len(items), costs, price)
        self._group("file", (trajectory.source or trajectory.id).split(", ", 1)[0]).add(steps, len(items), costs, price)
        for category in CATEGORIES:
            own = [step for step in steps if found[step].category == category]
            if own:
                self._group("category", category).add(own, 0, costs, price)
        for tool in dict.fromkeys(item.call.name for item in items):
            every = [item.step for item in items if item.call.name == tool]
            self._group("tool", tool).add([step for step in every if step in found], len(every), costs, price)

    def _group(self, kind: str, name: str) -> Waste:
        return self.groups[kind].setdefault(name, Waste())

    def ordered(self, kind: str) -> list[tuple[str, Waste]]:
        """Return a grouping, the most wasted tokens first."""
        return sorted(self.groups[kind].items(), key=lambda item: (-item[1].tokens, item[0]))

    def rows(self) -> Iterator[tuple[str, str, Waste]]:
        """Yield the total and all groups: kind, name, waste."""
        yield "total", "", self.total
        for kind in GROUPS:
            for name, waste in self.ordered(kind):
                yield kind, name, waste

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {
            "trajectories": self.trajectories,
            "tokens": self.tokens,
            "tokens_are": sorted(self.sources),
            "prices": {"date": self.prices.date, "source": self.prices.source},
            "total": self.total.to_dict(),
            **{f"by_{kind}": {name: waste.to_dict() for name, waste in self.ordered(kind)} for kind in GROUPS},
        }


def summarise(
    runs: Iterable[tuple[Trajectory, Sequence[Prediction]]], prices: Prices, model: str | None = None
) -> Summary:
    """Return the summary of some runs with their redundant steps."""
    summary = Summary(prices, model)
    for trajectory, predictions in runs:
        summary.add(trajectory, predictions)
    return summary
