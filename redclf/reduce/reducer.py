"""A reducer for the loop of an agent, after AgentDiet (arXiv 2509.23586): one step a call, once, for good."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from redclf.errors import RedclfError, TraceError
from redclf.readers.fields import Place
from redclf.readers.messages import parse_messages
from redclf.reduce.reflectors import ClassifierReflector, Reflector
from redclf.reduce.steps import Round, rounds_of
from redclf.tokens import estimate_tokens
from redclf.trajectory import Trajectory

ChatMessage = Mapping[str, Any]


class Reducer:
    """Shortens an agent's messages while it runs.

    To be called after every step of the loop with all messages so far, those that it returned included. At step s it
    may change the results of step s - a, and of no other: everything before them stays as it is, so that the
    provider's prompt cache holds.

    Parameters
    ----------
    a : int
        Steps that are left alone at the end of the context.
    b : int
        Steps before s - a that a reflector without a view of its own may see (the `llm` one).
    theta : int
        Tokens. A step of at most so many is left alone, and so is one where no more than so many would be saved.
    reflector : Reflector, optional
        What decides; our detector and the rules of `redclf.reduce.content` by default.
    policy : str
        What the agent works under, where it is no system message.

    Examples
    --------
    >>> from redclf.reduce import Reducer
    >>> reducer = Reducer()  # doctest: +SKIP
    >>> messages = reducer(messages)  # after each step: call made, results appended  # doctest: +SKIP
    """

    def __init__(
        self, a: int = 2, b: int = 1, theta: int = 500, reflector: Reflector | None = None, policy: str = ""
    ) -> None:
        for name, value, least in (("a", a, 1), ("b", b, 0), ("theta", theta, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name}: expected a whole number from {least}, got {value!r}")
        self.a, self.b, self.theta = a, b, theta
        self.policy = policy
        self.reflector: Reflector = ClassifierReflector() if reflector is None else reflector
        #: Tokens of the results that the reflector was given, and what is left of them.
        self.processed = self.kept = 0
        self._seen: list[str] = []
        self._rounds = 0

    def __call__(self, messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
        """Return the messages, one step's results shortened where that is worth it.

        Parameters
        ----------
        messages : sequence of mapping
            OpenAI chat messages. They are not changed.

        Raises
        ------
        RedclfError
            If they are no chat messages, or not what was returned last time with more behind it: a history that was
            shortened or changed. Nothing is lost then; a new `Reducer` can go on from there.
        """
        given = [_copied(message, index) for index, message in enumerate(messages)]
        self._check(given)
        trajectory = self._trajectory(given)
        rounds = rounds_of(trajectory)
        for number in range(self._rounds, len(rounds)):
            # More than one where the caller left some out.
            place = number - self.a
            if place >= 0:
                self._reduce(trajectory, rounds, place, given)
        self._rounds = len(rounds)
        self._seen = [_digest(message) for message in given]
        return given

    def _check(self, given: Sequence[ChatMessage]) -> None:
        if len(given) < len(self._seen):
            raise RedclfError(
                f"reducer: expected at least the {len(self._seen)} messages of the last call, got {len(given)}"
            )
        for index, digest in enumerate(self._seen):
            if _digest(given[index]) != digest:
                raise RedclfError(f"reducer: expected message {index} as it was returned last time, got another")

    def _trajectory(self, given: Sequence[ChatMessage]) -> Trajectory:
        try:
            messages = parse_messages(list(given), Place("reducer"))
        except TraceError as error:
            raise RedclfError(str(error)) from None
        policy = self.policy or next((message.content for message in messages if message.role == "system"), "")
        return Trajectory("live", messages, policy=policy)

    def _reduce(self, trajectory: Trajectory, rounds: Sequence[Round], place: int, given: list[dict[str, Any]]) -> None:
        target = rounds[place]
        size = sum(estimate_tokens(trajectory.messages[index].content) for index in target.results)
        if size <= self.theta:
            return
        window = range(rounds[max(place - self.b, 0)].call, len(trajectory.messages))
        contents = self.reflector.reflect(trajectory, target, window)
        left = {index: text for index, text in contents.items() if index in target.results}
        after = sum(estimate_tokens(left.get(i, trajectory.messages[i].content)) for i in target.results)
        self.processed += size
        if size - after <= self.theta:
            self.kept += size
            return
        self.kept += after
        for index, text in left.items():
            given[index]["content"] = text


def _copied(message: ChatMessage, index: int) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise RedclfError(f"reducer, message {index}: expected an object, got {message!r:.40}")
    return dict(message)


def _digest(message: ChatMessage) -> str:
    text = json.dumps(message, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
