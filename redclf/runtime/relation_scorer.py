"""Scores relations with the shipped tree ensembles, on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from redclf.detectors.distribution import combine
from redclf.relations.context import CONTEXT_NAMES, context_rows
from redclf.relations.features import PAIR_NAMES, TARGET_NAMES, Relations
from redclf.runtime.session import open_session
from redclf.taxonomy import CATEGORIES

FloatArray = npt.NDArray[np.floating[Any]]

#: The ensembles of a model folder: of the first pass, and of the second, which sees what the first found elsewhere.
FILES = ("first_redundant", "first_category", "redundant", "category", "evidence", "given")
_ROWS = 20_000


class RelationScorer:
    """The tree ensembles of a model.

    Parameters
    ----------
    folder : Path
        With an ONNX file for each of `FILES`.
    threads : int, optional
        Threads of ONNX Runtime; its default otherwise.
    """

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        self._sessions = {name: open_session(folder / f"{name}.onnx", threads) for name in FILES}

    def _run(self, name: str, rows: FloatArray) -> FloatArray:
        session = self._sessions[name]
        parts = [
            session.run(None, {"x": np.ascontiguousarray(rows[start : start + _ROWS], dtype=np.float32)})[0]
            for start in range(0, len(rows), _ROWS)
        ]
        return np.concatenate(parts)

    def score(self, relations: Relations) -> list[tuple[float, FloatArray]]:
        """Return, per target, the logit of redundancy and the log-probabilities of its cells.

        The second has shape (4, n_candidates) and is conditional on redundancy.
        """
        if not relations.targets:
            return []
        targets = self._with_context(relations)
        logits = self._run("redundant", targets)[:, 0]
        category = self._run("category", targets)
        sizes = [len(pairs) for pairs in relations.pair_features]
        pairs = np.concatenate(relations.pair_features)
        base = np.concatenate([pairs, np.repeat(targets, sizes, axis=0)], axis=1)
        given = self._run("given", base)
        evidence = self._evidence(base)
        found, start = [], 0
        for place, size in enumerate(sizes):
            rows = slice(start, start + size)
            found.append((float(logits[place]), combine(category[place], evidence[:, rows], given[rows].T)))
            start += size
        return found

    def _with_context(self, relations: Relations) -> FloatArray:
        """Return the targets' features with what the first pass says about the other steps."""
        targets = relations.target_features
        steps = [relations.view.steps[place] for place in relations.targets]
        context = context_rows(
            self._run("first_redundant", targets)[:, 0],
            self._run("first_category", targets),
            [step.call_index for step in steps],
            [step.tool for step in steps],
        )
        return np.concatenate([targets, context], axis=1)

    def _evidence(self, base: FloatArray) -> FloatArray:
        """Return the evidence model's scores for each category, shape (4, n_pairs)."""
        count = len(CATEGORIES)
        rows = np.zeros((len(base), base.shape[1] + count), dtype=np.float32)
        rows[:, : base.shape[1]] = base
        out = np.empty((count, len(base)), dtype=np.float32)
        for category in range(count):
            rows[:, base.shape[1] :] = 0.0
            rows[:, base.shape[1] + category] = 1.0
            out[category] = self._run("evidence", rows)[:, 0]
        return out


def feature_names() -> dict[str, Sequence[str]]:
    """Return the names of the ensembles' inputs, which a model's config repeats."""
    return {"target": list(TARGET_NAMES), "context": list(CONTEXT_NAMES), "pair": list(PAIR_NAMES)}
