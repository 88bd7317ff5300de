"""Jev as a detector: a Choice for each question, several questions a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from redclf.benchmark.data import LabelledTrajectory, Step
from redclf.detectors.base import Prediction, Retrieval
from redclf.detectors.endpoint import REQUESTS, EndpointDetector, Wanted
from redclf.llm.config import JevConfig
from redclf.llm.jev import (
    NECESSARY,
    Question,
    category_question,
    evidence_question,
    pack,
    read_choice,
    read_label,
    state_of,
    step_question,
)
from redclf.llm.prompts import EVIDENCERET, STEPCLS, STEPDET
from redclf.llm.runner import Request
from redclf.taxonomy import CATEGORIES
from redclf.tokens import step_tokens
from redclf.trajectory import Trajectory

#: What a question is about: the trajectory, the step, what is asked, and the evidence or category that is given.
_About = tuple[str, Step, str, tuple[int, ...] | str]
_CATEGORY, _EVIDENCE, _STEP = "category", "evidence", "step"


class JevDetector(EndpointDetector):
    """Asks Jev: in StepCls a category, in EvidenceRet a category and an evidence, in StepDet every interaction.

    StepDet takes two rounds: one question an interaction, then the evidence of those that are found redundant.

    Parameters
    ----------
    config : JevConfig
    folder : Path, optional
        Of the request logs.
    """

    def __init__(self, config: JevConfig, folder: Path = REQUESTS) -> None:
        super().__init__(config, folder)
        self._config = config
        self.threshold = config.threshold
        #: In which request a question was packed, and under which name.
        self._packed: dict[_About, tuple[str, str]] = {}

    def rounds(self, items: Sequence[LabelledTrajectory], wanted: Wanted) -> Iterator[Iterable[Request]]:
        """Yield the questions that stand fast, then those on the evidence of what StepDet found."""
        yield self._first_round(items, wanted)
        yield self._second_round(items, wanted)

    def _first_round(self, items: Sequence[LabelledTrajectory], wanted: Wanted) -> Iterator[Request]:
        for item in items:
            trajectory = item.trajectory
            given: dict[_About, Question] = {}
            open_: dict[_About, Question] = {}
            for gold in item.gold:
                if wanted(STEPCLS, item, gold):
                    about = (trajectory.id, gold.step, _CATEGORY, gold.evidence)
                    given[about] = category_question(gold.step, gold.evidence)
                if wanted(EVIDENCERET, item, gold):
                    open_[trajectory.id, gold.step, _CATEGORY, ()] = category_question(gold.step)
                    open_[trajectory.id, gold.step, _EVIDENCE, ""] = evidence_question(trajectory, gold.step)
            yield from self._pack(STEPCLS, trajectory, given)
            yield from self._pack(EVIDENCERET, trajectory, open_)
            if wanted(STEPDET, item, None):
                yield from self._pack(STEPDET, trajectory, _step_questions(trajectory))

    def _second_round(self, items: Sequence[LabelledTrajectory], wanted: Wanted) -> Iterator[Request]:
        for item in items:
            if not wanted(STEPDET, item, None):
                continue
            scores = self._steps(item.trajectory)
            # Where nothing is above the threshold, an evaluation asks for the best candidate below it.
            chosen = _above(scores, self.threshold) or _above(scores, 0.0)[: 1 + len(item.disputed)]
            questions: dict[_About, Question] = {
                (item.id, step, _EVIDENCE, scores[step][1]): evidence_question(item.trajectory, step, scores[step][1])
                for step in chosen
            }
            yield from self._pack(STEPDET, item.trajectory, questions)

    def prompt(self, request: Request) -> Any:
        """Return state and questions."""
        return {"state": request.body["state"], "questions": request.body["questions"]}

    def detect(
        self, trajectory: Trajectory, threshold: float | None = None, top_k: int | None = None
    ) -> list[Prediction]:
        """Return the redundant steps, most confident first."""
        scores = self._steps(trajectory)
        found = []
        for step in _above(scores, self.threshold if threshold is None else threshold)[:top_k]:
            redundancy, category, share = scores[step]
            about = (trajectory.id, step, _EVIDENCE, category)
            answer = self._answer(STEPDET, trajectory, about, evidence_question(trajectory, step, category))
            if answer is None:
                continue
            interaction = trajectory.interaction_at(step)
            found.append(
                Prediction(
                    step=step,
                    category=category,
                    evidence=read_label(answer[0]),
                    confidence=min(1.0, share * answer[1][answer[0]]),
                    interaction=interaction.ordinal,
                    redundancy=redundancy,
                    tool=interaction.call.name,
                    tokens=step_tokens(trajectory, interaction),
                )
            )
        return sorted(found, key=lambda prediction: -prediction.confidence)

    def no_answer(self, trajectory: Trajectory) -> str | None:
        """Return why no interaction was judged; None where one was, or there is none."""
        if self._steps(trajectory) or not trajectory.assistant_interactions:
            return None
        return self._reason(next(self._packed[about][0] for about in _step_questions(trajectory)))

    def classify(self, trajectory: Trajectory, step: Sequence[int], evidence: Sequence[int]) -> dict[str, float]:
        """Return the probabilities of the categories; nothing for a failed reply."""
        about = (trajectory.id, _key(step), _CATEGORY, tuple(evidence))
        answer = self._answer(STEPCLS, trajectory, about, category_question(step, evidence))
        return {} if answer is None else answer[1]

    def category(self, trajectory: Trajectory, step: Sequence[int]) -> dict[str, float]:
        """Return the probabilities of the categories without the evidence; nothing for a failed reply."""
        about = (trajectory.id, _key(step), _CATEGORY, ())
        answer = self._answer(EVIDENCERET, trajectory, about, category_question(step))
        return {} if answer is None else answer[1]

    def retrieve(self, trajectory: Trajectory, step: Sequence[int]) -> Retrieval:
        """Return category and evidence; one that is never right for a failed reply."""
        category = self.category(trajectory, step)
        about = (trajectory.id, _key(step), _EVIDENCE, "")
        answer = self._answer(EVIDENCERET, trajectory, about, evidence_question(trajectory, step))
        if not category or answer is None:
            return Retrieval("", (), 0.0)
        best = max(category, key=lambda name: category[name])
        return Retrieval(best, read_label(answer[0]), category[best] * answer[1][answer[0]])

    def redundancy(self, trajectory: Trajectory) -> dict[Step, float]:
        """Return the probability of redundancy of every assistant interaction; 0 where the reply failed."""
        scores = self._steps(trajectory)
        return {
            item.step: scores[item.step][0] if item.step in scores else 0.0
            for item in trajectory.assistant_interactions
        }

    def _steps(self, trajectory: Trajectory) -> dict[Step, tuple[float, str, float]]:
        """Return P(redundant), the likeliest category and its probability, of the interactions with an answer."""
        found = {}
        for about, question in _step_questions(trajectory).items():
            answer = self._answer(STEPDET, trajectory, about, question)
            if answer is None:
                continue
            shares = {name: answer[1].get(name, 0.0) for name in CATEGORIES}
            best = max(shares, key=lambda name: shares[name])
            redundancy = min(1.0, sum(shares.values())) if NECESSARY not in answer[1] else 1 - answer[1][NECESSARY]
            found[about[1]] = (redundancy, best, shares[best])
        return found

    def _pack(self, task: str, trajectory: Trajectory, questions: dict[_About, Question]) -> Iterator[Request]:
        config = self._config
        names = iter(questions)
        for body in pack(
            config.model, state_of(trajectory), questions.values(), config.max_questions, config.max_bytes
        ):
            request = Request.of(config.base_url, task, trajectory.id, body)
            for name in body["questions"]:
                self._packed[next(names)] = (request.key, name)
            yield request

    def _answer(
        self, task: str, trajectory: Trajectory, about: _About, question: Question
    ) -> tuple[str, dict[str, float]] | None:
        if about not in self._packed:
            missing = {about: question}
            if about[2] == _STEP:
                missing = _step_questions(trajectory)
            self.sender.ask(list(self._pack(task, trajectory, missing)))
        key, name = self._packed[about]
        return self._note(key, self.sender.log.get(key), lambda reply: read_choice(reply, name, question))


def _key(step: Sequence[int]) -> Step:
    return (step[0], step[1])


def _step_questions(trajectory: Trajectory) -> dict[_About, Question]:
    return {
        (trajectory.id, item.step, _STEP, ""): step_question(item.step) for item in trajectory.assistant_interactions
    }


def _above(scores: dict[Step, tuple[float, str, float]], least: float) -> list[Step]:
    """Return the steps whose probability of redundancy is at least `least`, the likeliest first."""
    return sorted((step for step in scores if scores[step][0] >= least), key=lambda step: -scores[step][0])
