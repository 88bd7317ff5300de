"""The protocol of all detectors, and the prediction that they return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redclf.trajectory import Trajectory

if TYPE_CHECKING:
    from redclf.benchmark.data import LabelledTrajectory


@dataclass(frozen=True, slots=True)
class Prediction:
    """One redundant step.

    Parameters
    ----------
    step : tuple of int
        `(call_index, result_index)` of the redundant interaction.
    category : str
        One of `redclf.taxonomy.CATEGORIES`.
    evidence : tuple of int
        `(c, r)`, `(c1, r1, c2, r2, ...)`, `(i,)` or `(-1,)`.
    confidence : float
        Probability in [0, 1]: StepDet ranks by it.
    interaction : int
        The step's ordinal among the trajectory's interactions, from 0.
    redundancy : float
        Calibrated probability that the step is redundant, whatever its category.
    reason : str
        One sentence: what decided it.
    tool : str
        Name of the tool called.
    tokens : int
        Tokens of the step (call and result), counted or estimated.
    """

    step: tuple[int, int]
    category: str
    evidence: tuple[int, ...]
    confidence: float
    interaction: int
    redundancy: float = 0.0
    reason: str = ""
    tool: str = ""
    tokens: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the record with the official field names."""
        return {
            "redundant_step_idx": list(self.step),
            "redundant_step_type": self.category,
            "evidence_step_idx": list(self.evidence),
            "confidence": round(self.confidence, 6),
            "redundancy": round(self.redundancy, 6),
            "interaction": self.interaction,
            "tool": self.tool,
            "tokens": self.tokens,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Category and evidence of a step that is known to be redundant."""

    category: str
    evidence: tuple[int, ...]
    confidence: float


class Detector(ABC):
    """Finds redundant steps. Every detector implements these three methods."""

    #: Name in tables and on the command line.
    name: str = "detector"

    def prepare(  # noqa: B027
        self, items: Sequence[LabelledTrajectory], progress: Callable[[int], None] | None = None
    ) -> None:
        """Get ready for an evaluation; a detector behind an API asks all that it will be asked, several at a time.

        Parameters
        ----------
        items : sequence of LabelledTrajectory
        progress : callable, optional
            Called with the number of requests that are done.
        """

    @abstractmethod
    def detect(
        self, trajectory: Trajectory, threshold: float | None = None, top_k: int | None = None
    ) -> list[Prediction]:
        """Return the redundant steps, most confident first.

        Parameters
        ----------
        trajectory : Trajectory
        threshold : float, optional
            Least probability of redundancy, in [0, 1]; the model's own by default.
        top_k : int, optional
            Return this many at most.
        """

    @abstractmethod
    def classify(self, trajectory: Trajectory, step: Sequence[int], evidence: Sequence[int]) -> dict[str, float]:
        """Return the distribution over categories of a redundant step, given its evidence.

        Returns
        -------
        dict
            Category to probability; they sum to 1.
        """

    @abstractmethod
    def retrieve(self, trajectory: Trajectory, step: Sequence[int]) -> Retrieval:
        """Return category and evidence of a step that is known to be redundant."""

    def category(self, trajectory: Trajectory, step: Sequence[int]) -> dict[str, float]:
        """Return the distribution over categories of a redundant step, evidence unknown."""
        return {self.retrieve(trajectory, step).category: 1.0}

    def redundancy(self, trajectory: Trajectory) -> dict[tuple[int, int], float] | None:
        """Return the probability of redundancy of every assistant interaction.

        None where the detector has no such scores; average precision then uses its predictions.
        """
        return None

    def no_answer(self, trajectory: Trajectory) -> str | None:
        """Return why `detect` has no answer about a trajectory; None where it has one, be it that it finds nothing."""
        return None

    def trained_on(self) -> frozenset[str]:
        """Return the content hashes of the trajectories that the detector was trained on."""
        return frozenset()
