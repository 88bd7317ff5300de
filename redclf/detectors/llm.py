"""An LLM as a judge: one prompt for each task, over any OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from redclf.benchmark.data import LabelledTrajectory
from redclf.benchmark.results import read_prediction
from redclf.detectors.base import Prediction, Retrieval
from redclf.detectors.endpoint import REQUESTS, EndpointDetector, Wanted
from redclf.llm.config import FEW_SHOT, NO_POLICY, ORACLE_PLAN, ConfigError, LLMConfig
from redclf.llm.context import ExemplarPool, load_plans
from redclf.llm.prompts import EVIDENCERET, STEPCLS, STEPDET, Material, messages
from redclf.llm.replies import parse_records, read_category, read_retrieval
from redclf.llm.runner import Request
from redclf.trajectory import Trajectory


class LLMDetector(EndpointDetector):
    """Asks an LLM once for each labelled step and task, and once for each trajectory in StepDet.

    Parameters
    ----------
    config : LLMConfig
    data : Path, optional
        Benchmark folder of the judged trajectories: few-shot exemplars come from its other folds, and expected
        actions from its tasks.
    folder : Path, optional
        Of the request logs.
    """

    def __init__(self, config: LLMConfig, data: Path | None = None, folder: Path = REQUESTS) -> None:
        super().__init__(config, folder)
        self._config = config
        self._exemplars: ExemplarPool | None = None
        self._plans: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        if config.setting == FEW_SHOT:
            root = Path(config.path).parent / config.exemplar_data if config.exemplar_data else data
            if root is None:
                raise ConfigError(f"{config.path}: the setting {FEW_SHOT} expects exemplar_data, found none")
            self._exemplars = ExemplarPool.load(root, own_data=not config.exemplar_data)
        elif config.setting == ORACLE_PLAN:
            if data is None:
                raise ConfigError(f"{config.path}: the setting {ORACLE_PLAN} expects a benchmark's tasks")
            self._plans = load_plans(data)

    def rounds(self, items: Sequence[LabelledTrajectory], wanted: Wanted) -> Iterator[Iterable[Request]]:
        """Yield all requests at once."""
        yield self._requests(items, wanted)

    def _requests(self, items: Sequence[LabelledTrajectory], wanted: Wanted) -> Iterator[Request]:
        for item in items:
            # Requests about one trajectory follow each other, for the endpoint's cache.
            if wanted(STEPDET, item, None):
                yield self._request(STEPDET, item.trajectory)
            for gold in item.gold:
                if wanted(STEPCLS, item, gold):
                    yield self._request(STEPCLS, item.trajectory, gold.step, gold.evidence)
                if wanted(EVIDENCERET, item, gold):
                    yield self._request(EVIDENCERET, item.trajectory, gold.step)

    def prompt(self, request: Request) -> Any:
        """Return the chat messages."""
        return request.body["messages"]

    def detect_records(self, trajectory: Trajectory) -> list[Any] | None:
        """Return the records as they came; None for a failed reply."""
        return self._read(self._request(STEPDET, trajectory), parse_records)

    def detect(
        self, trajectory: Trajectory, threshold: float | None = None, top_k: int | None = None
    ) -> list[Prediction]:
        """Return the well-formed predictions, most confident first; there is nothing below the judge's own list."""
        read = [read_prediction(value, trajectory) for value in self.detect_records(trajectory) or []]
        found: dict[tuple[int, int], Prediction] = {}
        for prediction in sorted((p for p in read if p is not None), key=lambda p: -p.confidence):
            if threshold is None or prediction.confidence >= threshold:
                found.setdefault(prediction.step, prediction)
        return list(found.values())[:top_k]

    def no_answer(self, trajectory: Trajectory) -> str | None:
        """Return why there are no records; None where there are, or an empty list of them."""
        if self.detect_records(trajectory) is not None:
            return None
        return self._reason(self._request(STEPDET, trajectory).key)

    def classify(self, trajectory: Trajectory, step: Sequence[int], evidence: Sequence[int]) -> dict[str, float]:
        """Return all probability on the category that the judge names; nothing for a failed reply."""

        def read(reply: str) -> str | None:
            records = parse_records(reply)
            return None if records is None else read_category(records, step)

        category = self._read(self._request(STEPCLS, trajectory, step, evidence), read)
        return {} if category is None else {category: 1.0}

    def retrieve(self, trajectory: Trajectory, step: Sequence[int]) -> Retrieval:
        """Return category and evidence that the judge names; one that is never right for a failed reply."""

        def read(reply: str) -> Retrieval | None:
            records = parse_records(reply)
            return None if records is None else read_retrieval(records, trajectory, step)

        return self._read(self._request(EVIDENCERET, trajectory, step), read) or Retrieval("", (), 0.0)

    def category(self, trajectory: Trajectory, step: Sequence[int]) -> dict[str, float]:
        """Return the category of `retrieve`: it is the judge's word on the step without the evidence."""
        found = self.retrieve(trajectory, step).category
        return {found: 1.0} if found else {}

    def _request(
        self,
        task: str,
        trajectory: Trajectory,
        step: Sequence[int] | None = None,
        evidence: Sequence[int] | None = None,
    ) -> Request:
        config = self._config
        body: dict[str, Any] = {
            "model": config.model,
            "messages": messages(task, trajectory, self._material(trajectory), step, evidence),
            config.output_field: config.max_output_tokens,
        }
        if config.temperature is not None:
            body["temperature"] = config.temperature
        return Request.of(config.base_url, task, trajectory.id, body | dict(config.extra))

    def _material(self, trajectory: Trajectory) -> Material:
        if self._config.setting == NO_POLICY:
            return Material(policy=False)
        if self._exemplars is not None:
            return Material(examples=self._exemplars.pick(trajectory, self._config.exemplars))
        place = (trajectory.subset or "", trajectory.domain or "", trajectory.task_id or "")
        return Material(plan=self._plans.get(place))
