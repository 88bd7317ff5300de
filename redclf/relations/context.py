"""What a first pass over the other steps of a trajectory says about one of them.

Annotators judge steps in view of each other: a batch of parallel calls gets one verdict, a run of like
look-ups another, and where little else went wrong less is forgiven. So the relations models look twice:
the second time each step also sees what the first pass found in the rest of the trajectory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from redclf.taxonomy import CATEGORIES, DUPLICATED, EXPLORATORY, INCORRECT

FloatArray = npt.NDArray[np.floating[Any]]

#: Categories whose share among other steps is told.
TOLD = tuple(CATEGORIES.index(category) for category in (INCORRECT, DUPLICATED, EXPLORATORY))

CONTEXT_NAMES: tuple[str, ...] = tuple(
    """others_none others_most others_sum others_incorrect_f others_duplicated_f others_exploratory_f
    mates_mean mates_most mates_incorrect_f mates_duplicated_f mates_exploratory_f
    like_mean like_before_sum like_after_sum like_incorrect_f like_duplicated_f like_exploratory_f
    previous next""".split()
)


def context_rows(
    logits: FloatArray, categories: FloatArray, messages: Sequence[int], tools: Sequence[str]
) -> npt.NDArray[np.float32]:
    """Return what the first pass says about the other steps, one row a target.

    Parameters
    ----------
    logits : ndarray of shape (n,)
        Log-odds of redundancy of the targets, in their order.
    categories : ndarray of shape (n, 4)
        Scores of the categories, up to a constant a row.
    messages : sequence of int
        Index of each target's call message.
    tools : sequence of str

    Returns
    -------
    ndarray of shape (n, len(CONTEXT_NAMES)), float32
        *others* are the steps of other messages, *mates* those of the same message, *like* those of the same
        tool. Shares of categories are weighted by redundancy; NaN where there is no such step.
    """
    count = len(logits)
    out = np.full((count, len(CONTEXT_NAMES)), np.nan, dtype=np.float32)
    if not count:
        return out
    p = np.clip(1.0 / (1.0 + np.exp(-np.clip(logits, -50.0, 50.0).astype(np.float64))), 1e-4, 1 - 1e-4)
    shares = np.exp(categories - categories.max(axis=1, keepdims=True).astype(np.float64))
    shares /= shares.sum(axis=1, keepdims=True)
    told = p[:, None] * shares[:, TOLD]
    kept = np.log1p(-p)
    group = np.unique(np.asarray(messages), return_inverse=True)[1]
    tool = np.unique(np.asarray(tools), return_inverse=True)[1]

    def rest(values: npt.NDArray[np.float64], owner: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        sums = np.bincount(owner, values)
        return np.asarray(sums[owner] - values)

    in_group = np.bincount(group, p)[group]
    column = iter(out.T)
    next(column)[:] = kept.sum() - np.bincount(group, kept)[group]
    most = np.zeros(group.max() + 1)
    np.maximum.at(most, group, p)
    order = np.argsort(-most, kind="stable")
    best, second = most[order[0]], most[order[1]] if len(order) > 1 else 0.0
    next(column)[:] = np.where(group == order[0], second, best)
    others = p.sum() - in_group
    next(column)[:] = others
    for place in range(len(TOLD)):
        value = told[:, place]
        next(column)[:] = (value.sum() - np.bincount(group, value)[group]) / (others + 0.1)
    mates = np.bincount(group)[group] - 1
    has = mates > 0
    mates_sum = rest(p, group)
    next(column)[has] = (mates_sum / np.maximum(mates, 1))[has]
    next(column)[has] = _largest_other(p, group)[has]
    for place in range(len(TOLD)):
        next(column)[has] = (rest(told[:, place], group) / np.maximum(mates_sum, 1e-6))[has]
    like = np.bincount(tool)[tool] - 1
    has = like > 0
    like_sum = rest(p, tool)
    before = _running_before(p, tool)
    next(column)[has] = (like_sum / np.maximum(like, 1))[has]
    next(column)[:] = before
    next(column)[:] = like_sum - before
    for place in range(len(TOLD)):
        next(column)[has] = (rest(told[:, place], tool) / np.maximum(like_sum, 1e-6))[has]
    next(column)[1:] = p[:-1]
    next(column)[:-1] = p[1:]
    return out


def _largest_other(values: npt.NDArray[np.float64], owner: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return, per place, the largest value of the other members of its group, 0 without any."""
    first, second = np.zeros(owner.max() + 1), np.zeros(owner.max() + 1)
    at = np.full(owner.max() + 1, -1)
    for place, (value, key) in enumerate(zip(values, owner, strict=True)):
        if value > first[key]:
            second[key], first[key], at[key] = first[key], value, place
        elif value > second[key]:
            second[key] = value
    places = np.arange(len(values))
    return np.where(at[owner] == places, second[owner], first[owner])


def _running_before(values: npt.NDArray[np.float64], owner: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return, per place, the sum of its group's values before it."""
    sums = np.zeros(owner.max() + 1)
    out = np.empty(len(values))
    for place, (value, key) in enumerate(zip(values, owner, strict=True)):
        out[place] = sums[key]
        sums[key] += value
    return out
