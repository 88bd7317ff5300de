"""The rows of every comparison: relations alone, text alone, both; fitted, scored and kept on disk."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from redclf.benchmark.data import LabelledTrajectory
from redclf.detectors.distribution import TargetScores
from redclf.runtime.fusion import text_alone
from train.encoder import predict
from train.fitting import Fit, Workshop, fit_encoder, floor_logit, relations_calibration
from train.scored import ScoredDetector
from train.stacking import Scores, Stack, load_scores, save_scores

ROWS = ("relations", "text", "both")
#: What there is without the encoder.
RELATIONS_ONLY = ("relations",)
#: Calibration and threshold of every row, as `fit_encoder` writes them.
CALIBRATION = "calibration.json"


def rows_of(relations_only: bool) -> tuple[str, ...]:
    """Return the names of the rows."""
    return RELATIONS_ONLY if relations_only else ROWS


@dataclass
class Row:
    """What one row says about some trajectories.

    Parameters
    ----------
    scores : dict
        Trajectory id to the calibrated distributions of its targets.
    thresholds : dict
        Trajectory id to the threshold of the model that scored it.
    """

    scores: dict[str, list[Scores]] = field(default_factory=dict)
    thresholds: dict[str, float] = field(default_factory=dict)

    def add(self, other: Row) -> None:
        """Take over what another part of the trajectories was given."""
        self.scores |= other.scores
        self.thresholds |= other.thresholds

    def detector(self, name: str) -> ScoredDetector:
        """Return a detector that plays the row back."""
        played = {key: [TargetScores(*target) for target in targets] for key, targets in self.scores.items()}
        return ScoredDetector(name, played, self.thresholds)


def merged(parts: Iterable[Mapping[str, Row]]) -> dict[str, Row]:
    """Join the rows of several parts."""
    found: dict[str, Row] = {}
    for part in parts:
        for name, row in part.items():
            found.setdefault(name, Row()).add(row)
    return found


def score_rows(
    workshop: Workshop, test: Sequence[LabelledTrajectory], scores: Mapping[str, Sequence[Scores]], fit: Fit
) -> dict[str, dict[str, list[Scores]]]:
    """Return, per row, the calibrated distributions of the test trajectories."""
    floor = floor_logit(workshop.recipe)
    readable = workshop.targets(test, scores, lambda t, k, logit: logit > floor)
    if workshop.cache is not None:
        workshop.cache.add(readable)
    outputs = predict(fit.module, workshop.cache, readable)
    read = {(t.table, t.place): (t, rows) for t, rows in zip(readable, outputs, strict=True)}
    found: dict[str, dict[str, list[Scores]]] = {row: {} for row in ROWS}
    for item in test:
        key = item.trajectory.id
        for row in ROWS:
            found[row][key] = []
        for place, (logit, cells) in enumerate(scores.get(key, ())):
            plain = fit.relations.logit(logit)
            target, rows = read.get((key, place), (None, None))
            found["relations"][key].append((plain, cells))
            if target is None or rows is None:
                found["both"][key].append((plain, cells))
                found["text"][key].append((plain, np.full_like(cells, -np.log(cells.size))))
                continue
            joint = fit.fusion.join(rows, target.chosen, cells)
            found["both"][key].append((fit.fusion.log_odds(rows, logit), joint))
            alone, own = text_alone(rows, target.chosen, cells.shape[1])
            found["text"][key].append((fit.text.logit(alone), own))
    return found


def relations_alone(
    workshop: Workshop,
    train: Sequence[LabelledTrajectory],
    test: Sequence[LabelledTrajectory],
    scores: Mapping[str, Sequence[Scores]],
    place: Path,
) -> dict[str, dict[str, list[Scores]]]:
    """Calibrate relations on the training part, and return the one row that needs no encoder."""
    place.mkdir(parents=True, exist_ok=True)
    calibration = relations_calibration(workshop, train, scores)
    (place / CALIBRATION).write_text(json.dumps({"relations": vars(calibration)}, indent=1), encoding="utf-8")
    return {
        "relations": {
            item.trajectory.id: [
                (calibration.logit(logit), cells) for logit, cells in scores.get(item.trajectory.id, ())
            ]
            for item in test
        }
    }


def run_fold(
    workshop: Workshop,
    stack: Stack,
    fold: int,
    place: Path,
    rows: Sequence[str] = ROWS,
    fitted: Path | None = None,
) -> dict[str, Row]:
    """Train without one fold and score it, or read what an earlier run left.

    Everything is fitted and chosen on the other folds of `stack`.

    Parameters
    ----------
    place : Path
        Where the scores and the calibration are kept.
    fitted : Path, optional
        Where the encoder is kept, `place` by default: scores of changed test trajectories go by the
        encoder of the unchanged run.
    """
    files = {row: place / f"scores-{row}.npz" for row in rows}
    test = [item for item in workshop.items if stack.folds[item.trajectory.id] == fold]
    saved = place / CALIBRATION
    if not all(path.exists() for path in (*files.values(), saved)):
        scores = stack.stacked(fold)
        train = [item for item in workshop.items if stack.folds[item.trajectory.id] != fold]
        if "both" in rows:
            source = fitted or place
            fit = fit_encoder(workshop, train, scores, source)
            found = score_rows(workshop, test, scores, fit)
            place.mkdir(parents=True, exist_ok=True)
            saved.write_text(json.dumps(fit.to_dict(), indent=1), encoding="utf-8")
        else:
            found = relations_alone(workshop, train, test, scores, place)
        for row, path in files.items():
            save_scores(path, found[row])
    chosen = json.loads(saved.read_text(encoding="utf-8"))
    read: dict[str, Row] = {}
    for row, path in files.items():
        known = load_scores(path)
        names = [item.trajectory.id for item in test]
        read[row] = Row(
            {name: known.get(name, []) for name in names}, dict.fromkeys(names, float(chosen[row]["threshold"]))
        )
    return read
