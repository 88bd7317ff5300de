"""For tests of agents: a run must not waste steps."""

from __future__ import annotations

from collections.abc import Collection

from redclf.detectors.base import Detector
from redclf.detectors.registry import create_detector
from redclf.taxonomy import CATEGORIES
from redclf.tokens import arguments_text
from redclf.trajectory import Trajectory


def assert_efficient(
    trajectory: Trajectory,
    max_share: float = 0.0,
    max_count: int | None = None,
    categories: Collection[str] = CATEGORIES,
    detector: Detector | None = None,
    threshold: float | None = None,
) -> None:
    """Fail a test where a run has too many redundant steps, and name them.

    Parameters
    ----------
    trajectory : Trajectory
    max_share : float
        Of the steps, at most; with `max_count` whichever allows more.
    max_count : int, optional
    categories : collection of str
        Which categories count.
    detector : Detector, optional
        The shipped model by default.
    threshold : float, optional
        Least probability of redundancy; the detector's own by default.

    Raises
    ------
    AssertionError

    Examples
    --------
    >>> from redclf import load
    >>> from redclf.testing import assert_efficient
    >>> assert_efficient(load("run.json")[0], max_count=1)  # doctest: +SKIP
    """
    judge = create_detector() if detector is None else detector
    found = [p for p in judge.detect(trajectory, threshold) if p.category in categories]
    steps = len(trajectory.assistant_interactions)
    allowed = max(int(max_share * steps + 1e-9), max_count or 0)
    if len(found) <= allowed:
        return
    lines = [f"{len(found)} of {steps} steps are redundant, at most {allowed} allowed:"]
    for prediction in sorted(found, key=lambda prediction: prediction.step):
        call = trajectory.interaction_at(prediction.step).call
        arguments = arguments_text(call.arguments)
        shown = arguments if len(arguments) <= 80 else f"{arguments[:79]}…"
        name = prediction.category.removesuffix(" Step")
        lines.append(f"  {list(prediction.step)} {call.name}({shown}): {name}, evidence {list(prediction.evidence)}")
        if prediction.reason:
            lines.append(f"    {prediction.reason}")
    raise AssertionError("\n".join(lines))
