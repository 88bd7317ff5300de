"""What relations look at: each step's arguments, facts, atoms and outcome, taken once per trajectory.

An *atom* is a value-like token of a text (an id, a number, a word). A *fact* is a key with its value in
a structured result, or a line of a plain one. Both are compared, never interpreted, so that nothing
rests on the tools of one domain.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from redclf.failure import failure_kind
from redclf.relations.actions import editor_command
from redclf.relations.commands import NO_COMMAND, Command, parse_command, shell_text
from redclf.trajectory import Trajectory

#: Characters of a result that are analysed: its head and its tail.
CLIP_HEAD, CLIP_TAIL = 24_000, 8_000

_ATOM = re.compile(r"[A-Za-z0-9#][\w\-./@#:%$+]*")
#: What an atom may hold but not end with. Stripped afterwards: the pattern would have to go back for it.
_ATOM_END = "-./@#:%$+"
_LINE_NUMBER = re.compile(r"^\s*\d+(?:[\t:|\-]| {2})")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SPACE = re.compile(r"\s+")

STOPWORDS = frozenset(
    "a an and are as at be been by can could did do does for from had has have he her his i if in into is it "
    "its just me my no not of on or our please she so than thank thanks that the their them then there these "
    "they this to up us was we were what when which who will with would yes you your null none true false "
    "like want need help let know hi hello also any all".split()
)

WRITE_VERBS = frozenset(
    "update modify cancel book create add remove delete set send return exchange pay transfer enable disable "
    "resume suspend refuel submit post write edit insert move rename schedule reserve order purchase buy confirm "
    "apply register assign approve reject issue toggle reset reboot change upload save publish replace "
    "report file request start stop open_ticket activate deactivate grant revoke escalate rebook place make "
    "accept decline close withdraw deposit convert block unblock freeze renew extend complete mark upgrade".split()
)
READ_VERBS = frozenset(
    "get list search find check look read view show query fetch describe lookup retrieve verify calculate compute "
    "open browse scan inspect run test estimate compare count think load monitor track preview".split()
)


@dataclass(slots=True)
class StepView:
    """One interaction, prepared for comparison."""

    ordinal: int
    call_index: int
    result_index: int
    tool: str
    assistant: bool
    arguments: str
    values: tuple[str, ...]
    arg_atoms: frozenset[str]
    arg_ids: frozenset[str]
    result: str
    result_key: str
    atoms: frozenset[str]
    ids: frozenset[str]
    facts: frozenset[str]
    failure: str | None
    empty: bool
    verb: int
    write: bool
    command: Command
    length: int
    turn: int = 0
    new_atoms: frozenset[str] = field(default_factory=frozenset)
    new_facts: int = 0
    place: int = 0
    group: int = 1
    structured: int = 0
    items: int = 0

    @property
    def call_key(self) -> tuple[str, str]:
        """Tool and arguments: equal for identical calls."""
        return (self.tool, self.arguments)


def atoms_of(text: str) -> frozenset[str]:
    """Return the atoms of a text, lower case, stop words left out."""
    found = set()
    for token in _ATOM.findall(text):
        token = token.rstrip(_ATOM_END).lower().strip("./:-")
        if token and token not in STOPWORDS:
            found.add(token[:-2] if token.endswith(".0") else token)
    return frozenset(found)


@lru_cache(1 << 16)
def is_identifier(atom: str) -> bool:
    """Whether an atom looks like an id, number, path or address rather than a word."""
    return any(char.isdigit() or char in "_@/#" for char in atom) and len(atom) > 1


def _leaves(value: Any, key: str, out: list[tuple[str, str]], budget: list[int]) -> None:
    stack: list[tuple[str, Any]] = [(key, value)]
    while stack and budget[0] > 0:
        name, item = stack.pop()
        if isinstance(item, dict):
            stack.extend((str(k), v) for k, v in reversed(list(item.items())))
        elif isinstance(item, list):
            stack.extend((name, v) for v in reversed(item))
        else:
            budget[0] -= 1
            out.append((name, "" if item is None else str(item)))


def _clip(text: str) -> str:
    if len(text) <= CLIP_HEAD + CLIP_TAIL:
        return text
    return text[:CLIP_HEAD] + "\n" + text[-CLIP_TAIL:]


def _parse_json(text: str) -> Any:
    head = text.lstrip()[:1]
    if head not in ("{", "[") or len(text) > 2_000_000:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _read_result(text: str) -> tuple[frozenset[str], frozenset[str], int, int]:
    """Return atoms, facts, structure (0 text, 1 object, 2 list) and number of items."""
    document = _parse_json(text)
    if isinstance(document, dict | list):
        leaves: list[tuple[str, str]] = []
        _leaves(document, "", leaves, [6_000])
        atoms: set[str] = set()
        facts: set[str] = set()
        for key, value in leaves:
            if value:
                atoms |= atoms_of(value[:2_000])
                facts.add(f"{key}\x1f{value}")
        if isinstance(document, dict):
            atoms |= {key.lower() for key in document if is_identifier(str(key))}
        structure = 1 if isinstance(document, dict) else 2
        return frozenset(atoms), frozenset(facts), structure, len(document)
    clipped = _clip(text)
    lines = [_SPACE.sub(" ", _LINE_NUMBER.sub("", line)).strip(" -") for line in clipped.split("\n")]
    facts = {f"\x1f{line}" for line in lines if len(line) > 1}
    return atoms_of(clipped), frozenset(facts), 0, len(lines)


def verb_kind(tool: str) -> int:
    """Return 1 for a tool whose name says that it changes something, -1 for a read, 0 for neither."""
    words = [word.lower() for part in re.split(r"[_.\-\s]+", tool) for word in _CAMEL.split(part)]
    for word in words[:2]:
        if word in WRITE_VERBS:
            return 1
        if word in READ_VERBS:
            return -1
    if any(word in WRITE_VERBS for word in words[2:]):
        return 1
    return 0


class TrajectoryView:
    """A trajectory with its steps prepared, and an index of where each atom occurs.

    Parameters
    ----------
    trajectory : Trajectory
    """

    def __init__(self, trajectory: Trajectory) -> None:
        self.trajectory = trajectory
        messages = trajectory.messages
        self.turn_at: list[int] = []
        turn = 0
        self.text_atoms: dict[int, frozenset[str]] = {}
        self.user_texts: list[int] = []
        self.assistant_texts: list[int] = []
        for index, message in enumerate(messages):
            if message.role == "user" and message.content.strip():
                turn += 1
                self.user_texts.append(index)
            if message.role in ("user", "assistant") and message.content.strip():
                self.text_atoms[index] = atoms_of(message.content[:20_000])
                if message.role == "assistant":
                    self.assistant_texts.append(index)
            self.turn_at.append(turn)
        self.steps = [self._view(item) for item in trajectory.interactions]
        self._group()
        self._index()
        policy = trajectory.policy[:60_000].lower()
        self.one_call_rule = bool(
            re.search(r"(only make one|one|single) tool call at a time|one tool at a time", policy)
        )
        self.policy_atoms = atoms_of(policy)

    def _view(self, item: Any) -> StepView:
        call = item.call
        arguments = call.arguments
        leaves: list[tuple[str, str]] = []
        _leaves(arguments, "", leaves, [400])
        try:
            canonical = json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
        except (TypeError, ValueError, RecursionError):
            canonical = json.dumps(leaves, ensure_ascii=False)
        values = tuple(sorted({_SPACE.sub(" ", value).strip().lower() for _, value in leaves}))
        arg_atoms = frozenset[str]().union(*(atoms_of(value[:4_000]) for value in values))
        result = self.trajectory.messages[item.result_index].content
        edited = editor_command(call.name, arguments)
        shell = None if edited is not None else shell_text(call.name, arguments)
        command = edited or (parse_command(shell) if shell is not None else NO_COMMAND)
        atoms, facts, structure, items = _read_result(result)
        failure = failure_kind(result)
        stripped = result.strip()
        verb = verb_kind(call.name)
        write = (bool(command.writes) if command.kind != "none" else verb > 0) and failure is None
        return StepView(
            ordinal=item.ordinal,
            call_index=item.call_index,
            result_index=item.result_index,
            tool=call.name,
            assistant=item.requestor == "assistant",
            arguments=canonical,
            values=values,
            arg_atoms=arg_atoms,
            arg_ids=frozenset(atom for atom in arg_atoms if is_identifier(atom)),
            result=result,
            result_key=_SPACE.sub(" ", stripped) if len(stripped) < 100_000 else stripped,
            atoms=atoms,
            ids=frozenset(atom for atom in atoms if is_identifier(atom)),
            facts=facts,
            failure=failure,
            empty=stripped in ("", "[]", "{}", "null", "None", "[ ]") or (structure > 0 and items == 0),
            verb=verb,
            write=write,
            command=command,
            length=len(result),
            turn=self.turn_at[item.call_index],
            structured=structure,
            items=items,
        )

    def _group(self) -> None:
        by_message: dict[int, list[StepView]] = defaultdict(list)
        for step in self.steps:
            by_message[step.call_index].append(step)
        for group in by_message.values():
            for place, step in enumerate(group):
                step.place, step.group = place, len(group)

    def _index(self) -> None:
        """Index atoms by place of occurrence, and find what each result brought first."""
        self.first_seen: dict[str, int] = {}
        self.in_args: dict[str, list[int]] = defaultdict(list)
        self.in_text: dict[str, list[int]] = defaultdict(list)
        self.in_user: dict[str, list[int]] = defaultdict(list)
        self.in_results: dict[str, list[int]] = defaultdict(list)
        calls: dict[int, list[StepView]] = defaultdict(list)
        results: dict[int, StepView] = {}
        for step in self.steps:
            calls[step.call_index].append(step)
            results[step.result_index] = step
        known_facts: set[str] = set()
        for index in range(len(self.trajectory.messages)):
            for atom in self.text_atoms.get(index, ()):
                self.first_seen.setdefault(atom, index)
                user = self.trajectory.messages[index].role == "user"
                (self.in_user if user else self.in_text)[atom].append(index)
            for step in calls.get(index, ()):
                for atom in step.arg_atoms:
                    self.first_seen.setdefault(atom, index)
                    if step.assistant:
                        self.in_args[atom].append(step.ordinal)
            done = results.get(index)
            if done is not None:
                fresh = [atom for atom in done.atoms if atom not in self.first_seen]
                for atom in fresh:
                    self.first_seen[atom] = index
                for atom in done.atoms:
                    self.in_results[atom].append(done.ordinal)
                done.new_atoms = frozenset(fresh)
                done.new_facts = len(done.facts - known_facts)
                known_facts |= done.facts

    def later(self, places: list[int] | None, after: int) -> int:
        """Return how many of the sorted `places` come after `after`."""
        return 0 if not places else len(places) - bisect_right(places, after)
