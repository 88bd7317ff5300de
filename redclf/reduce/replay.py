"""Playing recorded runs through a reducer as if they were live: what it saves, and what it would have cost the agent.

The harm measure needs no second run: of the identifiers, values and paths in later calls and replies that a tool's
result had shown, the share that the context no longer showed when the agent used them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from redclf.accounting import sent_text
from redclf.readers.writing import to_chat
from redclf.reduce.reducer import Reducer
from redclf.reduce.reflectors import Reflector
from redclf.reduce.steps import rounds_of
from redclf.relations.views import atoms_of, is_identifier
from redclf.tokens import estimate_tokens
from redclf.trajectory import Trajectory


@dataclass(frozen=True)
class Replay:
    """What became of some runs.

    Parameters
    ----------
    trajectories, requests : int
    input_tokens : int
        Accumulated over all requests, as reduced.
    input_tokens_none : int
        The same without a reducer.
    output_tokens : int
    processed, kept : int
        Tokens of the results that were long enough to look at, and what was left of them.
    used, lost : int
        What later messages took from results, and how much of it the context no longer showed.
    """

    trajectories: int = 0
    requests: int = 0
    input_tokens: int = 0
    input_tokens_none: int = 0
    output_tokens: int = 0
    processed: int = 0
    kept: int = 0
    used: int = 0
    lost: int = 0

    def __add__(self, other: Replay) -> Replay:
        return Replay(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    @property
    def keep(self) -> float:
        """Share of the processed tokens that is left; 1 where none were long enough."""
        return self.kept / self.processed if self.processed else 1.0

    @property
    def saved(self) -> float:
        """Share of the accumulated input tokens that is saved."""
        return 1 - self.input_tokens / self.input_tokens_none if self.input_tokens_none else 0.0

    @property
    def harm(self) -> float:
        """Share of what was used that was no longer there."""
        return self.lost / self.used if self.used else 0.0


class _Context:
    """The messages as the agent has them, with their tokens and atoms."""

    def __init__(self, policy: str) -> None:
        self.texts: list[str] = []
        self.tokens = estimate_tokens(policy)
        self.atoms = Counter(_identifiers(policy))

    def put(self, index: int, text: str) -> None:
        """Add a message, or change one."""
        if index < len(self.texts):
            if self.texts[index] == text:
                return
            self.tokens -= estimate_tokens(self.texts[index])
            self.atoms.subtract(_identifiers(self.texts[index]))
            self.texts[index] = text
        else:
            self.texts.append(text)
        self.tokens += estimate_tokens(text)
        self.atoms.update(_identifiers(text))


def _identifiers(text: str) -> frozenset[str]:
    return frozenset(filter(is_identifier, atoms_of(text)))


def replay(trajectory: Trajectory, reflector: Reflector, a: int = 2, b: int = 1, theta: int = 500) -> Replay:
    """Return what a reducer would have made of one run.

    Parameters
    ----------
    trajectory : Trajectory
    reflector : Reflector
    a, b, theta : int
        As `Reducer` takes them.
    """
    has_system = any(message.role == "system" for message in trajectory.messages)
    policy = "" if has_system else trajectory.policy
    reducer = Reducer(a, b, theta, reflector, policy)
    chat = to_chat(trajectory)["messages"]
    ends = {max(found.results) for found in rounds_of(trajectory)}
    live: list[dict[str, object]] = []
    now, never = _Context(policy), _Context(policy)
    shown: set[str] = set()
    requests = given = given_none = made = used = lost = 0
    for index, message in enumerate(trajectory.messages):
        text = sent_text(message)
        if message.role == "assistant":
            requests += 1
            given += now.tokens
            given_none += never.tokens
            made += estimate_tokens(text)
            taken = _identifiers(text) & shown
            used += len(taken)
            lost += sum(now.atoms[atom] <= 0 for atom in taken)
        elif message.role == "tool":
            shown |= _identifiers(text)
        live.append(chat[index])
        never.put(index, text)
        now.put(index, text)
        if index in ends:
            live = reducer(live)
            for place, (reduced, original) in enumerate(zip(live, trajectory.messages, strict=False)):
                if original.role == "tool" and original.requestor == "assistant":
                    now.put(place, str(reduced["content"]))
    return Replay(1, requests, given, given_none, made, reducer.processed, reducer.kept, used, lost)


def replay_all(
    trajectories: Iterable[Trajectory], reflector: Reflector, a: int = 2, b: int = 1, theta: int = 500
) -> Replay:
    """Return the sum over some runs."""
    total = Replay()
    for trajectory in trajectories:
        total += replay(trajectory, reflector, a, b, theta)
    return total
