"""Limits on waste, for continuous integration: of all redundant steps, or of one category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from redclf.errors import RedclfError
from redclf.summary import Summary, Waste
from redclf.taxonomy import CATEGORIES

#: What can be limited.
SHARE, COUNT, TOKENS = "share", "count", "tokens"
KINDS = (SHARE, COUNT, TOKENS)
ALL = "all"


@dataclass(frozen=True)
class Limit:
    """The most that is allowed.

    Parameters
    ----------
    kind : str
        Of `KINDS`: share of redundant steps among all, their number, or the tokens that they cost.
    most : float
    category : str
        One of the categories, or `ALL`.
    source : str
        Where the limit is from, for the table.
    """

    kind: str
    most: float
    category: str = ALL
    source: str = "limit"

    @property
    def name(self) -> str:
        """What is limited, in words."""
        return f"{self.kind} of redundant steps" if self.category == ALL else f"{self.kind} of {self.category}s"


@dataclass(frozen=True)
class Check:
    """A limit, and what was found."""

    limit: Limit
    found: float

    @property
    def passed(self) -> bool:
        """Whether the limit holds."""
        return self.found <= self.limit.most + 1e-12

    def text(self, value: float) -> str:
        """Return a value as the limit's kind shows it."""
        return f"{100 * value:.1f} %" if self.limit.kind == SHARE else f"{value:,.0f}"


def parse_limit(kind: str, text: str) -> Limit:
    """Read a limit: a number, or `CATEGORY=NUMBER` with the category's first word in any case.

    Raises
    ------
    RedclfError
        If it is neither, or out of range.
    """
    name, sign, number = text.rpartition("=")
    category = ALL
    if sign:
        known = {category.split()[0].lower(): category for category in CATEGORIES}
        category = known.get(name.strip().lower().removesuffix(" step"), "")
        if not category:
            raise RedclfError(f"--max-{kind}: expected one of {', '.join(known)} before =, got {name!r}")
    try:
        most = float(number)
    except ValueError:
        raise RedclfError(f"--max-{kind}: expected a number, got {number!r}") from None
    if not 0 <= most < float("inf") or (kind == SHARE and most > 1):
        raise RedclfError(f"--max-{kind}: expected {'0 to 1' if kind == SHARE else 'a number from 0'}, got {number}")
    return Limit(kind, most, category)


def baseline_limits(value: Any, tolerance: float) -> list[Limit]:
    """Return the limits that an earlier summary sets: its share of redundant steps, in all and by category.

    Parameters
    ----------
    value : mapping
        As `Summary.to_dict` gives.
    tolerance : float
        Share of steps by which it may be exceeded.

    Raises
    ------
    RedclfError
        If it is no such summary.
    """
    try:
        steps = value["total"]["steps"] or 0
        found = {
            ALL: value["total"]["redundant"],
            **{name: waste["redundant"] for name, waste in value["by_category"].items()},
        }
        return [
            Limit(SHARE, (found.get(name, 0) / steps if steps else 0.0) + tolerance, name, "baseline")
            for name in (ALL, *CATEGORIES)
        ]
    except (KeyError, TypeError, AttributeError):
        raise RedclfError("--baseline: expected a summary as --write-baseline writes it") from None


def check(summary: Summary, limits: Sequence[Limit]) -> list[Check]:
    """Return what was found for each limit."""
    return [Check(limit, _found(summary, limit)) for limit in limits]


def _found(summary: Summary, limit: Limit) -> float:
    waste = summary.total if limit.category == ALL else summary.groups["category"].get(limit.category, Waste())
    if limit.kind == COUNT:
        return float(waste.steps)
    if limit.kind == TOKENS:
        return float(waste.tokens)
    return waste.steps / summary.total.of if summary.total.of else 0.0


def junit(checks: Sequence[Check], steps: Mapping[str, str]) -> str:
    """Return the checks as JUnit XML.

    Parameters
    ----------
    checks : sequence of Check
    steps : mapping
        Category, or `ALL`, to the redundant steps as text, for what failed.
    """
    failed = sum(not found.passed for found in checks)
    suite = ElementTree.Element("testsuite", name="redclf gate", tests=str(len(checks)), failures=str(failed))
    for found in checks:
        case = ElementTree.SubElement(
            suite, "testcase", classname="redclf.gate", name=_printable(f"{found.limit.name}")
        )
        if not found.passed:
            message = f"{found.text(found.found)}, at most {found.text(found.limit.most)} ({found.limit.source})"
            failure = ElementTree.SubElement(case, "failure", message=_printable(message))
            failure.text = _printable(steps.get(found.limit.category, ""))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _printable(text: str) -> str:
    """Return a text without what XML has no way to write."""
    return "".join(char if char in "\t\n" or char.isprintable() else " " for char in text)


def markdown(checks: Sequence[Check], summary: Summary) -> str:
    """Return the checks as a Markdown table."""
    lines = ["| limit | found | at most | |", "|---|---:|---:|---|"]
    for found in checks:
        verdict = "ok" if found.passed else "**broken**"
        name = f"{found.limit.name} ({found.limit.source})"
        lines.append(f"| {name} | {found.text(found.found)} | {found.text(found.limit.most)} | {verdict} |")
    total = summary.total
    return "\n".join([f"redclf gate: {total.steps:,} of {total.of:,} steps redundant\n", *lines]) + "\n"
