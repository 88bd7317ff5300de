"""Which candidates of a target the encoder reads: those that relations give a chance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def shortlist(cells: npt.NDArray[np.floating], count: int) -> list[int]:
    """Return the places of the most probable candidates, best first.

    Parameters
    ----------
    cells : ndarray of shape (4, n_candidates)
        Log-probabilities of (category, candidate).
    count : int
        How many at most.
    """
    marginal = np.logaddexp.reduce(cells, axis=0)
    return [int(place) for place in np.argsort(-marginal, kind="stable")[:count]]
