"""Whole-trajectory changes that leave every label true: other names, values, formats and manners.

They keep a model from resting on what is particular to the training tools and agents.
"""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from redclf.benchmark.data import GoldStep, LabelledTrajectory
from redclf.failure import failure_kind
from redclf.relations.commands import shell_text
from redclf.relations.views import verb_kind
from redclf.taxonomy import INCORRECT
from redclf.trajectory import Message, ToolCall
from train import wordings
from train.perturb import to_lines

Step = tuple[int, int]

_RUN = re.compile(r"[A-Za-z0-9]+")


def _with_messages(item: LabelledTrajectory, messages: list[Message]) -> LabelledTrajectory:
    return replace(item, trajectory=replace(item.trajectory, messages=tuple(messages)))


def _has_shell(item: LabelledTrajectory) -> bool:
    return any(shell_text(step.call.name, step.call.arguments) is not None for step in item.trajectory.interactions)


def rename_tools(item: LabelledTrajectory, rng: random.Random) -> LabelledTrajectory:
    """Give every tool another name, the same one throughout, so that nothing rests on names."""
    names: dict[str, str] = {}

    def renamed(name: str) -> str:
        while name not in names:
            made = f"{rng.choice(wordings.VERBS[verb_kind(name)])}_{rng.choice(wordings.NOUNS)}"
            made += "" if rng.random() < 0.6 else f"_{rng.choice(wordings.NOUNS)}"
            if made not in names.values():
                names[name] = made
        return names[name]

    def call_of(call: ToolCall) -> ToolCall:
        return call if shell_text(call.name, call.arguments) is not None else replace(call, name=renamed(call.name))

    return _with_messages(
        item,
        [replace(m, tool_calls=tuple(call_of(call) for call in m.tool_calls)) for m in item.trajectory.messages],
    )


def rename_values(item: LabelledTrajectory, rng: random.Random) -> LabelledTrajectory:
    """Give every id-like value another one of its shape, the same one throughout the trajectory.

    Runs of letters and digits that hold a digit are ids; years and short numbers stay.
    """
    if _has_shell(item):
        return item
    made: dict[str, str] = {}
    taken: set[str] = set()

    def other(match: re.Match[str]) -> str:
        run = match.group()
        digits = sum(char.isdigit() for char in run)
        if digits == 0 or len(run) < 4 or (digits == len(run) and len(run) < 5):
            return run
        while run not in made:
            first = True
            new = ""
            for char in run:
                if char.isdigit():
                    new += char if first and char == "0" else rng.choice(string.digits[1:] if first else string.digits)
                    first = False
                elif char.isupper() and run.upper() == run:
                    new += rng.choice(string.ascii_uppercase)
                else:
                    new += char
            if new not in taken:
                taken.add(new)
                made[run] = new
        return made[run]

    def value_of(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: value_of(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [value_of(entry) for entry in value]
        if isinstance(value, str):
            return _RUN.sub(other, value)
        if isinstance(value, int) and not isinstance(value, bool):
            return int(_RUN.sub(other, str(value)))
        return value

    return _with_messages(
        item,
        [
            replace(
                m,
                content=_RUN.sub(other, m.content),
                tool_calls=tuple(replace(call, arguments=value_of(call.arguments)) for call in m.tool_calls),
            )
            for m in item.trajectory.messages
        ],
    )


def plain_results(item: LabelledTrajectory, rng: random.Random) -> LabelledTrajectory:
    """Write the JSON results as indented lines."""
    messages = []
    for message in item.trajectory.messages:
        content = message.content
        if message.role == "tool" and content.lstrip()[:1] in ("{", "[") and len(content) > 8:
            try:
                value = json.loads(content)
            except (ValueError, RecursionError):
                value = None
            if value and failure_kind(content) is None:
                content = to_lines(value)
        messages.append(replace(message, content=content))
    return _with_messages(item, messages)


def give_reasons(item: LabelledTrajectory, rng: random.Random) -> LabelledTrajectory:
    """Add an argument to most calls in which the agent says why it makes them."""
    if _has_shell(item):
        return item
    name = rng.choice(("reason", "purpose", "why", "note"))

    def call_of(call: ToolCall) -> ToolCall:
        if call.requestor != "assistant" or not isinstance(call.arguments, dict) or name in call.arguments:
            return call
        if rng.random() < 0.15:
            return call
        a, b = rng.sample(wordings.NOUNS, 2)
        said = rng.choice(wordings.REASONS).format(a=a, b=b)
        return replace(call, arguments={**call.arguments, name: said})

    return _with_messages(
        item,
        [replace(m, tool_calls=tuple(call_of(call) for call in m.tool_calls)) for m in item.trajectory.messages],
    )


def _rule_of(item: LabelledTrajectory) -> bool:
    policy = item.trajectory.policy.lower()
    return bool(re.search(r"(only make one|one|single) tool call at a time|one tool at a time", policy))


def without_policy(item: LabelledTrajectory, rng: random.Random) -> LabelledTrajectory:
    """Take the policy out, and with it the labels that rest on its rule against parallel calls."""
    messages = item.trajectory.messages
    gone = {
        step.step
        for step in item.gold
        if step.category == INCORRECT and step.evidence == (-1,) and len(messages[step.step[0]].tool_calls) > 1
    } if _rule_of(item) else set()  # fmt: skip
    gold = tuple(step for step in item.gold if step.step not in gone)
    return replace(
        item,
        trajectory=replace(item.trajectory, policy=""),
        gold=gold,
        disputed=item.disputed | frozenset(gone),
    )


def call_in_parallel(item: LabelledTrajectory, rng: random.Random) -> LabelledTrajectory:
    """Join calls that follow each other and do not need each other's results into one message."""
    item = without_policy(item, rng)
    if _has_shell(item):
        return item
    old = item.trajectory.messages
    labelled = {step.step[0]: step for step in item.gold}
    evidence = {index for step in item.gold for index in step.evidence}
    calls_of: dict[int, list[int]] = {}
    for step in item.trajectory.interactions:
        calls_of.setdefault(step.call_index, []).append(step.result_index)
    messages: list[Message] = []
    place: dict[int, int] = {}
    block: tuple[int, list[int]] | None = None  # place of the open message, and indices of its calls
    for index, message in enumerate(old):
        joins = False
        if (
            block is not None
            and message.role == "assistant"
            and message.tool_calls
            and not message.content.strip()
            and len(block[1]) < 4
            and all(verb_kind(call.name) <= 0 for call in message.tool_calls)
            and all(call.requestor == "assistant" for call in message.tool_calls)
        ):
            brought = " ".join(old[result].content for first in block[1] for result in calls_of.get(first, []))
            before = " ".join(m.content for m in old[: block[1][0]])
            values = [v for call in message.tool_calls for v in _texts(call.arguments) if len(v) > 2]
            label = labelled.get(index)
            tied = label is not None and (
                label.category == INCORRECT or any(entry in label.evidence for entry in block[1])
            )
            failed = any(
                failure_kind(old[result].content) is not None
                for first in (*block[1], index)
                for result in calls_of.get(first, [])
            )
            joins = (
                not tied
                and not failed
                and index not in evidence
                and all(v not in brought or v in before for v in values)
                and rng.random() < 0.8
            )
        if joins and block is not None:
            at, members = block
            messages[at] = replace(messages[at], tool_calls=(*messages[at].tool_calls, *message.tool_calls))
            place[index] = at
            members.append(index)
            continue
        place[index] = len(messages)
        if message.role == "assistant" and message.tool_calls:
            writes = any(verb_kind(call.name) > 0 or call.requestor != "assistant" for call in message.tool_calls)
            unnamed = any(call.id is None for call in message.tool_calls)
            block = None if writes or unnamed else (len(messages), [index])
        elif message.role != "tool":
            block = None
        messages.append(message)
    if len({call.id for m in old for call in m.tool_calls}) < sum(len(m.tool_calls) for m in old):
        return item  # ids that occur twice would pair otherwise
    # The results of a joined call follow the message anyway: only indices move.

    def move(reference: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(place[i] if i >= 0 else -1 for i in reference)

    gold = tuple(
        GoldStep(move(g.step), g.category, move(g.evidence), g.certain, g.synthetic)  # type: ignore[arg-type]
        for g in item.gold
    )
    disputed = frozenset(move(step) for step in item.disputed)
    found = _with_messages(item, messages)
    return replace(found, gold=gold, disputed=disputed)  # type: ignore[arg-type]


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for entry in value.values() for text in _texts(entry)]
    if isinstance(value, list):
        return [text for entry in value for text in _texts(entry)]
    return [str(value)] if value is not None and not isinstance(value, bool) else []


#: Disguises by name, with their probability where `augment` disguises a copy. Those that move
#: messages come before the injections, the others after.
BEFORE: dict[str, tuple[Callable[[LabelledTrajectory, random.Random], LabelledTrajectory], float]] = {
    "call_in_parallel": (call_in_parallel, 0.35),
    "without_policy": (without_policy, 0.2),
}
AFTER: dict[str, tuple[Callable[[LabelledTrajectory, random.Random], LabelledTrajectory], float]] = {
    "rename_tools": (rename_tools, 1.0),
    "rename_values": (rename_values, 0.5),
    "plain_results": (plain_results, 0.5),
    "give_reasons": (give_reasons, 0.35),
}
