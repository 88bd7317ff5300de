"""Replies of LLM judges: find the JSON, and read the records by the benchmark's rules. Nothing is repaired."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from redclf.benchmark.predictions import indices, parse_entry
from redclf.detectors.base import Retrieval
from redclf.taxonomy import CATEGORIES
from redclf.trajectory import Trajectory

STEP = "redundant_step_idx"
CATEGORY = "redundant_step_type"
EVIDENCE = "evidence_step_idx"
CONFIDENCE = "confidence"
PREDICTIONS = "predictions"

_FENCE = re.compile(r"```[A-Za-z]*[ \t]*\r?\n(.*?)```", re.DOTALL)
#: Where a list of records may begin within prose.
_START = re.compile(rf'\{{\s*"{PREDICTIONS}"|\[\s*\{{|\{{\s*"(?:{STEP}|{CATEGORY})"')


def parse_records(text: str) -> list[Any] | None:
    """Return the records of a reply.

    Parameters
    ----------
    text : str
        JSON, bare, in a code fence or within prose: a list, `{"predictions": [...]}`, or one record.

    Returns
    -------
    list or None
        The records as they came; None where the reply holds no such JSON.
    """
    found = _records(_load(text.strip()))
    if found is not None:
        return found
    for fenced in _FENCE.findall(text):
        found = _records(_load(fenced.strip()))
        if found is not None:
            return found
    # Within prose the first place that looks like an answer counts; a later one may be a part of one that was cut off.
    start = _START.search(text)
    if start is None:
        return None
    try:
        return _records(json.JSONDecoder().raw_decode(text, start.start())[0])
    except (ValueError, RecursionError):
        return None


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _records(value: Any) -> list[Any] | None:
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return None
    if PREDICTIONS in value:
        return value[PREDICTIONS] if isinstance(value[PREDICTIONS], list) else None
    return [value] if STEP in value or CATEGORY in value else None


def read_category(records: Sequence[Any], step: Sequence[int]) -> str | None:
    """Return the category that the first usable record gives to a step; None without one."""
    for record in _about(records, step):
        category = record.get(CATEGORY)
        if isinstance(category, str) and category in CATEGORIES:
            return category
    return None


def read_retrieval(records: Sequence[Any], trajectory: Trajectory, step: Sequence[int]) -> Retrieval | None:
    """Return category and evidence that the first usable record gives to a step; None without one."""
    for record in _about(records, step):
        entry = parse_entry(record, trajectory)
        if entry.category is not None and entry.evidence is not None:
            return Retrieval(entry.category, entry.evidence, 1.0 if entry.confidence is None else entry.confidence)
    return None


def _about(records: Sequence[Any], step: Sequence[int]) -> list[dict[str, Any]]:
    """Return the records about a step: those that name it, or no step at all."""
    wanted = tuple(step)
    return [
        record
        for record in records
        if isinstance(record, dict) and (STEP not in record or indices(record[STEP]) == wanted)
    ]
