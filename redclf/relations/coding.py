"""Facts about runs of coding agents: what a step showed, changed, searched and ran, and what came of it.

A trajectory without any call of a shell or an editor has no such facts: its values are NaN.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from redclf.relations.actions import END, Action, action_of, writes_files
from redclf.relations.candidates import Candidate
from redclf.relations.commands import COMMAND_KINDS
from redclf.relations.views import StepView, TrajectoryView

NAN = math.nan
#: Lines of one result or edit that are looked at.
MAX_LINES = 1_500
#: Steps remembered for one line.
MAX_PLACES = 24
#: Pieces of an edit that are looked for in the final patch.
MAX_PIECES = 60
#: How much of a target's lines a step has to show to count as having shown them.
NEARLY_ALL = 0.85

#: Classes of a result, numbered in this order.
OUTCOMES: tuple[str, ...] = (
    "fine", "nothing", "clipped", "failed_tests", "error", "own_error", "no_file", "no_command", "no_edit", "refused",
)  # fmt: skip
_LOOKS = frozenset({"search", "view", "list"})
_TRIES = frozenset({"run", "test"})

_NUMBERED = re.compile(r"\s*(\d{1,7})(?:[\t:|\u2192]|[-](?=\s)| {2})")
_GREP_LINE = re.compile(r"(?:\./)?(?:[\w.+\-]+/)*[\w.+\-]+\.\w+(?::\d+:|-\d+-|:)")
_OPEN_FILE = re.compile(r"\(Open file: ([^\s)]+)\)|\[File: (\S+) \(\d+ lines")
_DIGITS = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?", re.I)
_SPACE = re.compile(r"\s+")
_TAGS = re.compile(r"</?(?:returncode|output|warning|output_head|output_tail|elided_chars|stdout|stderr)>")
_DIFF = re.compile(r"^diff --git a/(\S+)", re.M)
_CODE = re.compile(
    r"(?:<returncode>|exit(?:ed)?(?: with)?(?: exit)? ?(?:code|status):? *|exit_code\W{1,4})(-?\d{1,5})", re.I
)
_FRAME = re.compile(r'^\s*File "([^"\n]+)", line \d+', re.M)
_OWN_ERROR = re.compile(
    r"^(?:E\s+)?(?:SyntaxError|IndentationError|TabError|NameError|ModuleNotFoundError|ImportError|UnboundLocalError)\b",
    re.M,
)
_ERROR = re.compile(r"^(?:E\s+)?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b(?::|$)", re.M)
_NO_COMMAND = re.compile(
    r"command not found|not recognized as|unknown command|No module named pytest|invalid option", re.I
)
_NO_FILE = re.compile(
    r"No such file|cannot access|path \S+ does not exist|can't open file|File \S+ not found|No files found", re.I
)
_NO_EDIT = re.compile(
    r"did not appear verbatim|no replacement was performed|multiple occurrences|"
    r"string (?:to replace )?(?:was )?not found|introduced new syntax error|has NOT been applied|"
    r"patch failed|does not apply|Invalid Context|has not been read",
    re.I,
)
_CLIPPED = re.compile(
    r"output of your last command was too long|<response clipped>|output truncated|\[truncated\]|"
    r"more lines (?:above|below)",
    re.I,
)
_FAILED_TESTS = re.compile(r"^(?:FAILED\b|=+ .*\b(?:failed|error)\b.*=+$|FAIL: |\d+ failed)", re.M)
_REFUSED = re.compile(r"(?:please|must|should)\b.{0,60}\b(?:provide|include|use|format)\b", re.I | re.S)


@dataclass(slots=True)
class _Facts:
    """What is kept of one step."""

    action: Action
    paths: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    creates: frozenset[str] = frozenset()
    deletes: frozenset[str] = frozenset()
    restores: frozenset[str] = frozenset()
    runs: frozenset[str] = frozenset()
    looks: tuple[tuple[str, int, int], ...] = ()
    lines: tuple[str, ...] = ()
    outcome: str = "fine"
    code: int = 0
    alike: str = ""
    look: bool = False
    source: bool = False
    found: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    edited: int = 0
    fresh: int = 0
    own: int = 0
    old: int = 0
    first: Counter[int] = field(default_factory=Counter)
    shown: Counter[int] = field(default_factory=Counter)


def _line(text: str) -> str:
    """Return a line without its number, file name and spaces; "" where nothing substantial is left."""
    match = _GREP_LINE.match(text) or _NUMBERED.match(text)
    if match:
        text = text[match.end() :]
    text = _SPACE.sub("", text)
    return text if len(text) >= 6 and not _TAGS.match(text) else ""


def _lines(text: str) -> tuple[str, ...]:
    parts = text.split("\n", MAX_LINES)[:MAX_LINES]
    return tuple(dict.fromkeys(line for line in map(_line, parts) if line))


def _gap(other: int, place: int) -> float:
    return float(other - place) if other >= 0 else NAN


def outcome_of(kind: str, result: str, scratch: Collection[str] = ()) -> tuple[str, int]:
    """Return the class of a result (one of `OUTCOMES`) and the exit code that it states, 0 where it states none.

    Parameters
    ----------
    kind : str
        Kind of the command.
    result : str
    scratch : collection of str
        Files that the agent itself made: a traceback that ends in one of them is the agent's own mistake.
    """
    head, tail = result[:3_000], result[-3_000:]
    match = _CODE.search(head[:200]) or _CODE.search(tail[-200:])
    code = int(match.group(1)) if match else 0
    body = _TAGS.sub("", head).strip()
    if match is not None and match.start() < 30:
        body = body.removeprefix(match.group(1)).strip()
    if match is None and len(result) < 1_200 and _REFUSED.search(head[:300]) and "error" not in head[:20].lower():
        return "refused", code
    if _NO_EDIT.search(head):
        return "no_edit", code
    if not body:
        return "nothing", code
    if _CLIPPED.search(head[:400]) or _CLIPPED.search(tail[-200:]):
        return "clipped", code
    if kind in _LOOKS:
        return ("no_file" if len(body) < 600 and _NO_FILE.search(body) else "fine"), code
    if _NO_COMMAND.search(tail) and len(body) < 1_500:
        return "no_command", code
    if kind == "test" and _FAILED_TESTS.search(tail):
        return "failed_tests", code
    error = _ERROR.search(tail)
    if error is not None or "Traceback (most recent call last)" in result:
        frames = _FRAME.findall(tail)
        base = frames[-1].rsplit("/", 1)[-1].lower() if frames else ""
        own = any(path.rsplit("/", 1)[-1] == base for path in scratch) if base else False
        if own or base in ("<string>", "<stdin>") or _OWN_ERROR.search(tail):
            return "own_error", code
        return "error", code
    if code and len(body) < 600 and _NO_FILE.search(body):
        return "no_file", code
    return ("error" if code not in (0, 1) else "fine"), code


def canonical_paths(paths: Sequence[str]) -> dict[str, str]:
    """Map each spelling of a path to one: the shortest spelling that ends it, lower case."""
    clean = {path: re.sub(r"^(?:\./|~/)+", "", path.strip().strip("'\"")).rstrip("/").lower() for path in paths}
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(set(clean.values()), key=lambda name: (len(name), name)):
        groups[name.rsplit("/", 1)[-1]].append(name)
    chosen: dict[str, str] = {}
    for base, names in groups.items():
        roots: list[str] = []
        for name in names[:50]:
            ends = [root for root in roots if name.endswith("/" + root) and (root != base or len(names) == 2)]
            chosen[name] = ends[-1] if ends else name
            if not ends:
                roots.append(name)
    return {path: chosen.get(name, name) for path, name in clean.items()}


class CodingFacts:
    """What each step of a coding agent's run showed, changed, searched and ran.

    Parameters
    ----------
    view : TrajectoryView

    Attributes
    ----------
    active : bool
        Whether there is a call of a shell or an editor at all.
    """

    def __init__(self, view: TrajectoryView) -> None:
        self.view = view
        calls = view.trajectory.interactions
        actions = [action_of(item.call.name, item.call.arguments) for item in calls]
        self.active = any(action.kind != "none" for action in actions)
        if not self.active:
            return
        self._read(actions)
        self._trace_lines()
        self._trace_files()
        self.at_message = {step.call_index: step.ordinal for step in reversed(view.steps)}

    # ---- reading --------------------------------------------------------------------------------

    def _read(self, actions: Sequence[Action]) -> None:
        steps = self.view.steps
        opened = ""
        self.facts: list[_Facts] = []
        spelled: dict[str, None] = {}
        for action in actions:
            for path in (*action.named, *action.writes, *action.deletes, *action.restores, *action.runs):
                spelled[path] = None
            for path in writes_files(action.script) if action.creates else ():
                spelled[path] = None
        footers = [_OPEN_FILE.findall(step.result[-400:]) + _OPEN_FILE.findall(step.result[:200]) for step in steps]
        for found in footers:
            spelled.update(dict.fromkeys(path for pair in found for path in pair if path))
        self.canonical = canonical_paths(list(spelled))
        name = self.canonical
        hidden: dict[str, tuple[str, ...]] = {}
        self.scratch: dict[str, int] = {}
        touched: set[str] = set()
        for step, action, footer in zip(steps, actions, footers, strict=True):
            here = [path for pair in footer for path in pair if path]

            def known(paths: Sequence[str], here: list[str] = here, opened: str = opened) -> frozenset[str]:
                found = (path or (here[0] if here else opened) for path in paths)
                return frozenset(name.get(path, path) for path in found if path)

            facts = _Facts(action, look=action.kind in _LOOKS)
            facts.writes = known(action.writes)
            facts.creates, facts.deletes = known(action.creates), known(action.deletes)
            facts.restores, facts.runs = known(action.restores), known(action.runs)
            facts.paths = known(action.named) | facts.writes | facts.deletes | facts.restores | facts.runs
            for path in sorted(facts.creates):
                made = writes_files("\n".join(action.added))
                hidden[path] = tuple(name.get(other, other) for other in made)
                if path not in touched and path not in self.scratch:
                    self.scratch[path] = step.ordinal
            outcome, code = outcome_of(action.kind, step.result, self.scratch.keys())
            facts.outcome, facts.code = outcome, code
            if outcome in ("refused", "no_edit"):
                facts.writes = facts.creates = facts.deletes = facts.restores = frozenset()
            elif facts.runs:
                through = frozenset(other for path in sorted(facts.runs) for other in hidden.get(path, ()))
                facts.writes |= through - facts.runs
            touched |= facts.paths
            facts.looks = tuple(
                (next(iter(known([path])), ""), first, last) for path, first, last in self._seen(action, step)
            )
            facts.lines = _lines(step.result) if outcome != "refused" else ()
            facts.alike = _DIGITS.sub("#", step.result_key[:4_000])
            facts.patterns = frozenset(_SPACE.sub("", pattern).lower() for pattern in action.patterns)
            self.facts.append(facts)
            opened = here[0] if here else opened
        for facts in self.facts:
            changed = facts.writes | facts.restores
            facts.source = bool(changed) and any(path not in self.scratch for path in changed)

    @staticmethod
    def _seen(action: Action, step: StepView) -> list[tuple[str, int, int]]:
        """Return the line ranges shown; where the result numbers its lines, as far as it goes."""
        looks = list(action.looks)
        if len(looks) == 1 and (looks[0][2] == END or looks[0][0] == ""):
            rows = step.result.split("\n", MAX_LINES)[:MAX_LINES]
            numbers = [int(match.group(1)) for match in map(_NUMBERED.match, rows) if match]
            if len(numbers) > 2 and len(numbers) * 2 > len(rows):
                looks = [(looks[0][0], min(numbers), max(numbers))]
            elif looks[0][2] == END and looks[0][1] == 1 and len(rows) < MAX_LINES:
                looks = [(looks[0][0], 1, max(len(rows) - 4, 1))]
        return looks

    # ---- lines ----------------------------------------------------------------------------------

    def _trace_lines(self) -> None:
        """Find who showed each line first, which lines were the agent's own, and which were edited later."""
        shown: dict[str, list[int]] = {}
        written: dict[str, int] = {}
        last_change: dict[str, int] = {}
        self.edit_lines: dict[str, list[int]] = defaultdict(list)
        self.diff_added = ""
        self.diff_files: frozenset[str] = frozenset()
        removed: dict[str, None] = {}
        for place, facts in enumerate(self.facts):
            for text in facts.action.added:
                for line in _lines(text):
                    written.setdefault(line, place)
            for text in facts.action.removed:
                for line in _lines(text):
                    self.edit_lines[line].append(place)
            changed = max((last_change.get(path, -1) for path in sorted(facts.paths)), default=-1)
            for line in facts.lines:
                places = shown.setdefault(line, [])
                if not places:
                    facts.fresh += 1
                    facts.own += line in written
                else:
                    facts.first[places[0]] += 1
                    facts.old += places[-1] <= changed
                    for other in places:
                        facts.shown[other] += 1
                if len(places) < MAX_PLACES:
                    places.append(place)
            for path in sorted(facts.writes | facts.restores):
                last_change[path] = place
            result = self.view.steps[place].result
            if "diff --git " in result and facts.outcome != "clipped":
                body = result[result.index("diff --git ") :].split("\n")[: 4 * MAX_LINES]
                self.diff_added = "\x1f".join(
                    _SPACE.sub("", row[1:].replace("\\", ""))
                    for row in body
                    if row.startswith("+") and not row.startswith("+++")
                )
                removed = dict.fromkeys(
                    line for row in body if row[:1] in "-" and not row.startswith("---") for line in [_line(row[1:])]
                )
                self.diff_files = frozenset(
                    self.canonical.get(path, path.lower()) for path in _DIFF.findall("\n".join(body))
                )
        for facts in self.facts:
            facts.edited = sum(line in removed or line in self.edit_lines for line in facts.lines)
        wanted = {*removed, *self.edit_lines}
        self.first_edited = {
            shown[line][0] for line in sorted(wanted & shown.keys()) if self.facts[shown[line][0]].edited
        }

    # ---- files ----------------------------------------------------------------------------------

    def _trace_files(self) -> None:
        """Index which steps touch each file, and where the run looks and where it acts."""
        self.changes: dict[str, list[int]] = defaultdict(list)
        self.touches: dict[str, list[int]] = defaultdict(list)
        self.deleted: dict[str, list[int]] = defaultdict(list)
        self.restored: dict[str, list[int]] = defaultdict(list)
        self.run_at: dict[str, list[int]] = defaultdict(list)
        self.alike: dict[str, list[int]] = defaultdict(list)
        self.searches: dict[str, list[int]] = defaultdict(list)
        self.source_edits: list[int] = []
        self.tries: list[int] = []
        acts: list[int] = []
        for place, facts in enumerate(self.facts):
            for path in sorted(facts.paths):
                self.touches[path].append(place)
            for path in sorted(facts.writes | facts.restores):
                self.changes[path].append(place)
            for path in sorted(facts.deletes):
                self.deleted[path].append(place)
            for path in sorted(facts.restores):
                self.restored[path].append(place)
            for path in sorted(facts.runs):
                self.run_at[path].append(place)
            for pattern in sorted(facts.patterns):
                self.searches[pattern].append(place)
            self.alike[facts.alike].append(place)
            if facts.source:
                self.source_edits.append(place)
            if facts.action.kind in _TRIES or facts.runs:
                self.tries.append(place)
            if not facts.look:
                acts.append(place)
        self.acts = acts
        names = sorted(self.touches)
        bases: dict[str, list[str]] = defaultdict(list)
        for path in names:
            bases[path.rsplit("/", 1)[-1]].append(path)
        for place, facts in enumerate(self.facts):
            if facts.action.kind in ("search", "list"):
                atoms = {atom.split(":")[0].rsplit("/", 1)[-1] for atom in self.view.steps[place].atoms}
                facts.found = frozenset(
                    path for base in sorted(atoms & bases.keys()) for path in bases[base] if path not in facts.paths
                )

    @staticmethod
    def _after(places: Sequence[int] | None, place: int) -> int:
        """Return the first of the sorted `places` after `place`, -1 where there is none."""
        at = bisect_right(places, place) if places else 0
        return places[at] if places and at < len(places) else -1

    def _next(self, index: Mapping[str, Sequence[int]], paths: frozenset[str], place: int) -> int:
        """Return the first step after `place` that an index holds for one of the paths, -1 where there is none."""
        return min((found for path in paths if (found := self._after(index.get(path), place)) >= 0), default=-1)

    @staticmethod
    def _between(places: Sequence[int] | None, low: int, high: int) -> int:
        return bisect_left(places, high) - bisect_right(places, low) if places and high > low else 0

    def _changed(self, paths: frozenset[str], low: int, high: int) -> int:
        return sum(self._between(self.changes.get(path), low, high) for path in sorted(paths))

    def _covered(self, place: int) -> tuple[float, float, int]:
        """Return how much of a view the views since the file's last change showed: all of them, the best, and which."""
        facts = self.facts[place]
        total = covered = 0
        best, best_place = 0, -1
        for path, first, last in facts.looks:
            size = last - first + 1
            if not path or size <= 0:
                continue
            changes = self.changes.get(path, [])
            at = bisect_left(changes, place)
            start = changes[at - 1] if at else -1
            spans: list[tuple[int, int]] = []
            touches = self.touches[path]
            for other in touches[bisect_right(touches, start) : bisect_left(touches, place)][-40:]:
                got = 0
                for name, low, high in self.facts[other].looks:
                    low, high = max(low, first), min(high, last)
                    if name == path and low <= high:
                        spans.append((low, high))
                        got = max(got, high - low + 1)
                if got > best and self.facts[other].outcome != "clipped":
                    best, best_place = got, other
            total += min(size, 5_000)
            reach = first - 1
            for low, high in sorted(spans):
                covered += max(min(high, last) - max(low - 1, reach), 0)
                reach = max(reach, high)
        if not total:
            return NAN, NAN, -1
        return min(covered / total, 1.0), min(best / total, 1.0), best_place

    # ---- one row per target ---------------------------------------------------------------------

    def target(self, step: StepView) -> dict[str, float]:
        """Return the values of `CODING_TARGET_NAMES` that hold for a step."""
        if not self.active:
            return {}
        place = step.ordinal
        facts = self.facts[place]
        n = len(self.facts)
        count = len(facts.lines)
        cover, best_cover, _ = self._covered(place)
        paths = facts.paths
        source = frozenset(path for path in paths if path not in self.scratch)
        next_change = self._next(self.changes, source, place)
        touch = self._next(self.touches, paths, place)
        first_act = self._after(self.acts, place)
        at = bisect_left(self.acts, place)
        last_act = self.acts[at - 1] if at else -1
        last_source = (
            self.source_edits[bisect_left(self.source_edits, place) - 1]
            if self.source_edits and self.source_edits[0] < place
            else -1
        )
        best = max(facts.first.items(), key=lambda item: (item[1], -item[0]), default=(-1, 0))
        whole = min((other for other, got in facts.shown.items() if got >= NEARLY_ALL * count), default=-1)
        alike = self.alike[facts.alike]
        like_at = bisect_left(alike, place)
        prev_like = alike[like_at - 1] if like_at else -1
        values: dict[str, float] = {
            "outcome": OUTCOMES.index(facts.outcome),
            "code": facts.code,
            "lines_n": math.log1p(count),
            "lines_new_f": facts.fresh / count if count else NAN,
            "lines_own_f": facts.own / max(facts.fresh, 1) if count else NAN,
            "lines_old_f": facts.old / count if count else NAN,
            "lines_best_f": best[1] / count if count else NAN,
            "lines_whole_gap": _gap(whole, place),
            "lines_whole_changed_n": self._changed(paths, whole, place) if whole >= 0 else NAN,
            "lines_edited_n": min(facts.edited, 20),
            "lines_edited_first_is": place in self.first_edited,
            "range_union_f": cover,
            "range_best_f": best_cover,
            "path_diff_is": bool(paths & self.diff_files) if self.diff_files else NAN,
            "path_change_gap": _gap(next_change, place),
            "path_touch_gap": _gap(touch, place),
            "path_touched_n": sum(bisect_left(self.touches[x], place) for x in sorted(paths)),
            "path_scratch_is": bool(paths) and not source,
            "path_changed_before_n": self._changed(paths, -1, place),
            "act_gap": _gap(first_act, place),
            "look_run_n": place - last_act,
            "next_act_kind": COMMAND_KINDS.index(self.facts[first_act].action.kind) if first_act >= 0 else NAN,
            "next_kind": COMMAND_KINDS.index(self.facts[place + 1].action.kind) if place + 1 < n else NAN,
            "prev_kind": COMMAND_KINDS.index(self.facts[place - 1].action.kind) if place else NAN,
            "next_outcome": OUTCOMES.index(self.facts[place + 1].outcome) if place + 1 < n else NAN,
            "prev_outcome": OUTCOMES.index(self.facts[place - 1].outcome) if place else NAN,
            "source_edits_before_n": bisect_left(self.source_edits, place),
            "source_edits_after_n": len(self.source_edits) - bisect_right(self.source_edits, place),
            "since_source_edit_n": place - last_source if last_source >= 0 else NAN,
            "tries_since_source_edit_n": self._between(self.tries, last_source, place) if last_source >= 0 else NAN,
            "like_before_n": like_at,
            "like_gap": _gap(prev_like, place),
            "like_source_edits_n": self._between(self.source_edits, prev_like, place) if prev_like >= 0 else NAN,
            "found_opened_n": sum(self._after(self.touches.get(x), place) >= 0 for x in sorted(facts.found)),
            "found_changed_n": sum(self._after(self.changes.get(x), place) >= 0 for x in sorted(facts.found)),
            "pattern_before_n": sum(bisect_left(self.searches[x], place) for x in sorted(facts.patterns)),
        }
        values.update(self._change_values(place, facts))
        values.update(self._try_values(place, facts))
        return values

    def _change_values(self, place: int, facts: _Facts) -> dict[str, float]:
        """Describe what becomes of an edit: changed again, taken back, or part of the final patch."""
        if not facts.writes:
            return {}
        again = self._next(self.changes, facts.writes, place)
        undone = self._next(self.restored, facts.writes, place)
        if undone < 0:
            undone = self._after(self.restored.get("*"), place)
        gone = self._next(self.deleted, facts.writes, place)
        pieces = [
            _SPACE.sub("", piece.replace("\\", "")) for text in facts.action.added for piece in text.split("\n")[:200]
        ]
        pieces = [piece for piece in pieces if len(piece) >= 4][:MAX_PIECES]
        ran = self._next(self.run_at, facts.writes, place - 1)
        return {
            "edit_again_gap": _gap(again, place),
            "edit_again_tries_n": self._between(self.tries, place, again) if again >= 0 else NAN,
            "edit_undone_gap": _gap(undone, place),
            "edit_gone_gap": _gap(gone, place),
            "edit_kept_f": sum(piece in self.diff_added for piece in pieces) / len(pieces)
            if pieces and self.diff_added
            else NAN,
            "edit_run_gap": _gap(ran, place),
            "edit_run_outcome": OUTCOMES.index(self.facts[ran].outcome) if ran >= 0 else NAN,
            "edit_run_new_f": self.facts[ran].fresh / max(len(self.facts[ran].lines), 1) if ran >= 0 else NAN,
            "edit_run_like_is": bool(bisect_left(self.alike[self.facts[ran].alike], ran)) if ran >= 0 else NAN,
            "edit_source_is": facts.source,
        }

    def _try_values(self, place: int, facts: _Facts) -> dict[str, float]:
        """Describe a run of a script or test: since when it is the same, and what becomes of the script."""
        if not facts.runs:
            return {}
        before = max(
            (runs[at - 1] for x in sorted(facts.runs) if (runs := self.run_at[x]) and (at := bisect_left(runs, place))),
            default=-1,
        )
        again = self._next(self.run_at, facts.runs, place)
        change = self._next(self.changes, facts.runs, place)
        gone = self._next(self.deleted, facts.runs, place)
        return {
            "run_before_gap": _gap(before, place),
            "run_before_source_edits_n": self._between(self.source_edits, before, place) if before >= 0 else NAN,
            "run_before_script_changes_n": self._changed(facts.runs, before, place) if before >= 0 else NAN,
            "run_before_like_is": self.facts[before].alike == facts.alike if before >= 0 else NAN,
            "run_again_gap": _gap(again, place),
            "run_change_gap": _gap(change, place),
            "run_gone_gap": _gap(gone, place),
            "run_scratch_is": any(path in self.scratch for path in facts.runs),
        }

    # ---- one row per pair -----------------------------------------------------------------------

    def pairs(self, target: StepView, candidates: Sequence[Candidate]) -> np.ndarray:
        """Return the values of `CODING_PAIR_NAMES`, one row for each candidate."""
        rows = np.full((len(candidates), len(CODING_PAIR_NAMES)), np.nan, dtype=np.float32)
        if not self.active:
            return rows
        place = target.ordinal
        facts = self.facts[place]
        count = len(facts.lines)
        first_act = self._after(self.acts, place)
        order: list[tuple[int, int]] = []
        for at, candidate in enumerate(candidates):
            if candidate.kind == "policy":
                continue
            if candidate.kind == "message":
                other = self.at_message.get(candidate.members[0], -1)
                if other < 0:
                    continue
            else:
                other = candidate.members[0]
            if candidate.kind == "step":
                order.append((at, other))
            its = self.facts[other]
            low, high = min(other, place), max(other, place)
            members = candidate.members if candidate.kind == "joint" else (other,)
            shown = max(facts.shown.get(member, 0) for member in members)
            same = facts.paths & its.paths
            values = (
                COMMAND_KINDS.index(its.action.kind),
                OUTCOMES.index(its.outcome),
                its.look,
                len(same) / max(len(facts.paths | its.paths), 1),
                bool(facts.writes & its.runs),
                bool(its.writes & facts.runs),
                bool(facts.runs & its.runs),
                bool(facts.writes & its.writes),
                bool(facts.found & its.paths),
                shown / count if count else NAN,
                sum(facts.first.get(member, 0) for member in members) / count if count else NAN,
                self._look_cover(facts, its),
                self._changed(facts.paths, low, high),
                self._between(self.source_edits, low, high),
                self._between(self.acts, low, high),
                self._between(self.tries, low, high),
                its.alike == facts.alike,
                min(its.edited, 20),
                other in self.first_edited,
                bool(its.paths & self.diff_files) if self.diff_files else NAN,
                its.fresh / len(its.lines) if its.lines else NAN,
                bool(facts.patterns & its.patterns),
                other - first_act if first_act >= 0 else NAN,
                its.outcome == facts.outcome,
            )
            rows[at, : len(values)] = values
        self._ranks(rows, order, place)
        return rows

    def _look_cover(self, facts: _Facts, its: _Facts) -> float:
        """Share of the lines that one step views which another viewed of the same file."""
        total = covered = 0
        for path, first, last in facts.looks:
            total += min(last - first + 1, 5_000)
            best = 0
            for name, low, high in its.looks:
                if name == path:
                    best = max(best, min(high, last) - max(low, first) + 1)
            covered += min(best, 5_000)
        return covered / total if total > 0 and its.looks else NAN

    def _ranks(self, rows: np.ndarray, order: Sequence[tuple[int, int]], place: int) -> None:
        facts = self.facts[place]
        count = len(facts.lines)

        def mark(name: str, places: list[int]) -> None:
            for rank, at in enumerate(places[:4]):
                rows[at, _PAIR_COLUMN[name]] = rank

        before = [(at, other) for at, other in order if other < place]
        after = [(at, other) for at, other in order if other > place]
        kinds = self.facts
        tries = set(self.tries)
        mark("whole_rank", [at for at, other in before if count and facts.shown.get(other, 0) >= NEARLY_ALL * count])
        ranked = sorted(before, key=lambda item: (-facts.first.get(item[1], 0), item[1]))
        mark("lines_first_rank", [at for at, other in ranked if facts.first.get(other, 0)])
        mark("like_rank", [at for at, other in before if kinds[other].alike == facts.alike])
        mark(
            "same_outcome_rank",
            [at for at, other in before if kinds[other].outcome == facts.outcome and facts.outcome != "fine"],
        )
        mark("run_before_rank", [at for at, other in reversed(before) if kinds[other].runs & facts.runs])
        mark("next_act_rank", [at for at, other in after if not kinds[other].look])
        mark("next_edit_rank", [at for at, other in after if kinds[other].source])
        mark("next_look_rank", [at for at, other in after if kinds[other].look and kinds[other].outcome == "fine"])
        mark("next_path_rank", [at for at, other in after if kinds[other].paths & facts.paths])
        mark(
            "next_path_look_rank", [at for at, other in after if kinds[other].look and kinds[other].paths & facts.paths]
        )
        mark("next_edited_rank", [at for at, other in after if kinds[other].edited and kinds[other].look])
        mark("next_run_rank", [at for at, other in after if kinds[other].runs & (facts.runs | facts.writes)])
        mark("next_ok_try_rank", [
            at for at, other in after
            if kinds[other].outcome in ("fine", "failed_tests") and other in tries
        ])  # fmt: skip
        mark("next_rewrite_rank", [at for at, other in after if kinds[other].writes & (facts.writes | facts.runs)])
        mark("next_found_rank", [at for at, other in after if kinds[other].paths & facts.found])


CODING_TARGET_NAMES: tuple[str, ...] = tuple(
    """outcome code lines_n lines_new_f lines_own_f lines_old_f lines_best_f lines_whole_gap lines_whole_changed_n
    lines_edited_n lines_edited_first_is range_union_f range_best_f path_diff_is path_change_gap path_touch_gap
    path_touched_n path_scratch_is path_changed_before_n act_gap look_run_n next_act_kind next_kind prev_kind
    next_outcome prev_outcome source_edits_before_n source_edits_after_n since_source_edit_n
    tries_since_source_edit_n like_before_n like_gap like_source_edits_n found_opened_n found_changed_n
    pattern_before_n edit_again_gap edit_again_tries_n edit_undone_gap edit_gone_gap edit_kept_f edit_run_gap
    edit_run_outcome edit_run_new_f edit_run_like_is edit_source_is run_before_gap run_before_source_edits_n
    run_before_script_changes_n run_before_like_is run_again_gap run_change_gap run_gone_gap run_scratch_is""".split()
)
CODING_PAIR_NAMES: tuple[str, ...] = tuple(
    """c_kind c_outcome c_look_is c_paths_f c_runs_written_is c_wrote_run_is c_same_run_is c_same_write_is
    c_opens_found_is c_lines_f c_lines_first_f c_range_f c_path_changes_n c_source_edits_n c_acts_n c_tries_n
    c_like_is c_edited_n c_edited_first_is c_diff_is c_fresh_f c_pattern_is c_act_offset c_same_outcome_is
    whole_rank lines_first_rank like_rank same_outcome_rank run_before_rank next_act_rank next_edit_rank
    next_look_rank next_path_rank next_path_look_rank next_edited_rank next_run_rank next_ok_try_rank
    next_rewrite_rank next_found_rank""".split()
)
_PAIR_COLUMN = {name: place for place, name in enumerate(CODING_PAIR_NAMES)}
