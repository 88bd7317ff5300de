"""The text that the encoder reads: a target step and one partner, cut to a fixed budget of tokens.

Layout: `[CLS] markers target [SEP] partner [SEP]`. Each piece of a trajectory is tokenised once and
joined by token ids, so that a pair costs no tokenisation of its own.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Protocol

from redclf.relations.candidates import Candidate
from redclf.relations.views import StepView, TrajectoryView

#: Token budgets of the parts.
REQUEST, CALL, RESULT, REPLY = 18, 20, 26, 14
PARTNER_CALL, PARTNER_RESULT, PARTNER_MESSAGE = 16, 22, 38
MARKERS = 12
#: Longest sequence, special tokens included.
MAX_LENGTH = 3 + MARKERS + REQUEST + CALL + RESULT + REPLY + PARTNER_MESSAGE

_JSON_NOISE = re.compile(r"[{}\[\]\"]+")
_SPACE = re.compile(r"\s+")


class TokenizerLike(Protocol):
    """What is needed of a tokenizer: text to ids, without special tokens."""

    def __call__(self, text: str) -> list[int]:
        """Return token ids."""


def plain(text: str, limit: int = 400) -> str:
    """Return the head of a text without JSON punctuation and runs of white space."""
    return _SPACE.sub(" ", _JSON_NOISE.sub(" ", text[: limit * 2])).strip()[:limit]


def _valid(text: str) -> str:
    """Return a text that is valid Unicode: traces hold halves of surrogate pairs, which tokenizers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")


def step_call(step: StepView) -> str:
    """Return a tool call as words."""
    name = step.tool.replace("_", " ").replace(".", " ")
    arguments = step.arguments
    try:
        decoded = json.loads(arguments)
    except (ValueError, RecursionError):
        decoded = arguments
    if isinstance(decoded, dict) and len(decoded) == 1:
        decoded = next(iter(decoded.values()))
    text = decoded if isinstance(decoded, str) else json.dumps(decoded, ensure_ascii=False)
    return f"{name} : {plain(text, 240)}"


def markers(target: StepView, candidate: Candidate, steps: Sequence[StepView]) -> str:
    """Return the relation markers of a pair, as words of the encoder's own vocabulary."""
    if candidate.kind == "policy":
        return "policy"
    if candidate.kind == "message":
        index = candidate.members[0]
        side = "before" if index < target.call_index else "own" if index == target.result_index else "after"
        return f"message {side}"
    other = steps[candidate.members[0]]
    gap = other.ordinal - target.ordinal
    words = ["joint" if candidate.kind == "joint" else "step", "before" if gap < 0 else "after", str(min(abs(gap), 9))]
    if not other.assistant:
        words.append("user")
    words.append("same" if other.call_key == target.call_key else "like" if other.tool == target.tool else "other")
    words.append("equal" if other.result_key == target.result_key else "new")
    if other.failure:
        words.append("failed")
    if other.write:
        words.append("write")
    return " ".join(words)


class Serializer:
    """Builds the token ids of pairs for one trajectory.

    Parameters
    ----------
    view : TrajectoryView
    tokenize : callable
        Text to token ids, no special tokens.
    cls_id, sep_id : int
    partner_text : bool
        Whether the partner's text is read; without it a pair is its markers and the target.
    """

    def __init__(
        self,
        view: TrajectoryView,
        tokenize: Callable[[str], list[int]],
        cls_id: int,
        sep_id: int,
        partner_text: bool = True,
    ) -> None:
        self.view = view
        self.tokenize = tokenize
        self.cls_id, self.sep_id = cls_id, sep_id
        self.partner_text = partner_text
        self._pieces: dict[tuple[str, int], list[int]] = {}

    def _piece(self, kind: str, place: int, text: Callable[[], str], budget: int) -> list[int]:
        key = (kind, place)
        if key not in self._pieces:
            self._pieces[key] = self.tokenize(_valid(text()))[:budget]
        return self._pieces[key][:budget]

    def _message(self, index: int, budget: int) -> list[int]:
        message = self.view.trajectory.messages[index]
        return self._piece("message", index, lambda: f"{message.role} : {plain(message.content)}", PARTNER_MESSAGE)[
            :budget
        ]

    def _call(self, step: StepView, budget: int) -> list[int]:
        return self._piece("call", step.ordinal, lambda: step_call(step), CALL)[:budget]

    def _result(self, step: StepView, budget: int) -> list[int]:
        return self._piece("result", step.ordinal, lambda: "result : " + plain(step.result), RESULT)[:budget]

    def target(self, step: StepView) -> list[int]:
        """Return the ids of a target: what was asked, the call, its result, what was said next."""
        view = self.view
        asked = bisect_left(view.user_texts, step.call_index)
        after = bisect_right(view.assistant_texts, step.result_index)
        ids = self._message(view.user_texts[asked - 1], REQUEST) if asked else []
        ids = ids + self._call(step, CALL) + self._result(step, RESULT)
        return ids + (self._message(view.assistant_texts[after], REPLY) if after < len(view.assistant_texts) else [])

    def partner(self, candidate: Candidate) -> list[int]:
        """Return the ids of a candidate."""
        if candidate.kind == "policy" or not self.partner_text:
            return []
        if candidate.kind == "message":
            return self._message(candidate.members[0], PARTNER_MESSAGE)
        steps = [self.view.steps[place] for place in candidate.members]
        if len(steps) == 1:
            return self._call(steps[0], PARTNER_CALL) + self._result(steps[0], PARTNER_RESULT)
        half = PARTNER_MESSAGE // min(len(steps), 2)
        ids: list[int] = []
        for step in steps[:2]:
            ids += self._call(step, half // 2) + self._result(step, half - half // 2)
        return ids

    def pair(self, step: StepView, candidate: Candidate) -> tuple[list[int], int]:
        """Return a pair's token ids and the length of its first segment."""
        text = markers(step, candidate, self.view.steps)
        key = ("markers:" + text, -1)
        if key not in self._pieces:
            self._pieces[key] = self.tokenize(_valid(text))[:MARKERS]
        first = [self.cls_id, *self._pieces[key], *self.target(step), self.sep_id]
        second = [*self.partner(candidate), self.sep_id]
        return first + second, len(first)
