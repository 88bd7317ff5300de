"""The cross-encoder on ONNX Runtime: pairs of token ids in, the head's outputs out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from redclf.runtime.session import open_session

FloatArray = npt.NDArray[np.floating[Any]]


class OnnxEncoder:
    """Scores pairs in batches of like length.

    Parameters
    ----------
    path : Path
        The ONNX model.
    threads : int, optional
    batch : int
        Pairs a call.
    """

    def __init__(self, path: Path, threads: int | None = None, batch: int = 16) -> None:
        self._session = open_session(path, threads)
        self._batch = batch

    def score(self, pairs: Sequence[tuple[Sequence[int], int]]) -> FloatArray:
        """Return the outputs of pairs, shape (n_pairs, 10).

        Parameters
        ----------
        pairs : sequence of (token ids, length of the first segment)
        """
        out = np.zeros((len(pairs), 10), dtype=np.float32)
        order = sorted(range(len(pairs)), key=lambda place: len(pairs[place][0]))
        for start in range(0, len(order), self._batch):
            chunk = order[start : start + self._batch]
            longest = max(len(pairs[place][0]) for place in chunk)
            ids = np.zeros((len(chunk), longest), dtype=np.int64)
            mask = np.zeros_like(ids)
            segments = np.zeros_like(ids)
            for row, place in enumerate(chunk):
                tokens, first = pairs[place]
                ids[row, : len(tokens)] = tokens
                mask[row, : len(tokens)] = 1
                segments[row, first : len(tokens)] = 1
            feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}
            out[chunk] = self._session.run(None, feeds)[0]
        return out
