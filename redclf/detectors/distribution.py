"""One distribution a target: {necessary} and {category x evidence candidate}.

Every detector that scores cells answers all three tasks from it, so that step, category and evidence
cannot contradict each other.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from redclf.detectors.base import Detector, Prediction, Retrieval
from redclf.relations.candidates import Candidate
from redclf.relations.features import Relations
from redclf.relations.views import TrajectoryView
from redclf.taxonomy import CATEGORIES
from redclf.tokens import step_tokens
from redclf.trajectory import Trajectory

FloatArray = npt.NDArray[np.floating[Any]]

#: Weight of the model of the category given the candidate, against Bayes' rule on the other two.
GIVEN_WEIGHT = 0.75


def log_softmax(scores: FloatArray, axis: int | None = None) -> FloatArray:
    """Return log-probabilities over `axis`, or over the whole array."""
    shifted = scores - scores.max(axis=axis, keepdims=True)
    normalised: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
    return normalised


def combine(category: FloatArray, evidence: FloatArray, given: FloatArray) -> FloatArray:
    """Return log P(category, candidate | target is redundant).

    P(candidate) comes from P(category) and P(candidate | category); the category of each candidate
    from a product of experts: the model that was given it, and Bayes' rule on the other two.

    Parameters
    ----------
    category : ndarray of shape (4,)
        Logits of the categories.
    evidence : ndarray of shape (4, n_candidates)
        Logits of the candidates, for each category.
    given : ndarray of shape (4, n_candidates)
        Logits of the categories, for each candidate.

    Returns
    -------
    ndarray of shape (4, n_candidates)
    """
    joint = log_softmax(category)[:, None] + log_softmax(evidence, axis=1)
    candidate = np.logaddexp.reduce(joint, axis=0)
    bayes = np.maximum(joint - candidate, -12.0)
    experts = GIVEN_WEIGHT * log_softmax(given, axis=0) + (1 - GIVEN_WEIGHT) * bayes
    return log_softmax(candidate + log_softmax(experts, axis=0))


class TargetScores:
    """The distribution of one target.

    Parameters
    ----------
    logit : float
        Calibrated log-odds of redundancy.
    cells : ndarray of shape (4, n_candidates), or a function that returns it
        Log-probabilities of (category, candidate), given that the target is redundant. A function is
        called when they are first asked for: most steps are necessary, and nothing more of them is.
    """

    __slots__ = ("_cells", "logit")

    def __init__(self, logit: float, cells: FloatArray | Callable[[], FloatArray]) -> None:
        self.logit = logit
        self._cells = cells

    @property
    def cells(self) -> FloatArray:
        """Log-probabilities of (category, candidate), shape (4, n_candidates)."""
        if not isinstance(self._cells, np.ndarray):
            self._cells = self._cells()
        return self._cells

    @property
    def redundancy(self) -> float:
        """Probability that the step is redundant."""
        return float(1.0 / (1.0 + np.exp(-self.logit)))

    @property
    def best(self) -> tuple[int, int, float]:
        """Category, candidate and probability of the best cell."""
        category, place = np.unravel_index(int(self.cells.argmax()), self.cells.shape)
        return int(category), int(place), float(np.exp(self.cells[category, place]))


@dataclass(frozen=True, slots=True)
class TrajectoryScores:
    """The relations of a trajectory and the distribution of each of its targets."""

    relations: Relations
    targets: list[TargetScores]


class DistributionDetector(Detector):
    """Answers all three tasks from one distribution a target.

    Subclasses say how a trajectory is scored, and set `threshold`.
    """

    #: Least probability of redundancy that `detect` reports by default.
    threshold: float = 0.5

    def __init__(self) -> None:
        self._last: tuple[Trajectory, TrajectoryScores] | None = None

    @abstractmethod
    def score(self, relations: Relations) -> list[TargetScores]:
        """Return the distribution of every target of a trajectory, in the order of its targets."""

    def scores(self, trajectory: Trajectory) -> TrajectoryScores:
        """Return relations and distributions; the last trajectory's are kept."""
        if self._last is not None and self._last[0] is trajectory:
            return self._last[1]
        relations = Relations(TrajectoryView(trajectory))
        found = TrajectoryScores(relations, self.score(relations))
        self._last = (trajectory, found)
        return found

    def forget(self) -> None:
        """Let go of the last trajectory's scores."""
        self._last = None

    def _target(self, trajectory: Trajectory, step: Sequence[int]) -> tuple[TrajectoryScores, int]:
        interaction = trajectory.interaction_at(step)
        found = self.scores(trajectory)
        if interaction.requestor != "assistant":
            raise ValueError(f"trajectory {trajectory.id}: step {list(step)} is the user's, expected the assistant's")
        return found, found.relations.targets.index(interaction.ordinal)

    def detect(
        self, trajectory: Trajectory, threshold: float | None = None, top_k: int | None = None
    ) -> list[Prediction]:
        """Return the redundant steps, most confident first."""
        least = self.threshold if threshold is None else threshold
        found = self.scores(trajectory)
        ranked: list[tuple[float, int, int, int, TargetScores]] = []
        for place, target in enumerate(found.targets):
            if target.redundancy >= least:
                category, candidate, share = target.best
                ranked.append((-target.redundancy * share, place, category, candidate, target))
        ranked.sort(key=lambda item: item[:2])
        return [
            self._prediction(trajectory, found.relations, place, category, candidate, -confidence, target.redundancy)
            for confidence, place, category, candidate, target in ranked[:top_k]
        ]

    def _prediction(
        self,
        trajectory: Trajectory,
        relations: Relations,
        place: int,
        category: int,
        candidate: int,
        confidence: float,
        redundancy: float,
    ) -> Prediction:
        from redclf.reasons import explain

        step = relations.view.steps[relations.targets[place]]
        chosen = relations.candidates[place][candidate]
        interaction = trajectory.interactions[step.ordinal]
        return Prediction(
            step=interaction.step,
            category=CATEGORIES[category],
            evidence=chosen.evidence,
            confidence=confidence,
            interaction=step.ordinal,
            redundancy=redundancy,
            reason=explain(relations, step, CATEGORIES[category], chosen),
            tool=step.tool,
            tokens=step_tokens(trajectory, interaction),
        )

    def category(self, trajectory: Trajectory, step: Sequence[int]) -> dict[str, float]:
        """Return the distribution over categories of a redundant step, evidence unknown."""
        found, place = self._target(trajectory, step)
        return _named(np.logaddexp.reduce(found.targets[place].cells, axis=1))

    def classify(self, trajectory: Trajectory, step: Sequence[int], evidence: Sequence[int]) -> dict[str, float]:
        """Return the distribution over categories of a redundant step, given its evidence."""
        found, place = self._target(trajectory, step)
        candidates = found.relations.candidates[place]
        wanted = _key(evidence)
        at = next((i for i, c in enumerate(candidates) if _key(c.evidence) == wanted), None)
        if at is not None:
            return _named(log_softmax(found.targets[place].cells[:, at]))
        extra = as_candidate(trajectory, evidence)
        if extra is None:
            return self.category(trajectory, step)
        wider = Relations(found.relations.view, extra={found.relations.targets[place]: extra})
        return _named(log_softmax(self.score(wider)[place].cells[:, -1]))

    def retrieve(self, trajectory: Trajectory, step: Sequence[int]) -> Retrieval:
        """Return category and evidence of a step that is known to be redundant."""
        found, place = self._target(trajectory, step)
        category, candidate, share = found.targets[place].best
        return Retrieval(CATEGORIES[category], found.relations.candidates[place][candidate].evidence, share)

    def redundancy(self, trajectory: Trajectory) -> dict[tuple[int, int], float]:
        """Return the probability of redundancy of every assistant interaction."""
        found = self.scores(trajectory)
        steps = found.relations.view.steps
        return {
            (steps[ordinal].call_index, steps[ordinal].result_index): target.redundancy
            for ordinal, target in zip(found.relations.targets, found.targets, strict=True)
        }


def as_candidate(trajectory: Trajectory, evidence: Sequence[int]) -> Candidate | None:
    """Return evidence that was given as a candidate; None if it names no step and no message."""
    indices = tuple(int(index) for index in evidence)
    if indices == (-1,):
        return Candidate("policy", (), (-1,))
    if len(indices) == 1 and 0 <= indices[0] < len(trajectory.messages):
        return Candidate("message", indices, indices)
    by_step = {item.step: item.ordinal for item in trajectory.interactions}
    members = [by_step.get(pair) for pair in zip(indices[::2], indices[1::2], strict=False)]
    if not members or len(indices) % 2 or any(member is None for member in members):
        return None
    return Candidate("step" if len(members) == 1 else "joint", tuple(m for m in members if m is not None), indices)


def _key(evidence: Sequence[int]) -> tuple[object, ...]:
    indices = tuple(int(index) for index in evidence)
    return indices if len(indices) < 2 else tuple(sorted(zip(indices[::2], indices[1::2], strict=False)))


def _named(log_probabilities: FloatArray) -> dict[str, float]:
    shares = np.exp(log_softmax(np.asarray(log_probabilities)))
    return {category: float(share) for category, share in zip(CATEGORIES, shares, strict=True)}
