"""What decides how a step's results are shortened: our detector and rules, and the baselines to compare with."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from redclf.detectors.base import Detector
from redclf.errors import RedclfError
from redclf.pruning import placeholder
from redclf.reduce.content import Shown, shorten
from redclf.reduce.steps import Round
from redclf.trajectory import Trajectory

#: Characters that a token stands for, as `truncate` counts.
_CHARACTERS = 4


class Reflector(Protocol):
    """Shortens the results of one step."""

    def reflect(self, trajectory: Trajectory, target: Round, window: range) -> Mapping[int, str]:
        """Return new contents of the target's results.

        Parameters
        ----------
        trajectory : Trajectory
            All that the agent has in its context.
        target : Round
        window : range
            Indices of the messages that a reflector which pays for what it reads should keep to.

        Returns
        -------
        mapping
            Message index to content; what is not in it stays.
        """


class NoReflector:
    """Changes nothing."""

    def reflect(self, trajectory: Trajectory, target: Round, window: range) -> Mapping[int, str]:
        """Return nothing."""
        return {}


class ClassifierReflector:
    """Our detector and rules on content; no LLM.

    A result of a redundant step becomes a line that points to its evidence, where that is in the context; every other
    one is shortened by the rules of `redclf.reduce.content`.

    Parameters
    ----------
    detector : Detector, optional
        The shipped model by default.
    threshold : float, optional
        Least probability of redundancy; the detector's own by default.
    """

    def __init__(self, detector: Detector | None = None, threshold: float | None = None) -> None:
        if detector is None:
            from redclf.detectors.relations import RelationsDetector

            detector = RelationsDetector()
        self.detector = detector
        self.threshold = threshold

    def reflect(self, trajectory: Trajectory, target: Round, window: range) -> Mapping[int, str]:
        """Return pointers for redundant steps, and shortened texts for the others."""
        found: dict[int, str] = {}
        redundant = {p.step: p for p in self.detector.detect(trajectory, self.threshold) if p.step in target.steps}
        shown = Shown({index: trajectory.messages[index].content for index in _before(trajectory, target)})
        calls = {item.step: item.call for item in trajectory.assistant_interactions if item.call_index == target.call}
        for step in target.steps:
            prediction = redundant.get(step)
            if prediction is not None and prediction.evidence != (-1,):
                found[step[1]] = placeholder(prediction.category, prediction.evidence)
            else:
                texts = list(_texts(calls[step].arguments))
                found[step[1]] = shorten(trajectory.messages[step[1]].content, shown, texts)
        return found


def _before(trajectory: Trajectory, target: Round) -> Iterator[int]:
    return (index for index in range(target.call) if trajectory.messages[index].role in ("tool", "user"))


def _texts(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


class DeleteReflector:
    """Deletes the results."""

    def reflect(self, trajectory: Trajectory, target: Round, window: range) -> Mapping[int, str]:
        """Return a note in place of each result."""
        return dict.fromkeys(target.results, "[result removed]")


class RandomReflector:
    """Deletes lines at random.

    Parameters
    ----------
    share : float
        Of the lines that go.
    seed : int
    """

    def __init__(self, share: float = 0.5, seed: int = 0) -> None:
        self.share = share
        self.seed = seed

    def reflect(self, trajectory: Trajectory, target: Round, window: range) -> Mapping[int, str]:
        """Return the results with some of their lines; the same for the same text."""
        found = {}
        for index in target.results:
            content = trajectory.messages[index].content
            rng = random.Random(f"{self.seed}:{index}:{content}")
            found[index] = "\n".join(line for line in content.split("\n") if rng.random() >= self.share)
        return found


class TruncateReflector:
    """Keeps the beginning and the end.

    Parameters
    ----------
    tokens : int
        Kept of each result, half at each end.
    """

    def __init__(self, tokens: int = 200) -> None:
        self.tokens = tokens

    def reflect(self, trajectory: Trajectory, target: Round, window: range) -> Mapping[int, str]:
        """Return the results with their middle cut out."""
        half = self.tokens * _CHARACTERS // 2
        found = {}
        for index in target.results:
            content = trajectory.messages[index].content
            if len(content) > 2 * half:
                cut = len(content) - 2 * half
                end = content[len(content) - half :] if half else ""
                found[index] = f"{content[:half]}\n[{cut:,} characters removed]\n{end}"
        return found


#: Names, and one line each.
REFLECTORS: dict[str, str] = {
    "classifier": "redclf's detector and its rules on content (default)",
    "none": "changes nothing",
    "delete": "deletes the results of steps that are a steps old",
    "random": "deletes half of their lines at random",
    "truncate": "keeps the beginning and the end of each",
}


def create_reflector(name: str) -> Reflector:
    """Return a reflector by its name.

    Raises
    ------
    RedclfError
        If there is none of this name, or its model can't be loaded.
    """
    if name == "classifier":
        return ClassifierReflector()
    made: dict[str, type] = {
        "none": NoReflector, "delete": DeleteReflector, "random": RandomReflector, "truncate": TruncateReflector,
    }  # fmt: skip
    if name not in made:
        raise RedclfError(f"expected a reflector among {', '.join(REFLECTORS)}, got {name!r}")
    reflector: Reflector = made[name]()
    return reflector
