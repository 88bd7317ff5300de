"""Augmentation by injection: steps whose label is known, put into real trajectories.

The benchmark's makers inserted synthetic repeats and failures; this does the same for every
category, and for the necessary steps that look like them. Nothing is copied from other data.
"""

from __future__ import annotations

import copy
import random
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from redclf.benchmark.data import GoldStep, LabelledTrajectory
from redclf.failure import failure_kind
from redclf.relations.commands import shell_text
from redclf.relations.views import verb_kind
from redclf.taxonomy import ABNORMAL, DUPLICATED, EXPLORATORY, INCORRECT
from redclf.trajectory import Interaction, Message, ToolCall, Trajectory
from train import wordings


@dataclass
class _Draft:
    """A trajectory under change; gold steps and inserted ones follow the messages by identity."""

    messages: list[Message]
    keys: list[int]
    gold: list[tuple[tuple[int, ...], str, tuple[int, ...], bool | None]]
    inserted: set[tuple[int, int]] = field(default_factory=set)
    following: int = 0

    def insert(self, at: int, message: Message) -> int:
        """Insert a message before index `at` and return its key."""
        key = self.following
        self.following += 1
        self.messages.insert(at, message)
        self.keys.insert(at, key)
        return key


def _start(item: LabelledTrajectory) -> _Draft:
    count = len(item.trajectory.messages)
    gold: list[tuple[tuple[int, ...], str, tuple[int, ...], bool | None]] = [
        (step.step, step.category, step.evidence, step.certain) for step in item.gold
    ]
    return _Draft(list(item.trajectory.messages), list(range(count)), gold, following=count)


def _finish(draft: _Draft, item: LabelledTrajectory, tag: str) -> tuple[LabelledTrajectory, frozenset[tuple[int, int]]]:
    place = {key: index for index, key in enumerate(draft.keys)}

    def move(reference: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(place[key] if key >= 0 else -1 for key in reference)

    gold = tuple(
        GoldStep(step=move(step), category=category, evidence=move(evidence), certain=certain, synthetic=None)  # type: ignore[arg-type]
        for step, category, evidence, certain in draft.gold
    )
    trajectory = replace(item.trajectory, id=f"{item.trajectory.id}#{tag}", messages=tuple(draft.messages))
    inserted = frozenset((place[c], place[r]) for c, r in draft.inserted)
    disputed = frozenset(move(step) for step in item.disputed)
    return replace(item, trajectory=trajectory, gold=gold, disputed=disputed), inserted  # type: ignore[arg-type]


def _reword(value: Any, rng: random.Random) -> Any:
    """Say the same arguments in another way: order, case, filler words, punctuation."""
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: _reword(value[key], rng) for key in keys}
    if isinstance(value, str) and value.count(" ") >= 2:
        words = value.split(" ")
        for _ in range(rng.randint(1, 3)):
            move = rng.random()
            if move < 0.4 and len(words) > 3:
                words.pop(rng.randrange(len(words)))
            elif move < 0.7:
                at = rng.randrange(len(words) - 1)
                words[at], words[at + 1] = words[at + 1], words[at]
            else:
                words.insert(
                    rng.randrange(len(words)), rng.choice(["official", "current", "details", "about", "info", "latest"])
                )
        return " ".join(words)
    return value


def _reword_shell(command: str, rng: random.Random) -> str:
    move = rng.random()
    if move < 0.3:
        return command + " 2>&1"
    if move < 0.5:
        return command.replace(" -n ", " -n  ", 1)
    if move < 0.7:
        return command + " "
    return command


def _reworded_call(call: ToolCall, rng: random.Random, key: str) -> ToolCall:
    arguments = copy.deepcopy(call.arguments)
    if rng.random() < 0.65:
        shell = shell_text(call.name, arguments)
        if shell is not None and isinstance(arguments, dict):
            name = (
                next(k for k, v in arguments.items() if isinstance(v, str) and v == shell)
                if shell in arguments.values()
                else None
            )
            if name:
                arguments[name] = _reword_shell(shell, rng)
        else:
            arguments = _reword(arguments, rng)
    return replace(call, arguments=arguments, id=key)


def _spoil(value: str, rng: random.Random) -> str:
    """Return an identifier that is slightly wrong."""
    if not value:
        return "unknown"
    at = rng.randrange(len(value))
    letters = string.digits if value[at].isdigit() else string.ascii_lowercase
    move = rng.random()
    if move < 0.5:
        return value[:at] + rng.choice(letters) + value[at + 1 :]
    if move < 0.8:
        return value[:at] + value[at + 1 :] or "x"
    return value + rng.choice(letters)


class Injector:
    """Puts labelled steps into one trajectory.

    Parameters
    ----------
    item : LabelledTrajectory
    rng : random.Random
    """

    def __init__(self, item: LabelledTrajectory, rng: random.Random) -> None:
        self.item = item
        self.rng = rng
        self.draft = _start(item)
        redundant = {step.step for step in item.gold} | set(item.disputed)
        self.steps = item.trajectory.assistant_interactions
        messages = item.trajectory.messages
        self.plain = [
            step
            for step in self.steps
            if step.step not in redundant
            and failure_kind(messages[step.result_index].content) is None
            and len(messages[step.result_index].content.strip()) > 8
        ]
        self.reads = [step for step in self.plain if not self._writes(step)]
        self.count = 0

    def _writes(self, step: Interaction) -> bool:
        from redclf.relations.commands import parse_command

        shell = shell_text(step.call.name, step.call.arguments)
        return bool(parse_command(shell).writes) if shell is not None else verb_kind(step.call.name) > 0

    def _result(self, step: Interaction) -> str:
        return self.item.trajectory.messages[step.result_index].content

    def _key(self) -> str:
        self.count += 1
        return f"injected_{self.count}"

    def _add(self, before: int, call: ToolCall, result: str, text: str = "") -> tuple[int, int]:
        """Insert a call and its result before the message whose key is `before`."""
        at = self.draft.keys.index(before)
        first = self.draft.insert(at, Message("assistant", text, (call,)))
        second = self.draft.insert(at + 1, Message("tool", result, tool_call_id=call.id))
        self.draft.inserted.add((first, second))
        return first, second

    def _label(self, step: tuple[int, int], category: str, evidence: tuple[int, ...]) -> None:
        self.draft.gold.append((step, category, evidence, True))

    def _first_with_result(self, step: Interaction) -> Interaction:
        result = self._result(step)
        return next(other for other in self.steps if self._result(other) == result)

    def _slots_after(self, step: Interaction) -> list[int]:
        """Keys of later assistant messages before which nothing has changed since `step`."""
        messages = self.item.trajectory.messages
        writes = {other.result_index for other in self.steps if self._writes(other)}
        slots = []
        for index in range(step.result_index + 1, len(messages)):
            if index in writes:
                break
            if messages[index].role == "assistant":
                slots.append(index)
        return slots

    def repeat(self) -> bool:
        """Duplicated: a necessary read, sent again later, bringing the identical result."""
        pool = [step for step in self.reads if self._slots_after(step)]
        if not pool:
            return False
        step = self.rng.choice(pool)
        first = self._first_with_result(step)
        slots = self._slots_after(step)
        before = slots[min(int(self.rng.expovariate(0.35)), len(slots) - 1)]
        added = self._add(before, _reworded_call(step.call, self.rng, self._key()), self._result(step))
        self._label(added, DUPLICATED, first.step)
        return True

    def repeat_parallel(self) -> bool:
        """Duplicated: the same read twice in one message."""
        pool = [step for step in self.reads if self._first_with_result(step) is step]
        if not pool:
            return False
        step = self.rng.choice(pool)
        call = _reworded_call(step.call, self.rng, self._key())
        at = self.draft.keys.index(step.call_index)
        message = self.draft.messages[at]
        self.draft.messages[at] = replace(message, tool_calls=(*message.tool_calls, call))
        end = at + 1
        while end < len(self.draft.messages) and self.draft.messages[end].role == "tool":
            end += 1
        key = self.draft.insert(end, Message("tool", self._result(step), tool_call_id=call.id))
        pair = (step.call_index, key)
        self.draft.inserted.add(pair)
        self._label(pair, DUPLICATED, step.step)
        return True

    def failure(self) -> bool:
        """Abnormal: a transient failure, then the same call succeeds."""
        pool = [
            step
            for step in self.plain
            if len(self.draft.messages[self.draft.keys.index(step.call_index)].tool_calls) == 1
        ]
        if not pool:
            return False
        step = self.rng.choice(pool)
        call = replace(step.call, id=self._key())
        times = 1 if self.rng.random() < 0.85 else 2
        for _ in range(times):
            added = self._add(
                step.call_index,
                replace(call, id=self._key()),
                self.rng.choice(wordings.TRANSIENT),
                "",
            )
            self._label(added, ABNORMAL, step.step)
        if self.rng.random() < 0.3:
            at = self.draft.keys.index(step.call_index)
            message = self.draft.messages[at]
            if not message.content:
                self.draft.messages[at] = replace(message, content=self.rng.choice(wordings.RETRY_TEXTS))
        return True

    def refused(self) -> bool:
        """Incorrect: a wrong identifier is refused, although the right one was known."""
        pool = []
        messages = self.item.trajectory.messages
        for step in self.plain:
            if not isinstance(step.call.arguments, dict) or shell_text(step.call.name, step.call.arguments) is not None:
                continue
            for name, value in step.call.arguments.items():
                if (
                    isinstance(value, str)
                    and 4 <= len(value) <= 40
                    and any(c.isdigit() for c in value)
                    and " " not in value
                ):
                    pool.append((step, name, value))
        if not pool:
            return False
        step, name, value = self.rng.choice(pool)
        evidence: tuple[int, ...] = (-1,)
        for index in range(step.call_index):
            if value in messages[index].content:
                if messages[index].role == "user":
                    evidence = (index,)
                elif messages[index].role == "tool":
                    found = next((other for other in self.steps if other.result_index == index), None)
                    evidence = found.step if found else (-1,)
                else:
                    continue
                break
        arguments = {**step.call.arguments, name: _spoil(value, self.rng)}
        result = self.rng.choice(wordings.REFUSED).format(what=name.replace("_", " "))
        added = self._add(step.call_index, replace(step.call, arguments=arguments, id=self._key()), result)
        self._label(added, INCORRECT, evidence)
        return True

    def unknown_tool(self) -> bool:
        """Incorrect: a tool that does not exist."""
        if not self.plain:
            return False
        step = self.rng.choice(self.plain)
        name = step.call.name + self.rng.choice(["_v2", "_info", "s", "_by_name", "_all"])
        result = self.rng.choice(wordings.UNKNOWN_TOOL).format(tool=name)
        added = self._add(step.call_index, replace(step.call, name=name, id=self._key()), result)
        self._label(added, INCORRECT, (-1,))
        return True

    def empty_search(self) -> bool:
        """Exploratory: a search in other words that finds nothing, before the one that hits."""
        pool = [
            step
            for step in self.reads
            if isinstance(step.call.arguments, dict)
            and any(isinstance(v, str) and len(v) > 2 for v in step.call.arguments.values())
            and re.search(r"search|find|query|lookup|list|grep|bash", step.call.name, re.I)
        ]
        if not pool:
            return False
        step = self.rng.choice(pool)
        arguments = dict(step.call.arguments)
        name = self.rng.choice([k for k, v in arguments.items() if isinstance(v, str) and len(v) > 2])
        arguments[name] = self._other_value(arguments[name])
        added = self._add(
            step.call_index, replace(step.call, arguments=arguments, id=self._key()), self.rng.choice(wordings.EMPTY)
        )
        self._label(added, EXPLORATORY, step.step)
        return True

    def _other_value(self, value: str) -> str:
        words = value.split(" ")
        if len(words) > 2:
            return " ".join([*words[: len(words) // 2], self.rng.choice(wordings.NOUNS)])
        return value[: max(2, len(value) // 2)] + self.rng.choice(wordings.NOUNS)

    def lone_failure(self) -> bool:
        """Necessary, though it looks Abnormal: a failure that nothing replaces."""
        pool = [step for step in self.reads if isinstance(step.call.arguments, dict) and step.call.arguments]
        if not pool:
            return False
        step = self.rng.choice(pool)
        arguments = {k: self._other_value(v) if isinstance(v, str) and v else v for k, v in step.call.arguments.items()}
        if arguments == step.call.arguments:
            return False
        self._add(
            step.call_index,
            replace(step.call, arguments=arguments, id=self._key()),
            self.rng.choice(wordings.TRANSIENT),
        )
        return True

    def changed_repeat(self) -> bool:
        """Necessary, though it looks Duplicated: the same read after a change, with another result."""
        messages = self.item.trajectory.messages
        writes = [step for step in self.plain if self._writes(step)]
        pool = [
            (read, index)
            for read in self.reads
            for write in writes[:6]
            if write.call_index > read.result_index
            for index in range(write.result_index + 1, min(write.result_index + 6, len(messages)))
            if messages[index].role == "assistant"
        ]
        if not pool:
            return False
        read, before = self.rng.choice(pool)
        result = self._result(read)
        changed = re.sub(r"\d", lambda m: self.rng.choice(string.digits), result, count=self.rng.randint(2, 6))
        if changed == result:
            changed = result + "\nupdated"
        self._add(before, replace(read.call, id=self._key()), changed)
        return True


#: Injections with their weight in the mix.
INJECTIONS: tuple[tuple[Callable[[Injector], bool], float], ...] = (
    (Injector.repeat, 3.0),
    (Injector.repeat_parallel, 2.0),
    (Injector.failure, 1.5),
    (Injector.refused, 1.0),
    (Injector.unknown_tool, 0.4),
    (Injector.empty_search, 1.0),
    (Injector.lone_failure, 0.7),
    (Injector.changed_repeat, 1.0),
)

INJECTION_NAMES: tuple[str, ...] = tuple(kind.__name__ for kind, _ in INJECTIONS)


def rename_tools(item: LabelledTrajectory, rng: random.Random) -> LabelledTrajectory:
    """Give every tool another name, the same one throughout, so that nothing rests on names."""
    names: dict[str, str] = {}

    def renamed(name: str) -> str:
        if name not in names:
            verb = rng.choice(wordings.VERBS[verb_kind(name)])
            names[name] = f"{verb}_{rng.choice(wordings.NOUNS)}" + (
                "" if rng.random() < 0.6 else f"_{rng.choice(wordings.NOUNS)}"
            )
        return names[name]

    messages = tuple(
        replace(
            message,
            tool_calls=tuple(
                call if shell_text(call.name, call.arguments) is not None else replace(call, name=renamed(call.name))
                for call in message.tool_calls
            ),
        )
        for message in item.trajectory.messages
    )
    return replace(item, trajectory=replace(item.trajectory, messages=messages))


def augment(
    item: LabelledTrajectory, seed: int, injections: int = 3, rename: float = 0.3, without: Sequence[str] = ()
) -> tuple[LabelledTrajectory, frozenset[tuple[int, int]]] | None:
    """Return a copy of a trajectory with injected steps, and which steps those are.

    Parameters
    ----------
    item : LabelledTrajectory
    seed : int
        The same seed and trajectory give the same copy.
    injections : int
        How many steps to try to inject.
    rename : float
        Probability that the copy's tools are renamed.
    without : sequence of str
        Names of injections that are left out; the others stay as many as they were.

    Returns
    -------
    tuple or None
        None where nothing could be injected.

    Raises
    ------
    ValueError
        If `without` names no injection.
    """
    unknown = set(without) - set(INJECTION_NAMES)
    if unknown:
        raise ValueError(f"without: expected some of {', '.join(INJECTION_NAMES)}, got {', '.join(sorted(unknown))}")
    rng = random.Random(f"{seed}:{item.trajectory.id}")
    injector = Injector(item, rng)
    kinds = [kind for kind, _ in INJECTIONS]
    weights = [weight for _, weight in INJECTIONS]
    drawn = rng.choices(kinds, weights, k=injections)
    done = sum(kind(injector) for kind in drawn if kind.__name__ not in without)
    if not done:
        return None
    copy_, inserted = _finish(injector.draft, item, f"augmented-{seed}")
    if rng.random() < rename:
        copy_ = rename_tools(copy_, rng)
    return copy_, inserted


def cut(item: LabelledTrajectory, after: int) -> LabelledTrajectory:
    """Return the trajectory as an agent loop has it, cut after interaction `after`.

    A loop goes on when all results of a message are there, so parallel calls stay together.
    A gold step stays gold where its evidence is cut off: the annotators call it redundant, whether or not
    a loop can see why by then. Such evidence is no candidate in the cut trajectory, so nothing learns it.
    """
    interactions = item.trajectory.interactions
    last = interactions[min(after, len(interactions) - 1)].call_index
    end = 1 + max(step.result_index for step in interactions if step.call_index <= last)
    trajectory: Trajectory = replace(item.trajectory, messages=item.trajectory.messages[:end])
    gold = tuple(step for step in item.gold if step.step[1] < end)
    disputed = frozenset(step for step in item.disputed if step[1] < end)
    return replace(item, trajectory=trajectory, gold=gold, disputed=disputed)
