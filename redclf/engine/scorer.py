"""What is done with one trajectory, wherever it is done."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from redclf.detectors.base import Prediction
from redclf.detectors.registry import create_detector
from redclf.errors import RedclfError, TraceError
from redclf.redact import redact, redact_trajectory
from redclf.tokens import step_tokens
from redclf.trajectory import Trajectory

if TYPE_CHECKING:
    from rich.console import RenderableType

#: Draws a trajectory with its predictions for a terminal.
Render = Callable[[Trajectory, Sequence[Prediction]], "RenderableType"]
#: Source and id of a trajectory, which name it in a result file.
Key = tuple[str | None, str]
#: What an earlier run has scored: key to the steps that it found redundant.
Done = Mapping[Key, Sequence[tuple[int, int]]]


@dataclass(frozen=True)
class Counts:
    """Steps and tokens of a trajectory."""

    steps: int = 0
    redundant: int = 0
    tokens: int = 0
    redundant_tokens: int = 0

    @classmethod
    def of(cls, trajectory: Trajectory, redundant: Iterable[tuple[int, int]]) -> Counts:
        """Count a trajectory's steps, given those that are redundant."""
        steps = trajectory.assistant_interactions
        found = set(redundant)
        return cls(
            len(steps),
            len(found),
            sum(step_tokens(trajectory, item) for item in steps),
            sum(step_tokens(trajectory, trajectory.interaction_at(step)) for step in found),
        )


@dataclass(frozen=True)
class Outcome:
    """What became of one trajectory.

    Parameters
    ----------
    where : str
        Its source, or its id.
    record : dict or None
        Its line of the JSON output; None where it could not be scored, or was by an earlier run.
    error : RedclfError or None
        Why it could not.
    warnings : tuple of str
    counts : Counts
    drawing : rich renderable or None
    """

    where: str
    record: dict[str, Any] | None = None
    error: RedclfError | None = None
    warnings: tuple[str, ...] = ()
    counts: Counts = Counts()
    drawing: Any = None


@dataclass(frozen=True)
class ScorerSettings:
    """What a process needs to know to score; can be pickled.

    Parameters
    ----------
    detector : str
        As `redclf.detectors.registry.create_detector` takes it.
    model : str or None
    threshold : float or None
    top_k : int or None
    threads : int or None
        Of the encoder.
    render : callable or None
        A function of a module; what it returns goes into `Outcome.drawing`.
    redact : bool
        Whether secrets are masked in all that comes out. The detector sees what is there.
    """

    detector: str
    model: str | None = None
    threshold: float | None = None
    top_k: int | None = None
    threads: int | None = None
    render: Render | None = None
    redact: bool = False


class Scorer:
    """A loaded detector that turns trajectories into outcomes.

    Parameters
    ----------
    settings : ScorerSettings

    Raises
    ------
    RedclfError
        If there is no such detector, or its model can't be loaded.
    """

    def __init__(self, settings: ScorerSettings) -> None:
        self.settings = settings
        self._detector = create_detector(settings.detector, settings.model, threads=settings.threads)

    def __call__(self, trajectory: Trajectory) -> Outcome:
        """Score one trajectory; what goes wrong is in the outcome."""
        where = trajectory.source or trajectory.id
        try:
            return self._score(trajectory, where)
        except RedclfError as error:
            return Outcome(where, error=error)
        except Exception as error:
            if os.environ.get("REDCLF_DEBUG"):
                raise
            text = f"{where}: unexpected {type(error).__name__}: {error} (REDCLF_DEBUG=1 shows where)"
            return Outcome(where, error=RedclfError(text))

    def _score(self, trajectory: Trajectory, where: str) -> Outcome:
        settings = self.settings
        predictions = self._detector.detect(trajectory, settings.threshold, settings.top_k)
        reason = None if predictions else self._detector.no_answer(trajectory)
        if reason is not None:
            raise TraceError(f"no answer of {self._detector.name}: {reason}", where)
        warnings = pairing_warnings(trajectory)
        counts = Counts.of(trajectory, [prediction.step for prediction in predictions])
        if settings.redact:
            where, trajectory = redact(where), redact_trajectory(trajectory)
            predictions = [replace(p, reason=redact(p.reason), tool=redact(p.tool)) for p in predictions]
        return Outcome(
            where,
            to_record(trajectory, predictions, warnings),
            warnings=tuple(warnings),
            counts=counts,
            drawing=settings.render(trajectory, predictions) if settings.render else None,
        )


def scored_before(trajectory: Trajectory, redundant: Iterable[tuple[int, int]]) -> Outcome:
    """Return the outcome of a trajectory that an earlier run has scored: what is left is to count it."""
    return Outcome(trajectory.source or trajectory.id, counts=Counts.of(trajectory, redundant))


def pairing_warnings(trajectory: Trajectory) -> list[str]:
    """Return what is odd about a trajectory: calls and results that have no partner."""
    unanswered, orphans = trajectory.pairing.unanswered_calls, trajectory.pairing.orphan_results
    warnings = []
    if unanswered:
        warnings.append(f"{_count(len(unanswered), 'call')} without a result, not scored")
    if orphans:
        warnings.append(f"{_count(len(orphans), 'result')} without a call, not scored")
    return warnings


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"


def to_record(trajectory: Trajectory, predictions: Sequence[Prediction], warnings: Sequence[str]) -> dict[str, Any]:
    """Return one line of the JSON output."""
    return {
        "trajectory_id": trajectory.id,
        "source": trajectory.source,
        "failed": trajectory.failed,
        "warnings": list(warnings),
        "predictions": [_with_call_id(trajectory, prediction) for prediction in predictions],
    }


def _with_call_id(trajectory: Trajectory, prediction: Prediction) -> dict[str, Any]:
    """Return a prediction's record with the id that the call has in its own format, where it has one."""
    call_id = trajectory.interaction_at(prediction.step).call.id
    return prediction.to_dict() | ({} if call_id is None else {"call_id": call_id})


def key_of(trajectory: Trajectory) -> Key:
    """Return what names a trajectory in a result file."""
    return trajectory.source, trajectory.id
