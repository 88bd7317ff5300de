"""How the encoder's outputs join the relation scores of a target (late fusion)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from redclf.detectors.distribution import log_softmax

FloatArray = npt.NDArray[np.floating]


def fuse(outputs: FloatArray, chosen: Sequence[int], logit: float, cells: FloatArray) -> tuple[float, FloatArray]:
    """Return redundancy logit and cell log-probabilities with the text's residual added.

    Parameters
    ----------
    outputs : ndarray of shape (n_pairs, 10)
        The encoder's outputs for the shortlisted candidates.
    chosen : sequence of int
        Their places among the candidates.
    logit : float
        Redundancy by relations.
    cells : ndarray of shape (4, n_candidates)
        Log-probabilities of the cells by relations.
    """
    fused = np.array(cells, dtype=np.float64)
    fused[:, list(chosen)] += outputs[:, 1:5].T
    return logit + float(outputs[:, 0].mean()), log_softmax(fused)


def text_alone(outputs: FloatArray, chosen: Sequence[int], candidates: int) -> tuple[float, FloatArray]:
    """Return the same from the text alone; candidates that were not read get no probability."""
    cells = np.full((4, candidates), -30.0)
    cells[:, list(chosen)] = outputs[:, 6:10].T
    return float(outputs[:, 5].mean()), log_softmax(cells)
