"""Files that hold a detector's answers, and the detector that plays one back.

A result file is JSONL. Its first line is the header (`{"header": {...}}`: command, data, seed,
commit, folds), every other line one trajectory's answers.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from redclf.benchmark.data import LabelledTrajectory, Step
from redclf.benchmark.predictions import (
    RawDetector,
    as_probability,
    best_category,
    evidence_key,
    indices,
    parse_entry,
)
from redclf.detectors.base import Detector, Prediction, Retrieval
from redclf.errors import TraceError
from redclf.hashing import trajectory_hash
from redclf.taxonomy import CATEGORIES
from redclf.trajectory import Trajectory


def result_record(detector: Detector, item: LabelledTrajectory) -> dict[str, Any]:
    """Ask a detector everything that `evaluate` needs about one trajectory.

    Returns
    -------
    dict
        `trajectory_id`, `hash`, `predictions` (records with the official names; None for a failed
        reply), `best` (the best candidate below the threshold, only where `predictions` is
        empty), `stepcls`, `category`, `evidenceret` (one entry a gold step), and `redundancy`
        (`"c,r"` to probability; None where the detector has none).
    """
    trajectory = item.trajectory
    record: dict[str, Any] = {
        "trajectory_id": trajectory.id,
        "hash": trajectory_hash(trajectory),
        "predictions": _raw_predictions(detector, trajectory),
        "stepcls": [],
        "category": [],
        "evidenceret": [],
    }
    predicted = record["predictions"]
    if predicted is not None and all(
        (entry := parse_entry(value, trajectory)).step is not None and entry.step in item.disputed
        for value in predicted
    ):
        best = detector.detect(trajectory, threshold=0.0, top_k=1 + len(item.disputed))
        record["best"] = [_full_record(prediction) for prediction in best]
    for gold in item.gold:
        step, evidence = list(gold.step), list(gold.evidence)
        given = detector.classify(trajectory, gold.step, gold.evidence)
        unaided = detector.category(trajectory, gold.step)
        found = detector.retrieve(trajectory, gold.step)
        record["stepcls"].append(
            {"step": step, "evidence": evidence, "category": best_category(given)} | {"probabilities": dict(given)}
        )
        record["category"].append({"step": step, "category": best_category(unaided), "probabilities": dict(unaided)})
        record["evidenceret"].append(
            {"step": step, "category": found.category, "evidence": list(found.evidence)}
            | {"confidence": found.confidence}
        )
    scores = detector.redundancy(trajectory)
    record["redundancy"] = None if scores is None else {f"{c},{r}": float(p) for (c, r), p in scores.items()}
    return record


def _raw_predictions(detector: Detector, trajectory: Trajectory) -> list[Any] | None:
    if isinstance(detector, RawDetector):
        records = detector.detect_records(trajectory)
        return None if records is None else list(records)
    return [_full_record(prediction) for prediction in detector.detect(trajectory)]


def _full_record(prediction: Prediction) -> dict[str, Any]:
    # Unrounded, so that a file ranks as the detector did.
    return prediction.to_dict() | {
        "confidence": prediction.confidence,
        "redundancy": prediction.redundancy,
    }


def write_results(path: str | Path, header: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> None:
    """Write a result file, whole or not at all.

    Parameters
    ----------
    path : path
        Folders on the way are made.
    header : mapping
        `command`, `data`, `seed`, `commit`, `folds` and what else tells how it came about;
        `trained_on` (a list of trajectory hashes) where the answers are not out of fold; `name`
        for tables.
    records : iterable of mapping
        As `result_record` gives. Numbers that are not finite are written as null.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as stream:
            for line in ({"header": dict(header)}, *records):
                stream.write(json.dumps(_finite(line), ensure_ascii=False, allow_nan=False))
                stream.write("\n")
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value) if math.isfinite(value) else None
    return value


def read_results(path: str | Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Read a result file.

    Returns
    -------
    header : dict
        Empty where the file has none.
    records : dict
        Trajectory id to its record.

    Raises
    ------
    TraceError
        If a line is no record, or a trajectory occurs twice.
    """
    place = str(path)
    header: dict[str, Any] = {}
    records: dict[str, dict[str, Any]] = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise TraceError(f"expected UTF-8 text: {error.reason}", place) from None
    except OSError as error:
        raise TraceError(f"can't be read: {error.strerror}", place) from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise TraceError(f"expected JSON: {error}", place, where) from None
        if not isinstance(value, dict):
            raise TraceError("expected an object", place, where)
        if "header" in value and "trajectory_id" not in value:
            header = value["header"] if isinstance(value["header"], dict) else {}
            continue
        name = value.get("trajectory_id")
        if not isinstance(name, str):
            raise TraceError(f"expected a name, got {name!r}", place, f"{where}, trajectory_id")
        if name in records:
            raise TraceError(f"trajectory {name!r} occurs twice", place, where)
        _check_record(value, place, where)
        records[name] = value
    if not records:
        raise TraceError("expected a line per trajectory, found none", place)
    return header, records


def _check_record(value: Mapping[str, Any], place: str, where: str) -> None:
    predictions = value.get("predictions")
    if predictions is not None and not isinstance(predictions, list):
        raise TraceError("expected a list or null", place, f"{where}, predictions")
    for field in ("best", "stepcls", "category", "evidenceret"):
        entries = value.get(field) or []
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise TraceError("expected a list of objects", place, f"{where}, {field}")
    scores = value.get("redundancy")
    if scores is not None:
        try:
            _scores(scores)
        except (AttributeError, TypeError, ValueError):
            raise TraceError(
                'expected an object of "call,result" to probability',
                place,
                f"{where}, redundancy",
            ) from None


def _scores(value: Mapping[str, Any]) -> dict[Step, float]:
    scores: dict[Step, float] = {}
    for key, probability in value.items():
        call, result = key.split(",")
        number = as_probability(probability)
        if number is None:
            raise ValueError(key)
        scores[int(call), int(result)] = number
    return scores


class ResultFileDetector(Detector):
    """Plays back the answers of a result file, so that it is scored like any detector.

    Parameters
    ----------
    path : path
        File written by `write_results`.

    Raises
    ------
    TraceError
        If the file can't be read; later, if it has no record of a trajectory, or one of another
        trajectory under the same id.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.header, self._records = read_results(path)
        self.name = str(self.header.get("name") or Path(path).stem)

    @property
    def ids(self) -> frozenset[str]:
        """Ids of the trajectories that the file has answers for."""
        return frozenset(self._records)

    def detect_records(self, trajectory: Trajectory) -> list[object] | None:
        """Return the records as they came; None for a failed reply."""
        predictions: list[object] | None = self._record(trajectory).get("predictions")
        return predictions

    def detect(
        self, trajectory: Trajectory, threshold: float | None = None, top_k: int | None = None
    ) -> list[Prediction]:
        """Return the well-formed predictions, most confident first.

        With a threshold, candidates below the one that the file was written with are there only
        where the trajectory had none above it.
        """
        record = self._record(trajectory)
        values = list(record.get("predictions") or [])
        if threshold is not None:
            values += record.get("best") or []
        read = [p for value in values if (p := read_prediction(value, trajectory)) is not None]
        found: dict[Step, Prediction] = {}
        for prediction in sorted(read, key=lambda prediction: -prediction.confidence):
            if threshold is None or prediction.redundancy >= threshold:
                found.setdefault(prediction.step, prediction)
        return list(found.values())[:top_k]

    def classify(self, trajectory: Trajectory, step: Sequence[int], evidence: Sequence[int]) -> dict[str, float]:
        """Return the recorded distribution; empty where the file has none for this step."""
        for entry in self._entries(trajectory, "stepcls", step):
            given = indices(entry.get("evidence"))
            if given is None or evidence_key(given) == evidence_key(evidence):
                return _distribution(entry)
        return {}

    def category(self, trajectory: Trajectory, step: Sequence[int]) -> dict[str, float]:
        """Return the recorded distribution; empty where the file has none for this step."""
        entries = self._entries(trajectory, "category", step)
        return _distribution(entries[0]) if entries else super().category(trajectory, step)

    def retrieve(self, trajectory: Trajectory, step: Sequence[int]) -> Retrieval:
        """Return the recorded answer; one that is never right where the file has none."""
        entries = self._entries(trajectory, "evidenceret", step)
        if not entries:
            return Retrieval("", (), 0.0)
        evidence = indices(entries[0].get("evidence")) or ()
        confidence = as_probability(entries[0].get("confidence")) or 0.0
        return Retrieval(str(entries[0].get("category") or ""), evidence, confidence)

    def redundancy(self, trajectory: Trajectory) -> dict[Step, float] | None:
        """Return the recorded probabilities, if the file has them."""
        scores = self._record(trajectory).get("redundancy")
        return None if scores is None else _scores(scores)

    def trained_on(self) -> frozenset[str]:
        """Return what the header lists as trained on; nothing for out-of-fold answers."""
        return frozenset(self.header.get("trained_on") or ())

    def _record(self, trajectory: Trajectory) -> dict[str, Any]:
        record = self._records.get(trajectory.id)
        if record is None:
            raise TraceError(f"no record of trajectory {trajectory.id!r}", self.path)
        digest = record.get("hash")
        if digest is not None and digest != trajectory_hash(trajectory):
            raise TraceError("recorded for a trajectory of other content", self.path, trajectory.id)
        return record

    def _entries(self, trajectory: Trajectory, field: str, step: Sequence[int]) -> list[dict[str, Any]]:
        wanted = tuple(step)
        entries = self._record(trajectory).get(field) or []
        return [entry for entry in entries if indices(entry.get("step")) == wanted]


def read_prediction(value: object, trajectory: Trajectory) -> Prediction | None:
    """Return a recorded prediction; None where it could never hit."""
    entry = parse_entry(value, trajectory)
    if entry.step is None or entry.category is None or entry.evidence is None or entry.confidence is None:
        return None
    fields: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    redundancy = as_probability(fields.get("redundancy"))
    interaction = trajectory.interaction_at(entry.step)
    tokens = fields.get("tokens")
    return Prediction(
        step=entry.step,
        category=entry.category,
        evidence=entry.evidence,
        confidence=entry.confidence,
        interaction=interaction.ordinal,
        redundancy=entry.confidence if redundancy is None else redundancy,
        reason=str(fields.get("reason") or ""),
        tool=interaction.call.name,
        tokens=tokens if isinstance(tokens, int) else 0,
    )


def _distribution(entry: Mapping[str, Any]) -> dict[str, float]:
    values = entry.get("probabilities")
    if isinstance(values, Mapping):
        known = {c: p for c in CATEGORIES if (p := as_probability(values.get(c))) is not None}
        if known:
            return known
    category = entry.get("category")
    return {category: 1.0} if category in CATEGORIES else {}
