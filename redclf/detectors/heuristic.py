"""The benchmark's own first round as a detector: identical steps, and retried failures."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

from redclf.detectors.base import Detector, Prediction, Retrieval
from redclf.failure import failure_kind
from redclf.taxonomy import ABNORMAL, CATEGORIES, DUPLICATED, EXPLORATORY, INCORRECT
from redclf.tokens import step_tokens
from redclf.trajectory import Interaction, Trajectory

# A retried failure is the safer rule of the two: a repeat may be a check after a change.
_CONFIDENCE = {ABNORMAL: 0.95, DUPLICATED: 0.9}
_FALLBACK = 0.1


class HeuristicDetector(Detector):
    """Two rules, no learning.

    - A step whose result reports an error, and whose call (same tool and arguments) succeeds later,
      is Abnormal; evidence is the first such retry.
    - A step with the call and the result of an earlier step is Duplicated; evidence is the
      earliest such step.

    Where both hold, Abnormal goes first, as in the benchmark's order of precedence. `classify` and
    `retrieve`, which must answer for any redundant step, fall back on the order of step and
    evidence where no rule holds.
    """

    name = "heuristic"

    def detect(
        self, trajectory: Trajectory, threshold: float | None = None, top_k: int | None = None
    ) -> list[Prediction]:
        """Return the steps that a rule names, most confident first.

        There is nothing below the rules: a threshold of 0 brings no further candidates.
        """
        found = []
        for step, (category, evidence) in _rules(trajectory).items():
            confidence = _CONFIDENCE[category]
            if threshold is not None and confidence < threshold:
                continue
            item = trajectory.interaction_at(step)
            found.append(
                Prediction(
                    step=step,
                    category=category,
                    evidence=evidence.step,
                    confidence=confidence,
                    interaction=item.ordinal,
                    redundancy=confidence,
                    reason=_reason(category, evidence),
                    tool=item.call.name,
                    tokens=step_tokens(trajectory, item),
                )
            )
        found.sort(key=lambda prediction: -prediction.confidence)
        return found[:top_k]

    def classify(self, trajectory: Trajectory, step: Sequence[int], evidence: Sequence[int]) -> dict[str, float]:
        """Return all probability on the category of the rule that holds.

        Without one, later evidence speaks for Exploratory, earlier evidence or `[-1]` for
        Incorrect, at probability 0.7.
        """
        item = trajectory.interaction_at(step)
        rule = _rules(trajectory).get(item.step)
        if rule is not None and tuple(evidence) == rule[1].step:
            return {category: float(category == rule[0]) for category in CATEGORIES}
        guess = EXPLORATORY if evidence[0] > item.call_index else INCORRECT
        return {category: 0.7 if category == guess else 0.1 for category in CATEGORIES}

    def retrieve(self, trajectory: Trajectory, step: Sequence[int]) -> Retrieval:
        """Return the rule's answer; without one, Exploratory with the assistant's next step.

        The last step has no next one: Incorrect with `[-1]`.
        """
        item = trajectory.interaction_at(step)
        rule = _rules(trajectory).get(item.step)
        if rule is not None:
            return Retrieval(rule[0], rule[1].step, _CONFIDENCE[rule[0]])
        later = (other for other in trajectory.assistant_interactions if other.call_index > item.call_index)
        following = next(later, None)
        if following is None:
            return Retrieval(INCORRECT, (-1,), _FALLBACK)
        return Retrieval(EXPLORATORY, following.step, _FALLBACK)


def _rules(trajectory: Trajectory) -> dict[tuple[int, int], tuple[str, Interaction]]:
    """Return category and evidence of every step that a rule names, in the order of the steps."""
    same_call: defaultdict[tuple[str, str], list[Interaction]] = defaultdict(list)
    for item in trajectory.assistant_interactions:
        arguments = json.dumps(item.call.arguments, sort_keys=True, default=str)
        same_call[item.call.name, arguments].append(item)
    found: dict[tuple[int, int], tuple[str, Interaction]] = {}
    for items in same_call.values():
        if len(items) < 2:
            continue
        results = [trajectory.messages[item.result_index].content for item in items]
        failed = [failure_kind(result) is not None for result in results]
        retry: Interaction | None = None
        retries: list[Interaction | None] = []
        for item, failure in zip(reversed(items), reversed(failed), strict=True):
            retries.append(retry)
            retry = retry if failure else item
        retries.reverse()
        first: dict[str, Interaction] = {}
        for place, item in enumerate(items):
            earliest = first.setdefault(results[place], item)
            later = retries[place]
            # Of two calls in one message neither is the retry of the other.
            if failed[place] and later is not None and later.call_index > item.call_index:
                found[item.step] = (ABNORMAL, later)
            elif earliest is not item:
                found[item.step] = (DUPLICATED, earliest)
    return dict(sorted(found.items()))


def _reason(category: str, evidence: Interaction) -> str:
    step = f"[{evidence.call_index}, {evidence.result_index}]"
    if category == ABNORMAL:
        return f"The call failed, and the same call succeeded in {step}."
    return f"The same call brought the same result in {step} already."
