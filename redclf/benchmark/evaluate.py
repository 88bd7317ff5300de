"""Score a detector on labelled trajectories: all metrics, breakdowns, intervals, differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from redclf.benchmark.data import GoldStep, LabelledTrajectory, Step
from redclf.benchmark.metrics import (
    COLUMNS,
    Counts,
    FloatArray,
    average_precision,
    detection_counts,
    expected_calibration_error,
    ratios,
    row,
)
from redclf.benchmark.predictions import (
    Entry,
    RawDetector,
    best_category,
    entry_of,
    evidence_key,
    parse_entry,
    rank,
)
from redclf.detectors.base import Detector
from redclf.errors import InSampleError
from redclf.hashing import trajectory_hash
from redclf.taxonomy import CATEGORIES

#: Buckets of trajectory length in messages: name and greatest length.
LENGTHS: tuple[tuple[str, float], ...] = (
    ("under 8", 7),
    ("8-30", 30),
    ("31-53", 53),
    ("54-76", 76),
    ("77-99", 99),
    ("100-122", 122),
    ("over 122", math.inf),
)

#: What `paired_difference` compares.
HEADLINE: tuple[str, ...] = (
    "stepcls.accuracy",
    "category.accuracy",
    "evidenceret.accuracy",
    "stepdet.p@1",
    "stepdet.p@5",
    "stepdet.p@10",
    "stepdet.mean",
    "stepdet.at_least_one.mean",
    "localisation.precision",
    "localisation.recall",
    "localisation.f1",
    "localisation.ap",
    "triple.precision",
    "triple.recall",
    "triple.f1",
)

IntArray = npt.NDArray[np.int64]

REPLICATES = 1000
SEED = 0
_CHUNK = 100


def length_bucket(messages: int) -> str:
    """Return the name of the bucket for a trajectory of so many messages."""
    return next(name for name, greatest in LENGTHS if messages <= greatest)


@dataclass(frozen=True)
class ItemScores:
    """What one trajectory contributes.

    Parameters
    ----------
    id : str
    group : tuple of str
        The task, for the bootstrap.
    subset, domain, length : str
        Where it counts in the breakdowns.
    counts : Counts
    by_category : mapping
        Counts of the gold steps of one category and of the predictions that name it. `located`
        counts gold steps of the category that are predicted under whatever category.
    labels, scores : ndarray
        Of every assistant interaction not disputed: whether it is redundant, and its score.
    calibrated : bool
        Whether the scores are the detector's probabilities of redundancy; else they are those of
        its predictions, and -1 for the rest.
    failed : bool
        Whether the detector gave no usable answer.
    """

    id: str
    group: tuple[str, str]
    subset: str
    domain: str
    length: str
    counts: Counts
    by_category: Mapping[str, Counts]
    labels: FloatArray
    scores: FloatArray
    calibrated: bool
    failed: bool


def score_item(detector: Detector, item: LabelledTrajectory) -> ItemScores:
    """Ask the detector about one trajectory and count what it got right."""
    trajectory = item.trajectory
    gold = [step for step in item.gold if step.step not in item.disputed]
    entries, failed = _entries(detector, item)
    ranked = rank(entries, item.disputed)
    best: list[Entry] = []
    if gold and not ranked and not failed:
        # Disputed steps are left out afterwards, so ask for as many more.
        found = detector.detect(trajectory, threshold=0.0, top_k=1 + len(item.disputed))
        best = rank([entry_of(p, trajectory) for p in found], item.disputed)[:1]
    counts = detection_counts(ranked, gold, best)
    named = {entry.step for entry in ranked if entry.valid}
    by_category: dict[str, Counts] = {}
    for category in CATEGORIES:
        own = [step for step in gold if step.category == category]
        part = detection_counts(
            [entry for entry in ranked if entry.category == category],
            own,
            [entry for entry in best if entry.category == category],
        )
        part.located = len(named & {step.step for step in own})
        if part.steps or part.predicted:
            by_category[category] = part
    for step in gold:
        right = _judge(detector, item, step)
        for target in (counts, by_category[step.category]):
            target.stepcls += right[0]
            target.category += right[1]
            target.evidenceret += right[2]
    labels, scores, calibrated = _redundancy(detector, item, gold, ranked)
    return ItemScores(
        id=item.id,
        group=item.group,
        subset=item.subset,
        domain=item.domain,
        length=length_bucket(len(trajectory.messages)),
        counts=counts,
        by_category=by_category,
        labels=labels,
        scores=scores,
        calibrated=calibrated,
        failed=failed,
    )


def _entries(detector: Detector, item: LabelledTrajectory) -> tuple[list[Entry], bool]:
    if isinstance(detector, RawDetector):
        records = detector.detect_records(item.trajectory)
        if records is None:
            return [], True
        return [parse_entry(record, item.trajectory) for record in records], False
    return [entry_of(p, item.trajectory) for p in detector.detect(item.trajectory)], False


def _judge(detector: Detector, item: LabelledTrajectory, gold: GoldStep) -> tuple[bool, bool, bool]:
    trajectory = item.trajectory
    given = best_category(detector.classify(trajectory, gold.step, gold.evidence))
    unaided = best_category(detector.category(trajectory, gold.step))
    found = detector.retrieve(trajectory, gold.step)
    same = found.category == gold.category and evidence_key(found.evidence) == evidence_key(gold.evidence)
    return given == gold.category, unaided == gold.category, same


def _redundancy(
    detector: Detector, item: LabelledTrajectory, gold: Sequence[GoldStep], ranked: Sequence[Entry]
) -> tuple[FloatArray, FloatArray, bool]:
    steps = [
        interaction.step
        for interaction in item.trajectory.assistant_interactions
        if interaction.step not in item.disputed
    ]
    redundant = {step.step for step in gold}
    known = detector.redundancy(item.trajectory)
    if known is None:
        guess: dict[Step, float] = {}
        for entry in ranked:
            if entry.valid and entry.step is not None and entry.confidence is not None:
                guess.setdefault(entry.step, entry.confidence)
        scores = [guess.get(step, -1.0) for step in steps]
    else:
        scores = [known.get(step, 0.0) for step in steps]
    labels = np.array([step in redundant for step in steps], dtype=float)
    return labels, np.array(scores, dtype=float), known is not None


@dataclass(frozen=True)
class Evaluation:
    """Scores of one detector on some trajectories.

    Parameters
    ----------
    detector : str
    items : tuple of ItemScores
    in_sample : int
        How many of the trajectories the detector was trained on. Where it is not 0, no figure
        says anything about new trajectories.
    replicates, seed : int
        Of the bootstrap over tasks.
    """

    detector: str
    items: tuple[ItemScores, ...]
    in_sample: int = 0
    replicates: int = REPLICATES
    seed: int = SEED
    _cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def failed(self) -> int:
        """How many trajectories the detector gave no usable answer for."""
        return sum(item.failed for item in self.items)

    def metric(self, path: str) -> float:
        """Return one metric of the whole, such as `"stepdet.p@1"`; NaN where undefined."""
        if "point" not in self._cache:
            self._cache["point"] = _point(self.items)
        return float(self._cache["point"][path])

    def to_dict(self) -> dict[str, Any]:
        """Return all scores as JSON values, fractions of 1, undefined ones None.

        Every block holds its metrics, `n`, and in `ci` the 95 % interval `[low, high]` of each
        metric, from a bootstrap over tasks (None with fewer than two tasks). `n` counts gold steps,
        in `stepdet` trajectories with gold. `by_category` restricts gold to one category and, for
        `stepdet` and `triple`, predictions to those that name it; its `localisation` has recall
        only, since a false alarm has no true category.
        """
        if "dict" not in self._cache:
            self._cache["dict"] = self._to_dict()
        result: dict[str, Any] = self._cache["dict"]
        return result

    def _to_dict(self) -> dict[str, Any]:
        result: dict[str, Any] = {
            "detector": self.detector,
            "trajectories": len(self.items),
            "tasks": len({item.group for item in self.items}),
            "in_sample": self.in_sample,
            "failed": self.failed,
            **self._blocks(self.items),
        }
        result["by_domain"] = self._by(lambda item: item.domain)
        result["by_subset"] = self._by(lambda item: item.subset)
        result["by_category"] = {
            category: self._category_blocks(category)
            for category in CATEGORIES
            if any(category in item.by_category for item in self.items)
        }
        result["by_length"] = self._by(lambda item: item.length, [name for name, _ in LENGTHS])
        return result

    def _by(self, key: Callable[[ItemScores], str], order: Sequence[str] | None = None) -> dict[str, Any]:
        names = order or sorted({key(item) for item in self.items})
        parts = {name: [item for item in self.items if key(item) == name] for name in names}
        return {name: self._blocks(part) for name, part in parts.items() if part}

    def _blocks(self, items: Sequence[ItemScores]) -> dict[str, Any]:
        point = _point(items)
        replicates = _replicated(items, self.replicates, self.seed)
        blocks = _nested(point, _intervals(replicates))
        sums = _matrix([item.counts for item in items]).sum(axis=0)
        total = dict(zip(COLUMNS, sums, strict=True))
        for name in ("stepcls", "category", "evidenceret", "triple"):
            blocks[name]["n"] = int(total["steps"])
        blocks["stepdet"]["n"] = int(total["ranked"])
        local = blocks["localisation"]
        local["n"] = int(total["redundant"])
        local["predictions"] = int(total["predicted"])
        local["interactions"] = int(sum(item.labels.size for item in items))
        local["clean_trajectories"] = int(total["clean"])
        if all(item.calibrated for item in items):
            ece = expected_calibration_error(*_pooled(items))
            local["ece"] = None if math.isnan(ece) else ece
        else:
            local["ece"] = None
        return blocks

    def _category_blocks(self, category: str) -> dict[str, Any]:
        counts = [item.by_category.get(category, Counts()) for item in self.items]
        matrix = _matrix(counts)
        weights, _ = _weights(self.items, self.replicates, self.seed)
        blocks = _nested(
            ratios(matrix.sum(axis=0)),
            _intervals(ratios(weights @ _by_group(matrix, self.items)) if len(weights) else {}),
        )
        total = dict(zip(COLUMNS, matrix.sum(axis=0), strict=True))
        for name in ("stepcls", "category", "evidenceret", "triple"):
            blocks[name]["n"] = int(total["steps"])
        blocks["stepdet"]["n"] = int(total["ranked"])
        local = blocks["localisation"]
        blocks["localisation"] = {
            "recall": local["recall"],
            "n": int(total["redundant"]),
            "ci": {"recall": local["ci"].get("recall")},
        }
        return blocks


def evaluate(
    detector: Detector,
    items: Sequence[LabelledTrajectory],
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Score a detector.

    Parameters
    ----------
    detector : Detector
        `detect` is asked once with its own threshold, and once more for its best candidate where
        it finds nothing; `classify`, `category` and `retrieve` once a gold step.
    items : sequence of LabelledTrajectory
    progress : callable, optional
        Called with the number done and the number of all, after each trajectory.

    Returns
    -------
    Evaluation
        Its `in_sample` says how many of the trajectories the detector was trained on;
        `check_out_of_sample` refuses them beforehand.
    """
    scored = []
    for place, item in enumerate(items, 1):
        scored.append(score_item(detector, item))
        if progress is not None:
            progress(place, len(items))
    return Evaluation(detector.name, tuple(scored), count_in_sample(detector, items))


def count_in_sample(detector: Detector, items: Iterable[LabelledTrajectory]) -> int:
    """Return how many of the trajectories the detector was trained on, by content."""
    known = detector.trained_on()
    return sum(trajectory_hash(item.trajectory) in known for item in items) if known else 0


def check_out_of_sample(detector: Detector, items: Sequence[LabelledTrajectory], allow_train: bool = False) -> int:
    """Return how many of the trajectories the detector was trained on, if that may be.

    Raises
    ------
    InSampleError
        If there are any and `allow_train` is false.
    """
    overlap = count_in_sample(detector, items)
    if overlap and not allow_train:
        raise InSampleError(
            f"{detector.name} was trained on {overlap} of these {len(items)} trajectories, so its "
            "scores would be IN-SAMPLE; score its out-of-fold result file instead, "
            "or pass --allow-train to see them all the same"
        )
    return overlap


def paired_difference(
    first: Evaluation, second: Evaluation, replicates: int = REPLICATES, seed: int = SEED
) -> dict[str, dict[str, Any]]:
    """Compare two detectors on the same trajectories by a paired bootstrap over tasks.

    Returns
    -------
    dict
        For every metric of `HEADLINE`: `a`, `b`, `difference` (a - b) and its 95 % interval `ci`,
        as fractions of 1; None where undefined.

    Raises
    ------
    ValueError
        If the trajectories are not the same.
    """
    ours = sorted(first.items, key=lambda item: item.id)
    theirs = sorted(second.items, key=lambda item: item.id)
    if [item.id for item in ours] != [item.id for item in theirs]:
        raise ValueError(
            f"expected evaluations of the same trajectories: {first.detector} has "
            f"{len(ours)}, {second.detector} {len(theirs)}, in common "
            f"{len({item.id for item in ours} & {item.id for item in theirs})}"
        )
    points = _point(ours), _point(theirs)
    # The same order and seed give both the same resampled tasks.
    samples = _replicated(ours, replicates, seed), _replicated(theirs, replicates, seed)
    result = {}
    for path in HEADLINE:
        a, b = float(points[0][path]), float(points[1][path])
        interval = _interval(samples[0][path] - samples[1][path]) if samples[0] else None
        result[path] = {
            "a": _number(a),
            "b": _number(b),
            "difference": _number(a - b),
            "ci": interval,
        }
    return result


def _matrix(counts: Sequence[Counts]) -> FloatArray:
    return np.array([row(c) for c in counts], dtype=float).reshape(len(counts), len(COLUMNS))


def _pooled(items: Sequence[ItemScores]) -> tuple[FloatArray, FloatArray]:
    if not items:
        return np.zeros(0), np.zeros(0)
    return (
        np.concatenate([item.labels for item in items]),
        np.concatenate([item.scores for item in items]),
    )


def _point(items: Sequence[ItemScores]) -> dict[str, FloatArray]:
    result = ratios(_matrix([item.counts for item in items]).sum(axis=0))
    result["localisation.ap"] = average_precision(*_pooled(items))
    return result


def _groups(items: Sequence[ItemScores]) -> tuple[IntArray, int]:
    names = {name: place for place, name in enumerate(sorted({item.group for item in items}))}
    return np.array([names[item.group] for item in items], dtype=np.int64), len(names)


def _by_group(matrix: FloatArray, items: Sequence[ItemScores]) -> FloatArray:
    of_item, number = _groups(items)
    result = np.zeros((number, matrix.shape[1]))
    np.add.at(result, of_item, matrix)
    return result


def _weights(items: Sequence[ItemScores], replicates: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Return how often each replicate draws each task, and the task of each item."""
    of_item, number = _groups(items)
    if number < 2:
        return np.zeros((0, number)), of_item
    draws = np.random.default_rng(seed).multinomial(number, [1 / number] * number, size=replicates)
    return draws.astype(float), of_item


def _replicated(items: Sequence[ItemScores], replicates: int, seed: int) -> dict[str, FloatArray]:
    """Return every metric in every replicate; nothing with fewer than two tasks."""
    weights, of_item = _weights(items, replicates, seed)
    if not len(weights):
        return {}
    matrix = _by_group(_matrix([item.counts for item in items]), items)
    result = ratios(weights @ matrix)
    labels, scores = _pooled(items)
    of_step = np.repeat(of_item, [item.labels.size for item in items])
    # In chunks, so that memory stays at some megabytes.
    parts = [
        average_precision(labels, scores, weights[start : start + _CHUNK][:, of_step])
        for start in range(0, len(weights), _CHUNK)
    ]
    result["localisation.ap"] = np.concatenate(parts)
    return result


def _interval(values: FloatArray) -> list[float] | None:
    kept = values[~np.isnan(values)]
    if not kept.size:
        return None
    low, high = np.percentile(kept, [2.5, 97.5])
    return [float(low), float(high)]


def _intervals(replicated: Mapping[str, FloatArray]) -> dict[str, list[float] | None]:
    return {path: _interval(values) for path, values in replicated.items()}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _nested(point: Mapping[str, FloatArray], intervals: Mapping[str, list[float] | None]) -> dict[str, Any]:
    """Turn metric paths into nested blocks, with the intervals beside them."""
    blocks: dict[str, Any] = {}
    for path, value in point.items():
        *parents, name = path.split(".")
        block = blocks
        for parent in parents:
            block = block.setdefault(parent, {})
        block[name] = _number(float(value))
        block.setdefault("ci", {})[name] = intervals.get(path)
    return blocks
