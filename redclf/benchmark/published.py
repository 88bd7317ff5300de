"""The figures of RedundancyBench's paper, as data: shown beside measured ones, never mixed with them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from redclf.benchmark.tables import Table

PUBLISHED = "published"

#: Column heading to the field of a row.
COLUMNS = {
    "StepCls": "stepcls",
    "EvidenceRet": "evidenceret",
    "P@1": "p@1",
    "P@5": "p@5",
    "P@10": "p@10",
    "mean": "mean",
}
#: The columns of each task.
TASK_COLUMNS = {
    "stepcls": ("StepCls",),
    "evidenceret": ("EvidenceRet",),
    "stepdet": ("P@1", "P@5", "P@10", "mean"),
}


@dataclass(frozen=True)
class Published:
    """Published figures.

    Parameters
    ----------
    source : str
    data : str
        What they were measured on.
    trajectories : mapping
        Domain to the number of its trajectories there.
    overall, by_domain, stepcls_cost : tuple of mapping
        Rows; scores in per cent.
    """

    source: str
    data: str
    trajectories: Mapping[str, int]
    overall: tuple[Mapping[str, Any], ...]
    by_domain: tuple[Mapping[str, Any], ...]
    stepcls_cost: tuple[Mapping[str, Any], ...]

    def overall_table(self) -> Table:
        """Return the rows on the whole benchmark."""
        rows = tuple((f"{row['detector']} ({PUBLISHED})", *_cells(row, COLUMNS.values())) for row in self.overall)
        return Table(f"{PUBLISHED.capitalize()}, {self.data} ({self.source}), %", ("detector", *COLUMNS), rows)

    def domain_table(self) -> Table:
        """Return the rows by domain."""
        names = {name: field for name, field in COLUMNS.items() if name not in ("P@1", "mean")}
        rows = tuple(
            (f"{row['detector']} ({PUBLISHED})", row["domain"], *_cells(row, names.values())) for row in self.by_domain
        )
        title = f"{PUBLISHED.capitalize()}, by domain ({self.source}), %"
        return Table(title, ("detector", "domain", *names), rows)

    def cost_table(self) -> Table:
        """Return what StepCls took."""
        rows = tuple(
            (f"{row['detector']} ({PUBLISHED})", f"{row['tokens_per_step']:,}", row["time"], row["cost_usd"])
            for row in self.stepcls_cost
        )
        title = f"{PUBLISHED.capitalize()}, cost of StepCls, {self.data} ({self.source})"
        return Table(title, ("detector", "tokens a step", "time", "dollars"), rows)

    def same_trajectories(self, domains: Iterable[str]) -> dict[str, bool]:
        """Return which domains hold as many trajectories as the published figures are on.

        Parameters
        ----------
        domains : iterable of str
            The domain of each judged trajectory.
        """
        counts = Counter(domains)
        return {domain: counts[domain] == number for domain, number in self.trajectories.items()}

    def note(self, domains: Iterable[str]) -> str:
        """Return what may stand side by side: only figures on the same trajectories."""
        counts = Counter(domains)
        same = [domain for domain, whole in self.same_trajectories(counts.elements()).items() if whole]
        have = "; ".join(f"{domain} {counts[domain]:,} of {n:,}" for domain, n in self.trajectories.items())
        lead = f"Of the published trajectories, the measured rows are on: {have}."
        if len(same) == len(self.trajectories):
            return f"{lead} All rows may be compared."
        named = sorted({row["detector"] for row in self.by_domain})
        if same:
            return (
                f"{lead} So the rows on {' and '.join(same)} may be compared by domain, and no others; "
                f"only {' and '.join(named)} have such rows."
            )
        return f"{lead} The published rows are on other trajectories: nothing here is better or worse than they are."


def _cells(row: Mapping[str, Any], fields: Iterable[str]) -> list[str]:
    return [f"{row[field]:.2f}" if field in row else "-" for field in fields]


@cache
def load_published() -> Published:
    """Return the figures that come with the package."""
    text = resources.files("redclf").joinpath("data").joinpath("published.json").read_text(encoding="utf-8")
    value = json.loads(text)
    return Published(
        source=value["source"],
        data=value["data"],
        trajectories=value["trajectories"],
        overall=tuple(value["overall"]),
        by_domain=tuple(value["by_domain"]),
        stepcls_cost=tuple(value["stepcls_cost"]),
    )
