"""The cross-encoder on ONNX Runtime: pairs of token ids in, the head's outputs out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from redclf.runtime.session import open_session

FloatArray = npt.NDArray[np.floating[Any]]


#: Token ids of a pair of steps, and the length of its first segment.
Pair = tuple[Sequence[int], int]


def feeds(pairs: Sequence[Pair]) -> dict[str, npt.NDArray[np.int64]]:
    """Return pairs as the encoder's inputs, each of shape (n_pairs, longest), filled up with zeros."""
    ids = np.zeros((len(pairs), max(len(tokens) for tokens, _ in pairs)), dtype=np.int64)
    mask, segments = np.zeros_like(ids), np.zeros_like(ids)
    for row, (tokens, first) in enumerate(pairs):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
        segments[row, first : len(tokens)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


class Encoder(Protocol):
    """A backend: what runs the encoder."""

    def score(self, pairs: Sequence[Pair]) -> FloatArray:
        """Return the outputs of pairs, shape (n_pairs, 10)."""


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

    def score(self, pairs: Sequence[Pair]) -> FloatArray:
        """Return the outputs of pairs, shape (n_pairs, 10)."""
        out = np.zeros((len(pairs), 10), dtype=np.float32)
        order = sorted(range(len(pairs)), key=lambda place: len(pairs[place][0]))
        for start in range(0, len(order), self._batch):
            chunk = order[start : start + self._batch]
            out[chunk] = self._session.run(None, feeds([pairs[place] for place in chunk]))[0]
        return out
