"""The official metrics as sums of per-trajectory counts, so that every slice and interval is cheap.

`Counts` holds what one trajectory contributes; counts of many trajectories add up; `ratios` turns
sums into metrics, for one sum or for a whole array of bootstrap replicates at once.

Conventions:

- Disputed steps are ignored everywhere. They are no gold, no hit and no false alarm; predictions of
  them are removed before P@K counts its slots.
- P@K is a macro mean over trajectories with gold; the other metrics pool steps (micro).
- Localisation and triples look at distinct predicted steps, repeats left out. An entry that is not
  valid is a false alarm there, unless a valid entry names its step, too.
- A ratio without a denominator is NaN (`None` in JSON), but precision and P@K without a prediction
  are 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from redclf.benchmark.data import GoldStep
from redclf.benchmark.predictions import Entry, hits, precision_at

FloatArray = npt.NDArray[np.float64]
CUTOFFS: tuple[int, ...] = (1, 5, 10)


@dataclass(slots=True)
class Counts:
    """What one trajectory (or one of its categories) contributes to every metric.

    `p*` are P@K of the trajectory, `a*` the same with at least one prediction, `ranked` is 1 where
    it has gold, `clean` 1 where it has none; all others count steps.
    """

    steps: float = 0
    """Gold steps with a label: the denominator of StepCls, category, EvidenceRet and triples."""
    stepcls: float = 0
    category: float = 0
    evidenceret: float = 0
    ranked: float = 0
    p1: float = 0
    p5: float = 0
    p10: float = 0
    a1: float = 0
    a5: float = 0
    a10: float = 0
    redundant: float = 0
    """Distinct gold steps: the denominator of localisation's recall."""
    predicted: float = 0
    located: float = 0
    triples: float = 0
    clean: float = 0
    clean_alarms: float = 0


COLUMNS: tuple[str, ...] = tuple(field.name for field in fields(Counts))
_AT = {name: place for place, name in enumerate(COLUMNS)}

#: Metric path to its numerator and denominator columns.
_SHARES: dict[str, tuple[str, str]] = {
    "stepcls.accuracy": ("stepcls", "steps"),
    "category.accuracy": ("category", "steps"),
    "evidenceret.accuracy": ("evidenceret", "steps"),
    "stepdet.p@1": ("p1", "ranked"),
    "stepdet.p@5": ("p5", "ranked"),
    "stepdet.p@10": ("p10", "ranked"),
    "stepdet.at_least_one.p@1": ("a1", "ranked"),
    "stepdet.at_least_one.p@5": ("a5", "ranked"),
    "stepdet.at_least_one.p@10": ("a10", "ranked"),
    "localisation.recall": ("located", "redundant"),
    "localisation.false_alarms_per_clean_trajectory": ("clean_alarms", "clean"),
    "triple.recall": ("triples", "steps"),
}


def row(counts: Counts) -> list[float]:
    """Return the counts in the order of `COLUMNS`."""
    return [float(getattr(counts, name)) for name in COLUMNS]


def detection_counts(ranked: Sequence[Entry], gold: Sequence[GoldStep], best: Sequence[Entry] = ()) -> Counts:
    """Count hits, alarms and P@K of one trajectory.

    Parameters
    ----------
    ranked : sequence of Entry
        As `redclf.benchmark.predictions.rank` gives, disputed steps removed.
    gold : sequence of GoldStep
        Disputed steps removed.
    best : sequence of Entry
        What stands in for an empty `ranked` in the variant with at least one prediction.
    """
    hit = hits(ranked, gold)
    forced = hit if ranked else hits(best, gold)
    steps = {step.step for step in gold}
    named = {entry.step for entry in ranked if entry.valid}
    invalid = sum(1 for entry in ranked if not entry.valid and entry.step not in named)
    predicted = len(named) + invalid
    counts = Counts(
        steps=len(gold),
        redundant=len(steps),
        predicted=predicted,
        located=len(named & steps),
        triples=sum(hit),
    )
    if gold:
        counts.ranked = 1
        counts.p1, counts.p5, counts.p10 = (precision_at(hit, k) for k in CUTOFFS)
        counts.a1, counts.a5, counts.a10 = (precision_at(forced, k) for k in CUTOFFS)
    else:
        counts.clean = 1
        counts.clean_alarms = predicted
    return counts


def _divide(top: FloatArray, bottom: FloatArray) -> FloatArray:
    result = np.full(np.broadcast(top, bottom).shape, np.nan)
    np.divide(top, bottom, out=result, where=np.asarray(bottom) > 0)
    return result


def ratios(sums: FloatArray) -> dict[str, FloatArray]:
    """Turn sums of counts into metrics.

    Parameters
    ----------
    sums : ndarray, shape (..., len(COLUMNS))

    Returns
    -------
    dict
        Metric path, such as `"stepdet.p@1"`, to an array of shape (...); NaN where undefined.
    """
    column = {name: np.asarray(sums[..., place], dtype=float) for name, place in _AT.items()}
    result = {path: _divide(column[a], column[b]) for path, (a, b) in _SHARES.items()}
    for prefix in ("stepdet", "stepdet.at_least_one"):
        result[f"{prefix}.mean"] = np.mean([result[f"{prefix}.p@{k}"] for k in CUTOFFS], axis=0)
    for name, found, gold in (
        ("localisation", "located", "redundant"),
        ("triple", "triples", "steps"),
    ):
        predicted, wanted = column["predicted"], column[gold]
        precision = _divide(column[found], predicted)
        result[f"{name}.precision"] = np.where((predicted == 0) & (wanted > 0), 0.0, precision)
        result[f"{name}.f1"] = _divide(2 * column[found], predicted + wanted)
    return result


def average_precision(labels: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> FloatArray:
    """Return the average precision: the sum of precision times the gain in recall.

    Tied scores are one threshold, as in scikit-learn.

    Parameters
    ----------
    labels : array-like of bool, shape (n,)
    scores : array-like of float, shape (n,)
    weights : array-like of float, shape (n,) or (replicates, n), optional

    Returns
    -------
    ndarray, shape () or (replicates,)
        NaN where nothing is positive.
    """
    truth = np.asarray(labels, dtype=float)
    score = np.asarray(scores, dtype=float)
    weight = np.ones_like(truth) if weights is None else np.asarray(weights, dtype=float)
    if truth.size == 0:
        return np.full(weight.shape[:-1], np.nan)
    order = np.argsort(-score, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(score[order])), truth.size - 1)
    weight = weight[..., order]
    found = np.cumsum(weight * truth[order], axis=-1)[..., ends]
    seen = np.cumsum(weight, axis=-1)[..., ends]
    precision = np.divide(found, seen, out=np.zeros_like(found), where=seen > 0)
    gain = np.diff(found, axis=-1, prepend=0.0)
    return _divide(np.sum(gain * precision, axis=-1), found[..., -1])


def expected_calibration_error(labels: npt.ArrayLike, probabilities: npt.ArrayLike, bins: int = 15) -> float:
    """Return the expected calibration error over equally wide bins; NaN without data.

    It is the mean distance between a bin's mean probability and its share of positives, weighted
    by the number of items in the bin.
    """
    truth = np.asarray(labels, dtype=float)
    probability = np.asarray(probabilities, dtype=float)
    if truth.size == 0:
        return float("nan")
    # Bins are closed above, and the first one holds 0, too.
    place = np.clip(np.ceil(probability * bins).astype(int) - 1, 0, bins - 1)
    gap = np.bincount(place, truth - probability, minlength=bins)
    return float(np.abs(gap).sum() / truth.size)
