"""Small trajectories, gold labels and detectors for the benchmark's tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from redclf.benchmark.data import GoldStep, LabelledTrajectory
from redclf.detectors.base import Detector, Prediction, Retrieval
from redclf.taxonomy import DUPLICATED
from redclf.trajectory import Message, ToolCall, Trajectory


def make_trajectory(steps: int = 4, name: str = "t", requestors: str = "") -> Trajectory:
    """A user message, then `steps` interactions [1, 2], [3, 4], ...; "u" makes one the user's."""
    messages = [Message("user", "hello")]
    for number in range(steps):
        by_user = requestors[number : number + 1] == "u"
        call = ToolCall("tool", {"n": number, "of": name}, f"c{number}", "user" if by_user else "assistant")
        messages.append(Message("user" if by_user else "assistant", "", (call,)))
        messages.append(Message("tool", f"result {number}", tool_call_id=f"c{number}"))
    return Trajectory(name, tuple(messages), task_id=name)


def make_item(
    gold: Sequence[GoldStep] = (),
    steps: int = 4,
    name: str = "t",
    disputed: Sequence[tuple[int, int]] = (),
    task: str | None = None,
    domain: str = "shop",
    requestors: str = "",
) -> LabelledTrajectory:
    return LabelledTrajectory(
        make_trajectory(steps, name, requestors),
        tuple(gold),
        frozenset(disputed),
        "automated_annotation",
        domain,
        (domain, task or name),
    )


def gold_step(step: tuple[int, int], category: str = DUPLICATED, evidence: Sequence[int] = (1, 2)) -> GoldStep:
    return GoldStep(step, category, tuple(evidence))


def record(
    step: Any = (3, 4), category: Any = DUPLICATED, evidence: Any = (1, 2), confidence: Any = 0.9
) -> dict[str, Any]:
    return {
        "redundant_step_idx": list(step) if isinstance(step, tuple) else step,
        "redundant_step_type": category,
        "evidence_step_idx": list(evidence) if isinstance(evidence, tuple) else evidence,
        "confidence": confidence,
    }


class Scripted(Detector):
    """Answers from tables by trajectory id."""

    name = "scripted"

    def __init__(
        self,
        predictions: Mapping[str, Sequence[Prediction]] | None = None,
        best: Mapping[str, Sequence[Prediction]] | None = None,
        classes: Mapping[tuple[int, int], str] | None = None,
        retrievals: Mapping[tuple[int, int], Retrieval] | None = None,
        scores: Mapping[tuple[int, int], float] | None = None,
        trained: frozenset[str] = frozenset(),
    ) -> None:
        self.predictions = predictions or {}
        self.best = best or {}
        self.classes = classes or {}
        self.retrievals = retrievals or {}
        self.scores = scores
        self.trained = trained

    def detect(
        self, trajectory: Trajectory, threshold: float | None = None, top_k: int | None = None
    ) -> list[Prediction]:
        found = list(self.predictions.get(trajectory.id, ()))
        if threshold is not None:
            found += self.best.get(trajectory.id, ())
        return found[:top_k]

    def classify(self, trajectory: Trajectory, step: Sequence[int], evidence: Sequence[int]) -> dict[str, float]:
        category = self.classes.get((step[0], step[1]))
        return {} if category is None else {category: 1.0}

    def retrieve(self, trajectory: Trajectory, step: Sequence[int]) -> Retrieval:
        return self.retrievals.get((step[0], step[1]), Retrieval("", (), 0.0))

    def redundancy(self, trajectory: Trajectory) -> dict[tuple[int, int], float] | None:
        return None if self.scores is None else dict(self.scores)

    def trained_on(self) -> frozenset[str]:
        return self.trained


class RawScripted(Scripted):
    """Gives malformed records, as an LLM does."""

    def __init__(self, records: Mapping[str, Sequence[object] | None]) -> None:
        super().__init__()
        self.records = records

    def detect_records(self, trajectory: Trajectory) -> Sequence[object] | None:
        return self.records[trajectory.id]


def prediction(
    step: tuple[int, int] = (3, 4),
    category: str = DUPLICATED,
    evidence: Sequence[int] = (1, 2),
    confidence: float = 0.9,
) -> Prediction:
    return Prediction(step, category, tuple(evidence), confidence, 0, redundancy=confidence)
