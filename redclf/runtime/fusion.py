"""How the encoder's outputs join the relation scores of a target (late fusion)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from redclf.detectors.distribution import log_softmax

FloatArray = npt.NDArray[np.floating[Any]]

#: Cells of candidates that the encoder did not read, in its own distribution.
UNREAD = -30.0


@dataclass(frozen=True)
class Fusion:
    """Weights of relations and text, fitted on tasks kept out of training.

    Parameters
    ----------
    redundant : tuple of float
        Weights of the relations' log-odds, the encoder's residual and its own log-odds, then a shift.
    cells : tuple of float
        Weights of the relations' cells, the encoder's residual and its own categories.
    """

    redundant: tuple[float, float, float, float] = (1.0, 1.0, 0.0, 0.0)
    cells: tuple[float, float, float] = (1.0, 1.0, 0.0)

    @property
    def reads_redundancy(self) -> bool:
        """Whether the encoder has a say over redundancy."""
        _, residual, text, _ = self.redundant
        return bool(residual or text)

    @classmethod
    def from_dict(cls, values: Mapping[str, Sequence[float]]) -> Fusion:
        """Read the weights from a model's config."""
        a, b, c, d = (float(value) for value in values["redundant"])
        e, f, g = (float(value) for value in values["cells"])
        return cls((a, b, c, d), (e, f, g))

    def log_odds(self, outputs: FloatArray | None, logit: float) -> float:
        """Return the calibrated log-odds of redundancy of one target.

        Parameters
        ----------
        outputs : ndarray of shape (n_pairs, 10), or None
            Not needed where the encoder has no say over redundancy.
        logit : float
            By relations.
        """
        relations, residual, text, shift = self.redundant
        if outputs is None:
            return float(relations * logit + shift)
        return float(relations * logit + residual * outputs[:, 0].mean() + text * outputs[:, 5].mean() + shift)

    def join(self, outputs: FloatArray, chosen: Sequence[int], cells: FloatArray) -> FloatArray:
        """Return log-probabilities of the cells, with the text's say added.

        Parameters
        ----------
        outputs : ndarray of shape (n_pairs, 10)
            The encoder's outputs for the shortlisted candidates.
        chosen : sequence of int
            Their places among the candidates.
        cells : ndarray of shape (4, n_candidates)
            Log-probabilities of the cells by relations.
        """
        relations, residual, text = self.cells
        fused = relations * np.asarray(cells, dtype=np.float64)
        fused[:, list(chosen)] += residual * outputs[:, 1:5].T
        fused += text * text_categories(outputs)[:, None]
        return log_softmax(fused)


def text_categories(outputs: FloatArray) -> FloatArray:
    """Return the encoder's own log-probabilities of the categories, shape (4,)."""
    shares: FloatArray = np.logaddexp.reduce(log_softmax(outputs[:, 6:10].T.astype(np.float64)), axis=1)
    return shares


def text_alone(outputs: FloatArray, chosen: Sequence[int], candidates: int) -> tuple[float, FloatArray]:
    """Return log-odds of redundancy and cells from the text alone."""
    cells = np.full((4, candidates), UNREAD)
    cells[:, list(chosen)] = outputs[:, 6:10].T
    return float(outputs[:, 5].mean()), log_softmax(cells)
