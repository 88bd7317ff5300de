"""Why a step is redundant, in one sentence made from the relations that decided it.

Every clause is checked against the trace before it is written: the category and its evidence are the model's, what
the sentence says about them is counted. Where nothing checkable speaks for the model's choice, the sentence says
whose judgement it is.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from redclf.relations.candidates import Candidate
from redclf.relations.features import Relations
from redclf.relations.views import StepView, is_identifier
from redclf.taxonomy import ABNORMAL, DUPLICATED, EXPLORATORY, INCORRECT

_FAILURES = (
    (re.compile(r"tim(?:ed|ing)[ -]?out|time-?out|deadline exceeded|returncode>1(?:24|42)<", re.I), "a time-out"),
    (re.compile(r"rate[ -]?limit|too many requests|\b429\b", re.I), "a rate limit"),
    (re.compile(r"connect|network|unreachable|resolve|econn|enet|dns", re.I), "a connection error"),
    (re.compile(r"unavailable|temporar|overload|busy|not responding|\b50[0234]\b|\b529\b", re.I), "a service error"),
)
_TALK_RULE = re.compile(
    r"(?:should|must|do|may|can) ?not (?:respond|reply|talk|speak) to the user (?:simultaneously|at the same time)"
    r"|(?:cannot|can't|can not|must not|do not|don't) (?:do )?both at the same time",
    re.I,
)
_SHOWN = 3
_CLIP = 32


@dataclass(frozen=True, slots=True)
class _Pair:
    """A target with its partner among the other interactions."""

    relations: Relations
    target: StepView
    other: StepView

    @property
    def later(self) -> bool:
        return self.other.ordinal > self.target.ordinal

    @property
    def named(self) -> str:
        """The partner: its tool and step."""
        owner = "" if self.other.assistant else "the user's "
        return f"{owner}{_name(self.other)} at {_ref(self.other)}"

    @property
    def cover(self) -> float:
        return _share(self.target.facts, self.other.facts)

    @property
    def ids_cover(self) -> float:
        return _share(self.target.ids, self.other.atoms | self.other.arg_atoms)


def explain(relations: Relations, target: StepView, category: str, candidate: Candidate) -> str:
    """Say in one sentence why a step is redundant.

    Parameters
    ----------
    relations : Relations
        Of the trajectory.
    target : StepView
        The redundant step.
    category : str
        One of `redclf.taxonomy.CATEGORIES`.
    candidate : Candidate
        The evidence.

    Returns
    -------
    str
        One line. Steps are written `[call, result]`, as in the evidence.
    """
    if candidate.kind == "policy":
        parts = _policy(relations, target)
    elif candidate.kind == "message":
        parts = _message(relations, target, category, candidate.members[0])
    elif candidate.kind == "joint":
        parts = _joint(relations, target, category, [relations.view.steps[place] for place in candidate.members])
    else:
        pair = _Pair(relations, target, relations.view.steps[candidate.members[0]])
        parts = _STEP[category](pair)
    return _sentence(parts)


# ---- evidence is one other step ---------------------------------------------------------------------


def _duplicated(pair: _Pair) -> list[str]:
    if pair.later:
        return [_covered(pair) or f"{pair.named}, later, is judged to make it needless"]
    covered = _covered(pair)
    if covered is None:
        return [f"{pair.named} is judged to have shown already what it asked for"]
    if pair.other.call_index == pair.target.call_index:
        return [covered]
    return [covered, _unchanged(pair)]


def _covered(pair: _Pair) -> str | None:
    """Say how much of the target's result its partner's holds, or None where it is little."""
    target, other = pair.target, pair.other
    had = "returns" if pair.later else "had already returned"
    if other.call_key == target.call_key:
        if other.result_key == target.result_key:
            again = "the same arguments and result" if target.values else "the same result"
            return f"{pair.named} is the same call, made {_when(pair)} with {again}"
        return f"{pair.named} is the same call, made {_when(pair)}"
    if other.result_key == target.result_key and not target.empty:
        return f"{pair.named} {had} the same result"
    if target.empty or not target.facts:
        shared = target.arg_ids & other.arg_ids
        return f"{pair.named} {'asks' if pair.later else 'had already asked'} about {_list(shared)}" if shared else None
    if pair.cover == 1:
        return f"{pair.named} {had} everything that it brought"
    if pair.cover >= 0.5:
        return f"{pair.named} {had} {pair.cover:.0%} of what it brought"
    if target.ids and pair.ids_cover == 1:
        shown = "shows" if pair.later else "had already shown"
        if len(target.ids) == 1:
            return f"{pair.named} {shown} {_list(target.ids)}, the one identifier or number in its result"
        return f"{pair.named} {shown} all {len(target.ids)} identifiers and numbers in its result"
    if target.ids and pair.ids_cover >= 0.5:
        shown = "shows" if pair.later else "had already shown"
        return f"{pair.named} {shown} {pair.ids_cover:.0%} of the identifiers and numbers in its result"
    return None


def _when(pair: _Pair) -> str:
    if pair.other.call_index == pair.target.call_index:
        return "in the same message"
    return "later" if pair.later else "earlier"


def _unchanged(pair: _Pair) -> str:
    """Say that nothing changed between the two steps, where that is so."""
    changes = _writes_between(pair.relations, pair.other.ordinal, pair.target.ordinal)
    if not changes:
        return "nothing changed in between"
    target = pair.target
    touched = [
        write
        for write in changes
        if write.arg_ids & (target.arg_ids | target.ids) or write.command.writes & target.command.reads
    ]
    if not touched:
        count = "the one change" if len(changes) == 1 else f"none of the {len(changes)} changes"
        return f"{count} in between {'does not concern' if len(changes) == 1 else 'concerns'} it"
    return ""


def _abnormal(pair: _Pair) -> list[str]:
    target, other = pair.target, pair.other
    failed = _failed(target)
    if other.failure is not None:
        outcome = "failed, too"
    else:
        outcome = "brought a result" if failed is None else "succeeded"
    if other.call_key == target.call_key:
        retry = f"the same call {outcome} at {_ref(other)}"
    elif other.tool == target.tool:
        retry = f"{_name(other)} {outcome} with other arguments at {_ref(other)}"
    else:
        retry = f"{pair.named} {outcome} in its place"
    return [failed or "is judged to have failed", retry]


def _exploratory(pair: _Pair) -> list[str]:
    first = _outcome(pair.target) or _unused(pair.relations, pair.target)
    if not pair.later:
        return [first, _found_before(pair) or _covered(pair) or f"{pair.named} is judged to have shown the way already"]
    return [first, _hit(pair)]


def _hit(pair: _Pair) -> str:
    """Say what a later step did that the target did not."""
    target, other = pair.target, pair.other
    name = pair.named
    if other.write:
        return f"the run then acts with {name}"
    users = _users_of(pair.relations, other)
    if users:
        return f"{name} brought what {_name(users[0])} at {_ref(users[0])} then uses"
    use = pair.relations.use[other.ordinal]
    if use.text:
        return f"{name} brought what the assistant then tells the user"
    if target.empty and not other.empty and other.failure is None:
        return f"{name} found something"
    if target.failure is not None and other.failure is None:
        return f"{name} succeeded"
    if other.tool == target.tool and other.call_key != target.call_key:
        return f"the search went on with {_changed_arguments(target, other)} at {_ref(other)}"
    return f"{name} is judged to be the step that led on"


def _found_before(pair: _Pair) -> str | None:
    """Say that an earlier step had already brought what is used after the target."""
    for user in _users_of(pair.relations, pair.other):
        if user.ordinal > pair.target.ordinal:
            return f"{pair.named} had already brought what {_name(user)} at {_ref(user)} then uses"
    return None


def _incorrect(pair: _Pair) -> list[str]:
    target, other = pair.target, pair.other
    failed = _failed(target)
    if pair.later:
        if other.tool == target.tool and other.call_key != target.call_key:
            again = f"{_name(other)} was called again with {_changed_arguments(target, other)} at {_ref(other)}"
            return [failed or _outcome(target) or _unused(pair.relations, target), again]
        if other.call_key == target.call_key:
            return [failed or "", f"the same call was made again at {_ref(other)}"]
        return [failed or _outcome(target) or _unused(pair.relations, target), _hit(pair)]
    covered = _covered(pair) if target.facts <= other.facts or pair.ids_cover >= 0.8 else _found_before(pair)
    if covered is None:
        feeds = target.arg_ids & other.atoms
        if feeds:
            covered = f"{pair.named} had already shown {_list(feeds)}, which it uses"
        elif other.failure is not None:
            covered = f"{pair.named} had failed before ({_failure_word(other)})"
        elif other.empty:
            covered = f"{pair.named} had already found nothing"
        else:
            covered = f"{pair.named} is judged to have settled before that it should not be made"
    return [failed or "", covered]


_STEP = {DUPLICATED: _duplicated, ABNORMAL: _abnormal, EXPLORATORY: _exploratory, INCORRECT: _incorrect}


# ---- other evidence ---------------------------------------------------------------------------------


def _joint(relations: Relations, target: StepView, category: str, others: list[StepView]) -> list[str]:
    names = _and([_ref(other) for other in others])
    facts = frozenset[int]().union(*(other.facts for other in others))
    ids = frozenset[str]().union(*(other.atoms | other.arg_atoms for other in others))
    later = any(other.ordinal > target.ordinal for other in others)
    verb = "hold" if later else "had already shown"
    share, what = _share(target.facts, facts), "of what it brought"
    if share < 0.5 and target.ids:
        share, what = _share(target.ids, ids), "of the identifiers and numbers in its result"
    if share == 1:
        covered = f"steps {names} together {verb} all {what}"
    elif share >= 0.5:
        covered = f"steps {names} together {verb} {share:.0%} {what}"
    else:
        covered = f"steps {names} together are judged to make it needless"
    if category == EXPLORATORY:
        return [_outcome(target) or _unused(relations, target), covered]
    if category == INCORRECT:
        return [_failed(target) or "", covered]
    if share < 0.5 or later:
        return [covered]
    first = min(other.ordinal for other in others)
    inside = {other.ordinal for other in others}
    changes = [s for s in _writes_between(relations, first, target.ordinal) if s.ordinal not in inside]
    return [covered, "" if changes else "nothing changed in between"]


def _message(relations: Relations, target: StepView, category: str, index: int) -> list[str]:
    view = relations.view
    message = view.trajectory.messages[index]
    if index == target.result_index:
        return [_failed(target) or _outcome(target) or _unused(relations, target), f"as its own result ({index}) shows"]
    place = f"message {index}"
    if message.role == "tool":
        step = next((step for step in view.steps if step.result_index == index), None)
        if step is not None:
            shown = _STEP[category](_Pair(relations, target, step))
            return [*shown[:-1], shown[-1].replace(f"at {_ref(step)}", f"({place})")]
        return [f"the result in {place} is judged to settle it"]
    who = "the user" if message.role == "user" else "the assistant"
    atoms = view.text_atoms.get(index, frozenset())
    if index < target.call_index:
        known = (target.ids if target.failure is None else frozenset()) & atoms
        if known:
            return [_failed(target) or "", f"{who} had already named {_list(known)} in {place}"]
        asked = target.arg_ids & atoms
        if asked and category != DUPLICATED:
            return [_failed(target) or "", f"{who} had named {_list(asked)} in {place}"]
        said = "what the user said in" if message.role == "user" else "what the assistant said in"
        verdict = "made it needless" if category in (DUPLICATED, EXPLORATORY) else "speaks against it"
        before = _failed(target) or (_unused(relations, target) if category == EXPLORATORY else "")
        return [before, f"{said} {place} is judged to {_infinitive(verdict)}"]
    early = [atom for atom in target.arg_atoms & atoms if view.first_seen.get(atom) == target.call_index]
    if early:
        return [f"{who} named {_list(early)}, which it used, only later ({place})"]
    first = _failed(target) or _outcome(target)
    if first is None and category in (EXPLORATORY, INCORRECT):
        first = _unused(relations, target)
    if message.role == "user":
        return [first or "", f"what the user said only later, in {place}, is judged to settle it"]
    told = target.ids & atoms
    if category == DUPLICATED and told:
        return [f"the assistant names {_list(told)} in {place}"]
    return [first or "", f"what the assistant said then, in {place}, is judged to show it"]


def _infinitive(verdict: str) -> str:
    return verdict.replace("made", "make").replace("speaks", "speak")


def _policy(relations: Relations, target: StepView) -> list[str]:
    view = relations.view
    if target.group > 1 and view.one_call_rule:
        count = _NUMBERS.get(target.group, str(target.group))
        return [f"is one of {count} calls in one message, against a policy that allows one at a time"]
    if target.failure == "unknown_tool":
        return [_failed(target) or ""]
    if target.failure is not None:
        return [_failed(target) or "", "by a fixed rule of the tool or policy"]
    message = view.trajectory.messages[target.call_index]
    if message.content.strip() and _TALK_RULE.search(view.trajectory.policy):
        return ["was made in the same message as a reply, against a policy that forbids both at once"]
    unseen = [
        atom
        for atom in target.arg_ids
        if any(char.isdigit() for char in atom)
        and view.first_seen.get(atom, target.call_index) >= target.call_index
        and atom not in view.policy_atoms
    ]
    if unseen:
        return [f"uses {_list(unseen)}, which nothing before had named"]
    empty = _outcome(target)
    if empty:
        return [empty, "a fixed rule of the policy or tool is judged to settle that beforehand"]
    return ["is judged to be against a fixed rule of the policy or tool, which no message states"]


_NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}


# ---- clauses ----------------------------------------------------------------------------------------


def _failed(target: StepView) -> str | None:
    """Say how a call failed, or None where it did not."""
    if target.failure is None:
        return None
    if target.failure == "unknown_tool":
        return f"called {_name(target)}, a tool that does not exist"
    if target.failure == "transient":
        return f"failed with {_failure_word(target)}"
    return f"was rejected ({_quote(target.result)})"


def _failure_word(step: StepView) -> str:
    head = step.result[:1000]
    if step.failure != "transient":
        return _quote(step.result)
    return next((word for pattern, word in _FAILURES if pattern.search(head)), "an outside failure")


def _outcome(target: StepView) -> str | None:
    failed = _failed(target)
    if failed is not None:
        return failed
    return "found nothing" if target.empty else None


def _unused(relations: Relations, target: StepView) -> str:
    """Say what became of the values that a step brought."""
    use = relations.use[target.ordinal]
    if not use.ids:
        return "brought no identifier or number that was not known before"
    values = "the one new identifier or number" if use.ids == 1 else f"the {use.ids} new identifiers and numbers"
    if not use.args and not use.text:
        return f"no later call or reply uses {values} that it brought"
    if not use.args:
        return f"no later call uses {values} that it brought"
    if use.args < use.ids:
        return f"later calls use only {use.args} of {values} that it brought"
    return f"later calls use {values} that it brought"


def _users_of(relations: Relations, step: StepView) -> list[StepView]:
    """Return later steps of the assistant whose arguments use what the step brought; changes first."""
    view = relations.view
    places: set[int] = set()
    for atom in step.new_atoms & step.ids:
        later = view.in_args.get(atom, [])
        places.update(place for place in later[bisect_left(later, step.ordinal + 1) :][:8])
    users = [view.steps[place] for place in sorted(places)]
    return sorted(users, key=lambda user: not user.write)


def _writes_between(relations: Relations, start: int, end: int) -> list[StepView]:
    low, high = sorted((start, end))
    places = relations.writes[bisect_left(relations.writes, low + 1) : bisect_left(relations.writes, high)]
    return [relations.view.steps[place] for place in places]


def _changed_arguments(target: StepView, other: StepView) -> str:
    """Name the arguments in which two calls of one tool differ."""
    ours, theirs = _arguments(target), _arguments(other)
    names = [name for name in theirs if name not in ours or ours[name] != theirs[name]]
    if not names:
        names = [name for name in ours if name not in theirs]
        if names and theirs:
            return f"no {_and([_clean(name) for name in names[:_SHOWN]])}"
        if names:
            return "no arguments" if other.arguments == "{}" else "other arguments"
    if not names:
        return "other arguments"
    if len(names) == 1:
        value = theirs[names[0]]
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        return f"{_clean(names[0])} = {_clean(shown)}"
    more = ["others"] if len(names) > _SHOWN else []
    return f"another {_and([*(_clean(name) for name in names[:_SHOWN]), *more])}"


def _arguments(step: StepView) -> dict[str, Any]:
    try:
        value = json.loads(step.arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


# ---- words ------------------------------------------------------------------------------------------


def _sentence(parts: list[str]) -> str:
    """Join clauses; one that starts with a verb has the step as its subject."""
    kept = [part for part in parts if part]
    first = kept[0]
    if _VERB.match(first):
        first = f"It {first}"
    rest = [f"it {part}" if _VERB.match(part) else part for part in kept[1:]]
    text = first
    for part in rest:
        text += f", {part}" if part.startswith(("as ", "by ")) else f", and {part}"
    if text.startswith(("the ", "steps ", "what ", "no ", "later ", "one ")):
        text = f"{text[0].upper()}{text[1:]}"
    return f"{text}."


_VERB = re.compile(r"(?:is|was|uses|called|failed|found|brought)\b")


def _name(step: StepView) -> str:
    return _clean(step.tool) or "the tool"


def _ref(step: StepView) -> str:
    return f"[{step.call_index}, {step.result_index}]"


def _share(part: frozenset, whole: frozenset) -> float:
    return len(part & whole) / len(part) if part else 0.0


def _list(values: Iterable[str]) -> str:
    """Name some values, the telling ones first."""
    ordered = sorted(values, key=lambda value: (not is_identifier(value), -len(value), value))
    shown = [_clean(value) for value in ordered[:_SHOWN]]
    if len(ordered) > _SHOWN:
        shown.append(f"{len(ordered) - _SHOWN} more")
    return _and(shown)


def _and(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _quote(text: str) -> str:
    return f'"{_clean(text, 60)}"'


def _clean(text: str, limit: int = _CLIP) -> str:
    """Return trace text on one line, printable and clipped."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * limit]).split())
    return line if len(line) <= limit else f"{line[: limit - 3]}..."
