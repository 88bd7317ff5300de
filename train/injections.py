"""The kinds of step that augmentation injects, by name: redundant ones, and necessary ones that look like them.

The benchmark's makers inserted synthetic repeats and failures; this does the same for every
category. Nothing is copied from other data.
"""

from __future__ import annotations

import copy
import json
import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from redclf.benchmark.data import GoldStep, LabelledTrajectory
from redclf.failure import failure_kind
from redclf.relations.commands import parse_command, shell_text
from redclf.relations.views import verb_kind
from redclf.taxonomy import ABNORMAL, DUPLICATED, EXPLORATORY, INCORRECT
from redclf.trajectory import Interaction, Message, ToolCall
from train import wordings
from train.perturb import (
    other_result,
    other_words,
    part_of,
    reword,
    reword_shell,
    same_shape,
    shape_of,
    spoil,
    to_lines,
)

Step = tuple[int, int]

_CODE = re.compile(r"[A-Za-z#][\w\-#]*\d[\w\-]*|\d[\w\-]{3,}")
_BODY = re.compile(r"(<output>\n)(.*?)(\n?</output>)", re.S)
_PATH = re.compile(r"[\w.\-/]*/[\w.\-]+\.\w{1,4}\b")


@dataclass
class Draft:
    """A trajectory under change; gold steps and inserted ones follow the messages by identity."""

    messages: list[Message]
    keys: list[int]
    gold: list[tuple[tuple[int, ...], str, tuple[int, ...], bool | None]]
    inserted: dict[Step, str] = field(default_factory=dict)
    following: int = 0

    @classmethod
    def of(cls, item: LabelledTrajectory) -> Draft:
        """Start from a labelled trajectory; the keys of its messages are their indices."""
        count = len(item.trajectory.messages)
        gold: list[tuple[tuple[int, ...], str, tuple[int, ...], bool | None]] = [
            (step.step, step.category, step.evidence, step.certain) for step in item.gold
        ]
        return cls(list(item.trajectory.messages), list(range(count)), gold, following=count)

    def insert(self, at: int, message: Message) -> int:
        """Insert a message before index `at` and return its key."""
        key = self.following
        self.following += 1
        self.messages.insert(at, message)
        self.keys.insert(at, key)
        return key

    def finish(self, item: LabelledTrajectory, tag: str) -> tuple[LabelledTrajectory, dict[Step, str]]:
        """Return the labelled copy, and the kind of injection of each inserted step."""
        place = {key: index for index, key in enumerate(self.keys)}

        def move(reference: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(place[key] if key >= 0 else -1 for key in reference)

        gold = tuple(
            GoldStep(step=move(step), category=category, evidence=move(evidence), certain=certain, synthetic=None)  # type: ignore[arg-type]
            for step, category, evidence, certain in self.gold
        )
        trajectory = replace(item.trajectory, id=f"{item.trajectory.id}#{tag}", messages=tuple(self.messages))
        inserted = {(place[c], place[r]): kind for (c, r), kind in self.inserted.items()}
        disputed = frozenset(move(step) for step in item.disputed)
        return replace(item, trajectory=trajectory, gold=gold, disputed=disputed), inserted  # type: ignore[arg-type]


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
        self.draft = Draft.of(item)
        redundant = {step.step for step in item.gold} | set(item.disputed)
        self.steps = item.trajectory.assistant_interactions
        messages = self.messages = item.trajectory.messages
        self.plain = [
            step
            for step in self.steps
            if step.step not in redundant
            and failure_kind(messages[step.result_index].content) is None
            and len(messages[step.result_index].content.strip()) > 8
        ]
        self.reads = [step for step in self.plain if not self._writes(step)]
        self.shell = any(self._shell(step) is not None for step in self.steps)
        self.count = 0
        self.kind = ""

    def apply(self, name: str) -> bool:
        """Inject one step (or a group of steps) of the kind `name`; False where nothing fits."""
        self.kind = name
        return INJECTIONS[name][0](self)

    # ---- what the trajectory offers ---------------------------------------------------------------

    def _shell(self, step: Interaction) -> str | None:
        return shell_text(step.call.name, step.call.arguments)

    def _writes(self, step: Interaction) -> bool:
        shell = self._shell(step)
        return bool(parse_command(shell).writes) if shell is not None else verb_kind(step.call.name) > 0

    def _result(self, step: Interaction) -> str:
        return self.messages[step.result_index].content

    def _pick(self, pool: list[Any]) -> Any:
        return self.rng.choice(pool) if pool else None

    def _alone(self, step: Interaction) -> bool:
        return len(self.draft.messages[self.draft.keys.index(step.call_index)].tool_calls) == 1

    def _first_with_result(self, step: Interaction) -> Interaction:
        result = self._result(step)
        return next(other for other in self.steps if self._result(other) == result)

    def _slots_after(self, step: Interaction) -> list[int]:
        """Keys of later assistant messages before which nothing has changed since `step`."""
        writes = {other.result_index for other in self.steps if self._writes(other)}
        slots = []
        for index in range(step.result_index + 1, len(self.messages)):
            if index in writes:
                break
            if self.messages[index].role == "assistant":
                slots.append(index)
        return slots

    def _codes(self, step: Interaction) -> list[tuple[str, str]]:
        """Names and values of the arguments that name an object."""
        arguments = step.call.arguments
        if not isinstance(arguments, dict) or self._shell(step) is not None:
            return []
        return [
            (name, value)
            for name, value in arguments.items()
            if isinstance(value, str)
            and 4 <= len(value) <= 200
            and " " not in value
            and (any(char.isdigit() for char in value) or "/" in value)
        ]

    def _siblings(self, value: str, before: int) -> list[str]:
        """Other values of the same shape that results before message `before` hold."""
        shape = shape_of(value)
        found: dict[str, None] = {}
        for index in range(before):
            message = self.messages[index]
            if message.role == "tool" and len(found) < 20:
                for token in re.findall(r"[^\s\"',{}\[\]]+", message.content[:20_000]):
                    token = token.rstrip(".:;")
                    if token != value and shape_of(token) == shape:
                        found[token] = None
        return list(found)

    def _settles(self, value: str, before: int) -> tuple[int, ...]:
        """Return the user message or step before message `before` where a value was first given, else [-1]."""
        for index in range(before):
            if value in self.messages[index].content:
                if self.messages[index].role == "user":
                    return (index,)
                if self.messages[index].role == "tool":
                    found = next((other for other in self.steps if other.result_index == index), None)
                    return found.step if found else (-1,)
        return (-1,)

    def _used_later(self, step: Interaction) -> bool:
        """Whether something that only this result brought turns up in a later call or reply."""
        earlier = " ".join(message.content for message in self.messages[: step.result_index])
        fresh = {code for code in _CODE.findall(self._result(step)[:20_000]) if code not in earlier}
        if not fresh:
            return False
        for message in self.messages[step.result_index + 1 :]:
            if message.role == "assistant":
                text = message.content + " ".join(str(call.arguments) for call in message.tool_calls)
                if any(code in text for code in fresh):
                    return True
        return False

    # ---- how steps are put in -----------------------------------------------------------------------

    def _key(self) -> str:
        self.count += 1
        return f"injected_{self.count}"

    def _add(self, before: int, call: ToolCall, result: str, text: str = "") -> Step:
        """Insert a call and its result before the message whose key is `before`."""
        at = self.draft.keys.index(before)
        call = replace(call, id=self._key(), requestor="assistant")
        first = self.draft.insert(at, Message("assistant", text, (call,)))
        second = self.draft.insert(at + 1, Message("tool", result, tool_call_id=call.id))
        self.draft.inserted[first, second] = self.kind
        return first, second

    def _join(self, message_key: int, call: ToolCall, result: str) -> Step:
        """Add a call to an existing message, and its result after the others'."""
        at = self.draft.keys.index(message_key)
        call = replace(call, id=self._key(), requestor="assistant")
        message = self.draft.messages[at]
        self.draft.messages[at] = replace(message, tool_calls=(*message.tool_calls, call))
        end = at + 1
        while end < len(self.draft.messages) and self.draft.messages[end].role == "tool":
            end += 1
        key = self.draft.insert(end, Message("tool", result, tool_call_id=call.id))
        self.draft.inserted[message_key, key] = self.kind
        return message_key, key

    def _label(self, step: Step, category: str, evidence: tuple[int, ...]) -> None:
        self.draft.gold.append((step, category, evidence, True))

    def _reworded(self, call: ToolCall) -> ToolCall:
        arguments = copy.deepcopy(call.arguments)
        if self.rng.random() < 0.65:
            shell = shell_text(call.name, arguments)
            if shell is None:
                arguments = reword(arguments, self.rng)
            elif isinstance(arguments, dict):
                arguments = {k: reword_shell(v, self.rng) if v == shell else v for k, v in arguments.items()}
        return replace(call, arguments=arguments)

    def _tool(self, verb: int = -1) -> str:
        rng = self.rng
        name = f"{rng.choice(wordings.VERBS[verb])}_{rng.choice(wordings.NOUNS)}"
        return name if rng.random() < 0.5 else f"{name}_{rng.choice(wordings.ASPECTS)}"

    # ---- Duplicated -----------------------------------------------------------------------------------

    def repeat(self) -> bool:
        """Duplicated: a necessary read, sent again later, bringing the identical result."""
        step = self._pick([step for step in self.reads if self._slots_after(step)])
        if step is None:
            return False
        slots = self._slots_after(step)
        before = slots[min(int(self.rng.expovariate(0.35)), len(slots) - 1)]
        added = self._add(before, self._reworded(step.call), self._result(step))
        self._label(added, DUPLICATED, self._first_with_result(step).step)
        return True

    def repeat_parallel(self) -> bool:
        """Duplicated: the same read twice in one message."""
        step = self._pick([step for step in self.reads if self._first_with_result(step) is step])
        if step is None:
            return False
        self._label(self._join(step.call_index, self._reworded(step.call), self._result(step)), DUPLICATED, step.step)
        return True

    def other_query(self) -> bool:
        """Duplicated: a query in quite other words that brings the identical result, or a part of it."""
        pool = [
            (step, name)
            for step in self.reads
            if isinstance(step.call.arguments, dict) and self._shell(step) is None and self._slots_after(step)
            for name, value in step.call.arguments.items()
            if isinstance(value, str) and value.count(" ") >= 1
        ]
        picked = self._pick(pool)
        if picked is None:
            return False
        step, name = picked
        words = [*step.call.arguments[name].split(" ")[:2], *self.rng.sample(wordings.QUERY_WORDS, 3)]
        self.rng.shuffle(words)
        call = replace(step.call, arguments={**step.call.arguments, name: " ".join(words)})
        result = self._result(step)
        if self.rng.random() < 0.3:
            result = part_of(result, self.rng) or result
        if self.rng.random() < 0.5 and self._first_with_result(step) is step:
            added = self._join(step.call_index, call, result)
        else:
            added = self._add(self._slots_after(step)[0], call, result)
        self._label(added, DUPLICATED, self._first_with_result(step).step)
        return True

    def other_tool(self) -> bool:
        """Duplicated: another tool returns a part of what an earlier result held."""
        pool = [
            step for step in self.reads if self._slots_after(step) and len(self._result(step)) > 60 and not self.shell
        ]
        step = self._pick(pool)
        if step is None:
            return False
        result = self._result(step)
        part = part_of(result, self.rng)
        if part is None or len(part) < 12:
            return False
        if self.rng.random() < 0.3 and part[:1] in "{[":
            part = to_lines(json.loads(part))
        first = next((other for other in self.steps if part in self._result(other)), self._first_with_result(step))
        slots = self._slots_after(step)
        before = slots[min(int(self.rng.expovariate(0.5)), len(slots) - 1)]
        self._label(self._add(before, replace(step.call, name=self._tool()), part), DUPLICATED, first.step)
        return True

    def joint(self) -> bool:
        """Duplicated: a read returns what two earlier results hold together."""
        pool = []
        for step in self.reads:
            value = _object(self._result(step))
            if value and len(value) > 2 and self._first_with_result(step) is step:
                pool.append((step, value))
        pairs = [
            (a, b)
            for i, a in enumerate(pool)
            for b in pool[i + 1 : i + 5]
            if a[0].result_index < b[0].call_index
            and not set(a[1].items_key) & set(b[1].items_key)
            and self._slots_after(a[0])
            and b[0].call_index < self._slots_after(a[0])[-1]
        ]
        picked = self._pick(pairs)
        if picked is None:
            return False
        (a, left), (b, right) = picked
        slots = [key for key in self._slots_after(b) if key in self._slots_after(a)]
        if not slots:
            return False
        made: dict[str, Any] = {}
        for value in (left, right):
            keys = [key for key in value if key not in made]
            if not keys:
                return False
            for key in self.rng.sample(keys, max(1, len(keys) // 2)):
                made[key] = value[key]
        call = ToolCall(self._tool(), {**_dict(a.call.arguments), **_dict(b.call.arguments)})
        added = self._add(slots[0], call, json.dumps(made, ensure_ascii=False))
        self._label(added, DUPLICATED, (*a.step, *b.step))
        return True

    # ---- Abnormal ---------------------------------------------------------------------------------------

    def failure(self) -> bool:
        """Abnormal: a transient failure, then the same call succeeds."""
        step = self._pick([step for step in self.plain if self._alone(step)])
        if step is None:
            return False
        for _ in range(1 if self.rng.random() < 0.8 else 2):
            text = self.messages[step.call_index].content if self.rng.random() < 0.3 else ""
            added = self._add(step.call_index, step.call, wordings.failure_text(self.rng), text)
            self._label(added, ABNORMAL, step.step)
        if self.rng.random() < 0.3:
            at = self.draft.keys.index(step.call_index)
            message = self.draft.messages[at]
            if not message.content:
                self.draft.messages[at] = replace(message, content=self.rng.choice(wordings.RETRY_TEXTS))
        return True

    def failure_earlier(self) -> bool:
        """Abnormal: a call fails beside another one, or a few steps before it is repeated."""
        places = {step.call_index: place for place, step in enumerate(self.steps)}
        pool = [
            (step, earlier)
            for step in self.plain
            for earlier in self.steps[max(0, places[step.call_index] - 3) : places[step.call_index]]
            if earlier.call_index < step.call_index and not self._writes(earlier) and earlier in self.plain
        ]
        picked = self._pick(pool)
        if picked is None:
            return False
        step, earlier = picked
        text = wordings.failure_text(self.rng)
        if self.rng.random() < 0.6:
            added = self._join(earlier.call_index, step.call, text)
        else:
            added = self._add(earlier.call_index, step.call, text)
        self._label(added, ABNORMAL, step.step)
        return True

    # ---- Incorrect ----------------------------------------------------------------------------------------

    def refused(self) -> bool:
        """Incorrect: a wrong identifier is refused, although the right one was known."""
        picked = self._pick([(step, *code) for step in self.plain for code in self._codes(step)])
        if picked is None:
            return False
        step, name, value = picked
        wrong = spoil(value, self.rng)
        call = replace(step.call, arguments={**step.call.arguments, name: wrong})
        result = self.rng.choice(wordings.REFUSED).format(what=name.replace("_", " "), value=wrong)
        self._label(self._add(step.call_index, call, result), INCORRECT, self._settles(value, step.call_index))
        return True

    def guessed(self) -> bool:
        """Incorrect: an argument that nothing had given is refused; sometimes nothing replaces it."""
        step = self._pick([step for step in self.plain if self._codes(step)])
        if step is None or self.shell:
            return False
        rng = self.rng
        name, value = rng.choice(self._codes(step))
        made = rng.choice(
            (
                rng.choice(wordings.NOUNS),
                f"{rng.choice(wordings.NOUNS)} {rng.choice(wordings.NOUNS)}",
                rng.choice(("current", "default", "latest", "me", "user", "primary", "unknown")),
                f"{rng.choice(wordings.NOUNS)}_{rng.randint(1, 999)}",
            )
        )
        what = name.replace("_", " ")
        result = rng.choice(wordings.REFUSED).format(what=what, value=made)
        known = self._settles(value, step.call_index)
        if rng.random() < 0.4:
            # Another tool, never called again.
            call, known = ToolCall(self._tool(), {rng.choice(wordings.NOUNS) + "_type": made}), (-1,)
        else:
            call = replace(step.call, arguments={**step.call.arguments, name: made})
        earlier = [other for other in self.plain if other.call_index <= step.call_index]
        beside = earlier[-1 - min(int(rng.expovariate(0.7)), len(earlier) - 1)]
        if rng.random() < 0.5:
            if (len(known) == 2 and known[1] > beside.call_index) or known == (beside.call_index,):
                known = (-1,)
            added = self._join(beside.call_index, call, result)
        else:
            added = self._add(step.call_index, call, result)
        self._label(added, INCORRECT, known)
        return True

    def bad_form(self) -> bool:
        """Incorrect: a call that does not fit the tool's form is refused, then sent as it should be."""
        pool = [
            step
            for step in self.plain
            if isinstance(step.call.arguments, dict)
            and step.call.arguments
            and self._alone(step)
            and self._shell(step) is None
        ]
        step = self._pick(pool)
        if step is None:
            return False
        rng = self.rng
        arguments = dict(step.call.arguments)
        name = rng.choice(list(arguments))
        move = rng.random()
        if move < 0.35:
            del arguments[name]
        elif move < 0.6:
            arguments[name] = {"value": arguments[name]}
        elif move < 0.8:
            name = rng.choice(wordings.NOUNS)
            arguments[name] = rng.choice((True, 1, "all"))
        else:
            arguments[name] = rng.choice(wordings.NOUNS)
        result = rng.choice(wordings.BAD_FORM).format(what=name)
        call = replace(step.call, arguments=arguments)
        beside = self._pick([other for other in self.plain if other.call_index < step.call_index][-2:])
        if beside is not None and rng.random() < 0.35:
            added = self._join(beside.call_index, call, result)
        else:
            added = self._add(step.call_index, call, result)
        self._label(added, INCORRECT, (-1,))
        return True

    def refused_again(self) -> bool:
        """Incorrect: what a tool has refused is sent again, unchanged."""
        refused: list[tuple[ToolCall, str, Step]] = []
        for step in self.steps:
            if failure_kind(self._result(step)) == "rejected" and self._slots_after(step):
                refused.append((step.call, self._result(step), step.step))
        rng = self.rng
        picked = self._pick(refused) if rng.random() < 0.4 else None
        if picked is not None:
            call, result, first = picked
            slot = self._slots_after(next(step for step in self.steps if step.step == first))[0]
            earliest = next(at for c, r, at in refused if c.name == call.name and c.arguments == call.arguments)
            self._label(self._add(slot, call, result), INCORRECT, earliest)
            return True
        step = self._pick([step for step in self.plain if self._codes(step) and self._alone(step)])
        if step is None:
            return False
        name, value = rng.choice(self._codes(step))
        wrong = spoil(value, rng)
        call = replace(step.call, arguments={**step.call.arguments, name: wrong})
        result = rng.choice(wordings.REFUSED).format(what=name.replace("_", " "), value=wrong)
        first = self._add(step.call_index, call, result)
        self._label(first, INCORRECT, self._settles(value, step.call_index))
        self._label(self._add(step.call_index, call, result), INCORRECT, first)
        return True

    def unknown_tool(self) -> bool:
        """Incorrect: a tool that does not exist."""
        step = self._pick(self.plain)
        if step is None:
            return False
        name = step.call.name + self.rng.choice(["_v2", "_info", "s", "_by_name", "_all"])
        result = self.rng.choice(wordings.UNKNOWN_TOOL).format(tool=name)
        self._label(self._add(step.call_index, replace(step.call, name=name), result), INCORRECT, (-1,))
        return True

    def _other_object(self, step: Interaction) -> tuple[ToolCall, str] | None:
        """Make a read of another object of the same kind, and what it returns."""
        codes = self._codes(step)
        if not codes:
            return None
        name, value = self.rng.choice(codes)
        others = self._siblings(value, step.call_index)
        other = self.rng.choice(others) if others else same_shape(value, self.rng)
        result = self._result(step)
        made = other_result(result, self.rng, self.rng.choice((0.1, 0.3, 0.5))).replace(value, other)
        return replace(step.call, arguments={**step.call.arguments, name: other}), made

    def wrong_target(self) -> bool:
        """Incorrect: another object than the one that the user had named is read."""
        pool = [
            (step, value, self._settles(value, step.call_index))
            for step in self.reads
            for _, value in self._codes(step)
            if self._alone(step)
        ]
        pool = [picked for picked in pool if len(picked[2]) == 1 and picked[2] != (-1,)]
        picked = self._pick(pool)
        made = self._other_object(picked[0]) if picked else None
        if picked is None or made is None:
            return False
        self._label(self._add(picked[0].call_index, *made), INCORRECT, picked[2])
        return True

    def search_on(self) -> bool:
        """Incorrect: going on to other objects after the wanted one was found."""
        pool = [
            step
            for step in self.reads
            if self._codes(step)
            and self._slots_after(step)
            and self._used_later(step)
            and any(self._siblings(value, step.call_index) for _, value in self._codes(step))
        ]
        step = self._pick(pool)
        if step is None:
            return False
        for _ in range(1 if self.rng.random() < 0.7 else 2):
            made = self._other_object(step)
            if made is None:
                return False
            self._label(self._add(self._slots_after(step)[0], *made), INCORRECT, step.step)
        return True

    # ---- Exploratory ----------------------------------------------------------------------------------------

    def empty_search(self) -> bool:
        """Exploratory: searches in other words that find nothing, before the one that hits."""
        pool = [
            step
            for step in self.reads
            if isinstance(step.call.arguments, dict)
            and self._shell(step) is None
            and any(isinstance(v, str) and len(v) > 2 for v in step.call.arguments.values())
            and re.search(r"search|find|query|lookup|list|get", step.call.name, re.I)
        ]
        step = self._pick(pool)
        if step is None:
            return False
        name = self._pick([k for k, v in step.call.arguments.items() if isinstance(v, str) and len(v) > 2])
        for _ in range(1 if self.rng.random() < 0.7 else 2):
            arguments = {**step.call.arguments, name: other_words(step.call.arguments[name], self.rng)}
            call = replace(step.call, arguments=arguments)
            self._label(self._add(step.call_index, call, self.rng.choice(wordings.EMPTY)), EXPLORATORY, step.step)
        return True

    def off_target(self) -> bool:
        """Exploratory: other objects are read before the one that was wanted, which nobody had named."""
        pool = [
            step
            for step in self.reads
            if self._codes(step)
            and self._used_later(step)
            and all(len(self._settles(value, step.call_index)) == 2 for _, value in self._codes(step))
        ]
        step = self._pick(pool)
        if step is None:
            return False
        times = self.rng.choice((1, 1, 2, 3))
        for _ in range(times):
            made = self._other_object(step)
            if made is None:
                return False
            self._label(self._add(step.call_index, *made), EXPLORATORY, step.step)
        return True

    def off_search(self) -> bool:
        """Exploratory: searches that bring something else, before the one that hits."""
        pool = [
            (step, name)
            for step in self.reads
            if isinstance(step.call.arguments, dict) and self._shell(step) is None and self._used_later(step)
            for name, value in step.call.arguments.items()
            if isinstance(value, str) and len(value) > 2 and not any(char.isdigit() for char in value)
        ]
        picked = self._pick(pool)
        if picked is None:
            return False
        step, name = picked
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            arguments = {**step.call.arguments, name: other_words(step.call.arguments[name], self.rng)}
            result = other_result(self._result(step), self.rng, 0.1)
            added = self._add(step.call_index, replace(step.call, arguments=arguments), result)
            self._label(added, EXPLORATORY, step.step)
        return True

    def ruled_out(self) -> bool:
        """Exploratory: a look into another source brings nothing of use, before the step that does."""
        step = self._pick([step for step in self.reads if self._used_later(step)])
        if step is None or self.shell:
            return False
        rng = self.rng
        move = rng.random()
        if move < 0.35:
            arguments = _dict(step.call.arguments)
            call = ToolCall(f"{rng.choice(('check', 'inspect', 'verify'))}_{rng.choice(wordings.NOUNS)}", arguments)
            result = rng.choice(wordings.RULED_OUT)
        else:
            words = [*self._topic(step.call_index), *rng.sample(wordings.QUERY_WORDS, 3)]
            rng.shuffle(words)
            call = ToolCall(rng.choice(wordings.SEARCH_TOOLS), {rng.choice(("query", "q", "text")): " ".join(words)})
            pages = [_page(rng) for _ in range(rng.randint(2, 5))]
            result = _passages(pages, rng) if move < 0.85 else _listing(pages, rng)
        if rng.random() < 0.3:
            beside = self._pick([other for other in self.plain if other.call_index < step.call_index][-3:]) or step
            added = self._join(beside.call_index, call, result)
        else:
            added = self._add(step.call_index, call, result)
        self._label(added, EXPLORATORY, step.step)
        return True

    def _topic(self, before: int) -> list[str]:
        """Return a few words of what the user asked last."""
        asked = next((m.content for m in reversed(self.messages[:before]) if m.role == "user"), "")
        words = [word for word in re.findall(r"[A-Za-z][\w\-]{3,}", asked) if len(word) < 20][:40]
        return self.rng.sample(words, min(self.rng.randint(0, 4), len(words)))

    def _replies(self) -> list[int]:
        """Return the indices of the assistant's replies."""
        return [
            index
            for index, message in enumerate(self.messages)
            if message.role == "assistant" and message.content and not message.tool_calls and index > 1
        ]

    def _say(self, reply: int, text: str) -> None:
        """Let a reply say something more."""
        at = self.draft.keys.index(reply)
        message = self.draft.messages[at]
        self.draft.messages[at] = replace(message, content=f"{message.content}\n{text}")

    # ---- Pages of a search, and what is done with them --------------------------------------------------------

    def research(self) -> bool:
        """Several: pages are looked up before a reply that quotes one; the rest is redundant.

        Repeated searches in other words (Duplicated), pages that the reply does not use and searches
        that miss (Exploratory), invented addresses (Incorrect).
        """
        rng = self.rng
        reply = self._pick(self._replies())
        if reply is None:
            return False
        topic = self._topic(reply)
        pages = [_page(rng) for _ in range(rng.randint(3, 6))]
        listing = _listing(pages, rng)
        search = rng.choice(wordings.SEARCH_TOOLS)
        reader = rng.choice(wordings.PAGE_TOOLS)
        field_, place = rng.choice(("query", "q", "text", "keywords")), rng.choice(("url", "id", "source", "link"))

        def asking() -> ToolCall:
            words = [*topic[: rng.randint(0, 4)], *rng.sample(wordings.QUERY_WORDS, 3)]
            rng.shuffle(words)
            arguments: dict[str, Any] = {field_: " ".join(words)}
            if rng.random() < 0.5:
                arguments["limit"] = rng.choice((3, 5, 10))
            return ToolCall(search, arguments)

        missed = []
        if rng.random() < 0.3:
            missed.append(self._add(reply, asking(), _listing([_page(rng) for _ in pages], rng)))
        if rng.random() < 0.1:
            missed.append(self._add(reply, asking(), rng.choice(wordings.EMPTY)))
        if rng.random() < 0.35:
            other = replace(asking(), name=rng.choice([tool for tool in wordings.SEARCH_TOOLS if tool != search]))
            missed.append(self._add(reply, other, _passages([_page(rng) for _ in pages], rng)))
        hit = self._add(reply, asking(), listing)
        for step in missed:
            self._label(step, EXPLORATORY, hit)

        def again(beside: int | None) -> None:
            result = listing if rng.random() < 0.85 else _listing(pages[: rng.randint(1, len(pages) - 1)], rng)
            call = asking()
            self._label(
                self._join(beside, call, result) if beside is not None else self._add(reply, call, result),
                DUPLICATED,
                hit,
            )

        while rng.random() < 0.45:
            again(hit[0])
        if rng.random() < 0.25:
            again(None)
        used = pages[:2] if rng.random() < 0.3 else pages[:1]
        rng.shuffle(pages)
        read: list[Step] = []
        first: int | None = None
        opened = [*used]
        unused = [page for page in pages if page not in used][: rng.choice((0, 1, 1, 2))]
        opened += unused
        rng.shuffle(opened)
        marks = []
        for page in opened:
            if rng.random() < 0.15:
                url = page["url"].rsplit("/", 1)[0] + "/" + rng.choice(wordings.NOUNS)
                call, text = ToolCall(reader, {place: url}), rng.choice(wordings.NO_PAGE).format(url=url)
                step = self._join(first, call, text) if first is not None else self._add(reply, call, text)
                self._label(step, INCORRECT, hit)
                first = step[0]
            call = ToolCall(reader, {place: page["url"]})
            parallel = first is not None and rng.random() < 0.6
            step = (
                self._join(first, call, page["text"])
                if parallel and first is not None
                else self._add(reply, call, page["text"])
            )
            first = step[0]
            if page in used:
                read.append(step)
            else:
                marks.append(step)
        for step in marks:
            self._label(step, EXPLORATORY, read[0])
        if rng.random() < 0.3:
            again(None)
        self._say(
            reply,
            " ".join(
                rng.choice(wordings.QUOTES).format(title=page["title"], fact=_paraphrase(fact, rng))
                for page in used
                for fact in page["facts"]
            ),
        )
        return True

    # ---- Necessary, though they look redundant ------------------------------------------------------------------

    def lone_failure(self) -> bool:
        """Necessary, though it looks Abnormal: a failure that nothing replaces."""
        pool = [step for step in self.reads if isinstance(step.call.arguments, dict) and step.call.arguments]
        step = self._pick(pool)
        if step is None:
            return False
        arguments = {
            k: other_words(v, self.rng) if isinstance(v, str) and v else v for k, v in step.call.arguments.items()
        }
        if arguments == step.call.arguments:
            return False
        self._add(step.call_index, replace(step.call, arguments=arguments), wordings.failure_text(self.rng))
        return True

    def changed_repeat(self) -> bool:
        """Necessary, though it looks Duplicated: the same read after a change, with another result."""
        writes = [step for step in self.plain if self._writes(step)]
        pool = [
            (read, index)
            for read in self.reads
            for write in writes[:6]
            if write.call_index > read.result_index
            for index in range(write.result_index + 1, min(write.result_index + 6, len(self.messages)))
            if self.messages[index].role == "assistant"
        ]
        picked = self._pick(pool)
        if picked is None:
            return False
        read, before = picked
        self._add(before, read.call, self._changed(self._result(read)))
        return True

    def _changed(self, result: str) -> str:
        changed = re.sub(r"\d", lambda _: self.rng.choice(string.digits), result, count=self.rng.randint(2, 6))
        return changed if changed != result else result + "\nupdated"

    def poll(self) -> bool:
        """Necessary, though it looks Duplicated: asking for a state again until it has changed."""
        step = self._pick([step for step in self.reads if self._alone(step) and not self.shell])
        if step is None:
            return False
        states = ["queued", "running", "finalizing"][: self.rng.randint(1, 3)]
        result = self._result(step)
        for state in states:
            text = json.dumps({"state": state, "progress": self.rng.randint(1, 99)})
            value = _object(result)
            if value:
                text = json.dumps({**dict(list(value.items())[:1]), "state": state}, ensure_ascii=False)
            self._add(step.call_index, step.call, text)
        return True

    def next_page(self) -> bool:
        """Necessary, though it looks Duplicated: the next page of the same listing."""
        pool = [
            step
            for step in self.reads
            if isinstance(step.call.arguments, dict)
            and self._slots_after(step)
            and not self.shell
            and self._result(step).lstrip().startswith("[")
        ]
        step = self._pick(pool)
        if step is None:
            return False
        name = self.rng.choice(("page", "offset", "cursor", "start"))
        call = replace(step.call, arguments={**step.call.arguments, name: self.rng.choice((2, 3, 10, 20))})
        self._add(self._slots_after(step)[0], call, other_result(self._result(step), self.rng, 0.15))
        return True

    def parallel_objects(self) -> bool:
        """Necessary, though it looks off target: another object of the same kind that the reply speaks of."""
        pool = [step for step in self.reads if self._codes(step) and self._slots_after(step)]
        step = self._pick(pool)
        made = self._other_object(step) if step else None
        if step is None or made is None:
            return False
        replies = [index for index in self._replies() if index > step.result_index]
        known = " ".join(message.content for message in self.messages[: step.result_index])
        values = [code for code in dict.fromkeys(_CODE.findall(made[1])) if code not in known]
        if not replies or not values:
            return False
        if self.rng.random() < 0.6:
            self._join(step.call_index, *made)
        else:
            self._add(self._slots_after(step)[0], *made)
        self._say(replies[0], ", ".join(self.rng.sample(values, min(len(values), 4))) + ".")
        return True

    def chain(self) -> bool:
        """Necessary: look-ups by new tools, several at once or each by what the last one brought.

        The reply says something of most of them; that a state was looked at is enough for the others.
        """
        rng = self.rng
        reply = self._pick(self._replies())
        if reply is None or self.shell:
            return False
        said: list[str] = []
        arguments: dict[str, Any] = {}
        for _ in range(rng.randint(1, 4)):
            name, text, code, values = _record_parts(rng)
            first = self._add(reply, ToolCall(self._tool(), arguments), text)
            said += values[: rng.randint(0, 2)]
            while rng.random() < 0.35:
                _, other, _, extra = _record_parts(rng)
                self._join(first[0], ToolCall(self._tool(), arguments), other)
                said += extra[: rng.randint(0, 2)]
            arguments = {name: code}
        if rng.random() < 0.3:
            done = json.dumps({"accepted": True, "confirmation": f"C{rng.randrange(10**6)}"})
            self._add(reply, ToolCall(self._tool(1), arguments), done)
            said.append(code)
        said += values[-1:]
        self._say(reply, ", ".join(value.replace("_", " ") for value in said) + ".")
        return True

    # ---- Coding runs ------------------------------------------------------------------------------------------------

    def _shell_call(self, step: Interaction, command: str) -> ToolCall:
        old = self._shell(step)
        if not isinstance(step.call.arguments, dict):
            return replace(step.call, arguments=command)
        return replace(step.call, arguments={k: command if v == old else v for k, v in step.call.arguments.items()})

    def view_again(self) -> bool:
        """Duplicated: the same lines of a file, or some of them, by another command."""
        pool = []
        for step in self.reads:
            shell = self._shell(step)
            found = re.fullmatch(r"(?:nl -ba|cat|cat -n) ([\w./\-]+)(?: \| sed -n '(\d+),(\d+)p')?", shell or "")
            ranged = re.fullmatch(r"sed -n '(\d+),(\d+)p' ([\w./\-]+)", shell or "")
            body = _BODY.search(self._result(step))
            if body is None or not self._slots_after(step):
                continue
            if found:
                pool.append((step, found[1], int(found[2] or 1), body[2].split("\n")))
            elif ranged:
                pool.append((step, ranged[3], int(ranged[1]), body[2].split("\n")))
        pool = [picked for picked in pool if len(picked[3]) > 4]
        picked = self._pick(pool)
        if picked is None:
            return False
        step, file, start, lines = picked
        lines = [re.sub(r"^\s*\d+\t", "", line) for line in lines]
        low = self.rng.randrange(len(lines) - 3) if self.rng.random() < 0.7 else 0
        high = self.rng.randrange(low + 3, len(lines) + 1) if self.rng.random() < 0.7 else len(lines)
        first, last = start + low, start + high - 1
        plain = lines[low:high]
        command, shown = self.rng.choice(
            (
                (f"sed -n '{first},{last}p' {file}", plain),
                (f"head -n {last} {file} | tail -n {last - first + 1}", plain),
                (
                    f"nl -ba {file} | sed -n '{first},{last}p'",
                    [f"{first + i:6d}\t{line}" for i, line in enumerate(plain)],
                ),
            )
        )
        result = _BODY.sub(lambda match: match[1] + "\n".join(shown) + match[3], self._result(step), count=1)
        slots = [
            key
            for key in self._slots_after(step)
            if not any(
                other.call_index < key
                and other.call_index > step.call_index
                and file.rsplit("/", 1)[-1] in (self._shell(other) or "")
                and re.search(r"sed -i|>|patch|git", self._shell(other) or "")
                for other in self.steps
            )
        ]
        if not slots:
            return False
        before = slots[min(int(self.rng.expovariate(0.3)), len(slots) - 1)]
        self._label(self._add(before, self._shell_call(step, command), result), DUPLICATED, step.step)
        return True

    def no_hits(self) -> bool:
        """Exploratory: a search of the code without hits, before the one that hits."""
        pool = [
            (step, found)
            for step in self.reads
            if (found := re.search(r"grep [^|]*?\"([^\"]{4,})\"", self._shell(step) or ""))
            and _BODY.search(self._result(step))
        ]
        picked = self._pick(pool)
        if picked is None:
            return False
        step, found = picked
        command = (self._shell(step) or "").replace(found[1], other_words(found[1], self.rng), 1)
        result = "<returncode>1</returncode>\n<output>\n</output>"
        self._label(self._add(step.call_index, self._shell_call(step, command), result), EXPLORATORY, step.step)
        return True

    def wrong_path(self) -> bool:
        """Incorrect: a file is opened where it is not, although its place had been shown."""
        pool = []
        for step in self.reads:
            shell = self._shell(step) or ""
            for path in _PATH.findall(shell)[:1]:
                known = self._settles(path, step.call_index)
                if "returncode" in self._result(step):
                    pool.append((step, shell, path, known))
        picked = self._pick(pool)
        if picked is None:
            return False
        step, shell, path, known = picked
        parts = path.split("/")
        at = self.rng.randrange(len(parts) - 1) if self.rng.random() < 0.6 else len(parts) - 1
        parts[at] = other_words(parts[at].split(".")[0] or "src", self.rng) + (".py" if at == len(parts) - 1 else "")
        wrong = "/".join(parts)
        command = shell.replace(path, wrong, 1)
        head = command.split(" ", 1)[0]
        result = f"<returncode>2</returncode>\n<output>\n{head}: {wrong}: No such file or directory\n</output>"
        self._label(self._add(step.call_index, self._shell_call(step, command), result), INCORRECT, known)
        return True

    def refused_edit(self) -> bool:
        """Incorrect: an edit with a slip in it does not run, then the right one does."""
        pool = [
            step
            for step in self.plain
            if self._shell(step) and self._writes(step) and "<returncode>0" in self._result(step)
        ]
        step = self._pick(pool)
        if step is None:
            return False
        shell = self._shell(step) or ""
        at = self.rng.choice([i for i, char in enumerate(shell) if char in "'\")/("] or [len(shell) - 1])
        command = shell[:at] + shell[at + 1 :]
        complaint, code = self.rng.choice(wordings.EDIT_COMPLAINTS)
        result = f"<returncode>{code}</returncode>\n<output>\n{complaint.format(n=self.rng.randint(2, 60))}\n</output>"
        self._label(self._add(step.call_index, self._shell_call(step, command), result), INCORRECT, (-1,))
        return True


class _Object(dict[str, Any]):
    @property
    def items_key(self) -> frozenset[str]:
        return frozenset(f"{key}={value}" for key, value in self.items())


def _object(text: str) -> _Object | None:
    """Return the JSON object that a result is, or None."""
    if text.lstrip()[:1] != "{" or len(text) > 20_000:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _Object(value) if isinstance(value, dict) else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _page(rng: random.Random) -> dict[str, Any]:
    """Make up a page: its title, address, facts and text."""
    a, b = rng.sample(wordings.NOUNS, 2)
    title = rng.choice(wordings.PAGE_TITLES).format(a=a, b=b)
    host = f"{rng.choice(wordings.NOUNS)}-{rng.choice(wordings.NOUNS)}.example"
    url = rng.choice(
        (f"https://{host}/{a}/{b}", f"https://{host}/{a}-{b}-{rng.randint(2, 99)}", f"doc-{rng.randrange(10**5)}")
    )
    facts = [
        rng.choice(wordings.PAGE_SENTENCES).format(
            a=a,
            b=b,
            n=rng.randint(2, 365),
            m=rng.randint(10, 99),
            id=f"{a[:2].upper()}-{rng.randrange(1000, 99999)}",
        )
        for _ in range(rng.randint(1, 3))
    ]
    other = [
        rng.choice(wordings.PAGE_SENTENCES).format(
            a=rng.choice(wordings.NOUNS),
            b=b,
            n=rng.randint(2, 365),
            m=rng.randint(10, 99),
            id=f"N{rng.randrange(9999)}",
        )
        for _ in range(rng.randint(2, 8))
    ]
    body = [*other, *facts]
    rng.shuffle(body)
    text = rng.choice(
        (
            f"title: {title}\naddress: {url}\ntext: {' '.join(body)}\n",
            json.dumps({"title": title, "url": url, "body": body}),
            f"# {title}\n\n" + "\n\n".join(body),
        )
    )
    return {"title": title, "url": url, "facts": facts, "text": text}


def _paraphrase(text: str, rng: random.Random) -> str:
    """Leave out some of a sentence's words, or turn its halves round."""
    if rng.random() < 0.4:
        return text
    words = [word for word in text.split(" ") if rng.random() < 0.65] or text.split(" ")
    cut = rng.randrange(len(words))
    return " ".join(words[cut:] + words[:cut] if rng.random() < 0.4 else words)


def _listing(pages: list[dict[str, Any]], rng: random.Random) -> str:
    """Write what a search returns: titles and addresses."""
    rows = [{"title": page["title"], "url": page["url"]} for page in pages]
    return rng.choice(
        (
            json.dumps(rows),
            to_lines(rows) + "\n",
            "\n".join(f"{i + 1}. {row['title']} <{row['url']}>" for i, row in enumerate(rows)),
        )
    )


def _passages(pages: list[dict[str, Any]], rng: random.Random) -> str:
    """Write what a search in documents returns: pieces of their text."""
    rows = [{"text": page["text"][:400], "source": page["url"], "score": round(rng.random(), 2)} for page in pages]
    return json.dumps(rows) if rng.random() < 0.4 else to_lines(rows) + "\n"


def _record_parts(rng: random.Random) -> tuple[str, str, str, list[str]]:
    """Make up a record: the name and value of its code, its text, and values that a reply may give."""
    kind = rng.choice(wordings.NOUNS)
    code = f"{kind[:3].upper()}-{rng.randrange(100, 99999)}"
    name = rng.choice((f"{kind}_id", f"{kind}_reference", "id", f"{kind}Ref"))
    value: dict[str, Any] = {name: code}
    values = []
    for _ in range(rng.randint(2, 8)):
        field_ = f"{rng.choice(wordings.NOUNS)}_{rng.choice(('status', 'date', 'amount', 'kind', 'count', 'owner'))}"
        made: Any = rng.choice(
            (
                f"20{rng.randint(20, 29)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}",
                round(rng.uniform(2, 900), 2),
                f"{rng.choice(wordings.NOUNS)}_{rng.choice(('open', 'held', 'active', 'due'))}",
                bool(rng.random() < 0.5),
                rng.randint(1, 9000),
            )
        )
        value[field_] = made
        if not isinstance(made, bool):
            values.append(str(made))
    items = list(value.items())
    rng.shuffle(items)
    text = json.dumps(dict(items)) if rng.random() < 0.4 else to_lines(dict(items)) + "\n"
    return name, text, code, values


#: Kinds of injection by name, with their weight in the mix.
INJECTIONS: dict[str, tuple[Callable[[Injector], bool], float]] = {
    "repeat": (Injector.repeat, 3.0),
    "repeat_parallel": (Injector.repeat_parallel, 2.0),
    "other_query": (Injector.other_query, 0.7),
    "other_tool": (Injector.other_tool, 0.7),
    "joint": (Injector.joint, 0.4),
    "failure": (Injector.failure, 1.2),
    "failure_earlier": (Injector.failure_earlier, 0.4),
    "refused": (Injector.refused, 1.0),
    "guessed": (Injector.guessed, 1.2),
    "bad_form": (Injector.bad_form, 1.2),
    "refused_again": (Injector.refused_again, 0.4),
    "unknown_tool": (Injector.unknown_tool, 0.3),
    "wrong_target": (Injector.wrong_target, 0.4),
    "search_on": (Injector.search_on, 0.6),
    "empty_search": (Injector.empty_search, 0.7),
    "off_target": (Injector.off_target, 0.8),
    "off_search": (Injector.off_search, 0.5),
    "ruled_out": (Injector.ruled_out, 0.6),
    "research": (Injector.research, 1.6),
    "lone_failure": (Injector.lone_failure, 0.6),
    "changed_repeat": (Injector.changed_repeat, 0.8),
    "poll": (Injector.poll, 0.4),
    "next_page": (Injector.next_page, 0.4),
    "parallel_objects": (Injector.parallel_objects, 0.8),
    "chain": (Injector.chain, 1.2),
    "view_again": (Injector.view_again, 0.8),
    "no_hits": (Injector.no_hits, 0.4),
    "wrong_path": (Injector.wrong_path, 0.4),
    "refused_edit": (Injector.refused_edit, 0.4),
}
