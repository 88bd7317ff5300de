"""Scores relations with the shipped tree ensembles, on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """

    def __init__(self, folder: Path) -> None:
        # With more threads, sums over trees would depend on their number in the last bit.
        self._sessions = {name: open_session(folder / f"{name}.onnx", threads=1) for name in FILES}

    def _run(self, name: str, rows: FloatArray) -> FloatArray:
        session = self._sessions[name]
        parts = [
            session.run(None, {"x": np.ascontiguousarray(rows[start : start + _ROWS], dtype=np.float32)})[0]
            for start in range(0, len(rows), _ROWS)
        ]
        return np.concatenate(parts)

    def open(self, relations: Relations) -> tuple[list[float], Callable[[int], FloatArray]]:
        """Return the logits of redundancy, and what computes the cells of a target when they are wanted.

        Returns
        -------
        logits : list of float
            One a target.
        cells : callable
            Place of a target to the log-probabilities of its cells, shape (4, n_candidates), which are
            conditional on redundancy.
        """
        if not relations.targets:
            return [], lambda place: np.zeros((len(CATEGORIES), 0))
        targets = self._with_context(relations)
        logits = self._run("redundant", targets)[:, 0]

        def cells(place: int) -> FloatArray:
            target, pairs = targets[place : place + 1], relations.pair_features[place]
            rows = np.concatenate([pairs, np.repeat(target, len(pairs), axis=0)], axis=1)
            given = self._run("given", rows)
            return combine(self._run("category", target)[0], self._evidence(rows), given.T)

        return [float(logit) for logit in logits], cells

    def score(self, relations: Relations) -> list[tuple[float, FloatArray]]:
        """Return logit and cells of every target."""
        logits, cells = self.open(relations)
        return [(logit, cells(place)) for place, logit in enumerate(logits)]

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

    def _evidence(self, rows: FloatArray) -> FloatArray:
        """Return the evidence model's scores of one target's pairs for each category, shape (4, n_pairs)."""
        chosen = np.repeat(np.eye(len(CATEGORIES), dtype=np.float32), len(rows), axis=0)
        every = np.concatenate([np.tile(rows, (len(CATEGORIES), 1)), chosen], axis=1)
        scores: FloatArray = self._run("evidence", every).reshape(len(CATEGORIES), len(rows))
        return scores


def feature_names() -> dict[str, Sequence[str]]:
    """Return the names of the ensembles' inputs, which a model's config repeats."""
    return {"target": list(TARGET_NAMES), "context": list(CONTEXT_NAMES), "pair": list(PAIR_NAMES)}
