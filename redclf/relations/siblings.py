"""Which of several like look-ups was the one that mattered.

*Siblings* are the assistant's calls of the same tool within one turn of the user: an agent that looks for
something asks the same tool about one object after another. A sibling is a *hit* when its own object,
what its arguments name and the other calls of that tool do not, is taken up later. The earlier siblings
then only ruled something out, and the later ones went on after the target was found.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from redclf.relations.candidates import Candidate
from redclf.relations.views import StepView, TrajectoryView

NAN = math.nan
#: Siblings looked at one by one, around a step.
MAX_SIBLINGS = 16

_WANTS_ALL = re.compile(
    r"\b(all|every|each|both|everything|any of|as many|total|list|rest of|other ones|multiple|several)\b", re.I
)
_TODAY = re.compile(r"(?:current|today)[^\n]{0,40}?(20\d\d-\d\d-\d\d)", re.I)
_DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")

TARGET_NAMES: tuple[str, ...] = tuple(
    """taken named_by_next_user_is siblings_n hits_n hits_known_n hits_later_n hits_same_message_n hit_position
    first_hit_place last_hit_gap after_last_hit_n refused_all_from_user_is exact_repeat_is wants_all_is
    date_past_is""".split()
)
#: Facts about the other members of the same message and about the other messages' steps. They tell whether
#: a step is redundant; a model of its category only learns single trajectories by heart from them.
GROUP_NAMES: tuple[str, ...] = tuple(
    """group_used_f group_taken_f group_said_f group_unused_n group_tools_n group_first_is group_writes_n
    other_groups_n others_unused_n others_unused_f others_repeated_n others_failed_n""".split()
)
PAIR_NAMES: tuple[str, ...] = tuple(
    """other_taken next_hit_is previous_hit_is first_hit_is last_hit_is hit_same_message_is sibling_is
    next_user_step_is next_new_facts_is other_named_next_is message_of_hit_is message_of_group_is
    message_names_hit_is message_names_target_is""".split()
)
_PAIR = {name: place for place, name in enumerate(PAIR_NAMES)}


class Siblings:
    """Hits among like look-ups, and how much of what a step asked about was taken up.

    Parameters
    ----------
    view : TrajectoryView
    write_atoms : mapping
        Atom to the ordinals of the writes that name it, ascending.
    """

    def __init__(self, view: TrajectoryView, write_atoms: Mapping[str, Sequence[int]]) -> None:
        self.view = view
        steps = view.steps
        self._own = self._own_objects()
        self._levels = [self._level(step, write_atoms) for step in steps]
        self._siblings: dict[tuple[str, int], list[int]] = defaultdict(list)
        self._groups: dict[int, list[int]] = defaultdict(list)
        for step in steps:
            if step.assistant:
                self._siblings[step.tool, step.turn].append(step.ordinal)
                self._groups[step.call_index].append(step.ordinal)
        self._hits = {key: self._find_hits(places) for key, places in self._siblings.items()}
        self._parallel = sorted(index for index, places in self._groups.items() if len(places) > 1)
        self._repeats = self._exact_repeats()
        today = _TODAY.search(view.trajectory.policy[:60_000])
        self._today = today.group(1) if today else None
        self._user_steps = [step.ordinal for step in steps if not step.assistant]
        self._new_facts = [step.ordinal for step in steps if step.new_facts > 0]
        self._seen_of_user = self._user_first()
        assistant = [step for step in steps if step.assistant]
        unused = [step for step in assistant if not any(self._levels[step.ordinal]) and not step.write]
        self._counts = {
            "unused": Counter(step.call_index for step in unused),
            "repeated": Counter(step.call_index for step in assistant if self._called_before[step.ordinal]),
            "failed": Counter(step.call_index for step in assistant if step.failure is not None),
            "all": Counter(step.call_index for step in assistant),
        }
        self._totals = {name: counts.total() for name, counts in self._counts.items()}
        self._group_results = {
            index: {steps[place].result_index for place in places} for index, places in self._groups.items()
        }

    def _own_objects(self) -> list[frozenset[str]]:
        """Return what each call names that the tool's other calls do not all name; all of it where nothing is left."""
        shared: dict[str, frozenset[str]] = {}
        count: dict[str, int] = defaultdict(int)
        for step in self.view.steps:
            count[step.tool] += 1
            shared[step.tool] = step.arg_ids if step.tool not in shared else shared[step.tool] & step.arg_ids
        return [
            (step.arg_ids - shared[step.tool] if count[step.tool] > 1 else step.arg_ids) or step.arg_ids
            for step in self.view.steps
        ]

    def _level(self, step: StepView, write_atoms: Mapping[str, Sequence[int]]) -> tuple[bool, bool, bool, bool]:
        """Return whether the step's object is in a later write, user's text, assistant's text; and its result used."""
        view = self.view
        own = self._own[step.ordinal]
        return (
            any(_after(write_atoms.get(atom), step.ordinal) for atom in own),
            any(_after(view.in_user.get(atom), step.result_index) for atom in own),
            any(_after(view.in_text.get(atom), step.result_index) for atom in own),
            any(_after(view.in_args.get(atom), step.ordinal) for atom in step.new_atoms if atom in step.ids),
        )

    def _find_hits(self, places: Sequence[int]) -> list[int]:
        """Return the siblings that reach the first level which some but not all of them reach."""
        for level in range(4):
            reached = [p for p in places if self._levels[p][level] and self.view.steps[p].failure is None]
            if reached and len(reached) < len(places):
                return reached
        return []

    def _exact_repeats(self) -> set[int]:
        """Return the steps that repeat call and result of one which had returned, nothing written between."""
        last: dict[tuple[tuple[str, str], str], StepView] = {}
        calls: set[tuple[str, str]] = set()
        self._called_before: list[bool] = []
        writes = [step.ordinal for step in self.view.steps if step.write]
        found: set[int] = set()
        for step in self.view.steps:
            self._called_before.append(step.call_key in calls)
            calls.add(step.call_key)
            key = (step.call_key, step.result_key)
            earlier = last.get(key)
            if (
                earlier is not None
                and earlier.result_index < step.call_index
                and step.failure != "transient"
                and bisect_left(writes, step.ordinal) == bisect_right(writes, earlier.ordinal)
            ):
                found.add(step.ordinal)
            last[key] = step
        return found

    def _user_first(self) -> dict[str, int]:
        """Return, per atom, the first message of the user that holds it."""
        return {atom: places[0] for atom, places in self.view.in_user.items() if places}

    def _known(self, step: StepView, hits: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
        """Return the hits that had returned before a step's call, those still to come, and those beside it."""
        steps = self.view.steps
        at = bisect_left(hits, step.ordinal)
        near = hits[max(0, at - MAX_SIBLINGS) : at + MAX_SIBLINGS]
        known = [p for p in near if p != step.ordinal and steps[p].result_index < step.call_index]
        later = [p for p in near if p > step.ordinal and steps[p].call_index != step.call_index]
        beside = [p for p in near if p != step.ordinal and steps[p].call_index == step.call_index]
        return known, later, beside

    def target(self, step: StepView) -> list[float]:
        """Return a step's facts, in the order of `TARGET_NAMES` and then `GROUP_NAMES`."""
        view, place = self.view, step.ordinal
        siblings = self._siblings[step.tool, step.turn]
        hits = self._hits[step.tool, step.turn]
        known, later, beside = self._known(step, hits)
        if _holds(hits, place):
            position = 5.0
        elif not hits:
            position = 0.0
        elif known:
            position = 2.0 if later or beside else 1.0
        else:
            position = 3.0 if beside else 4.0
        after = bisect_right(view.user_texts, step.result_index)
        following = view.user_texts[after] if after < len(view.user_texts) else None
        asked = view.user_texts[after - 1] if after else None
        dates = _DATE.findall(step.arguments)
        rejected_from_user = NAN
        if step.failure == "rejected":
            first = self._seen_of_user
            rejected_from_user = float(
                all(first.get(atom, step.call_index) < step.call_index for atom in step.arg_atoms)
            )
        messages = view.trajectory.messages
        values = [
            _level_code(self._levels[place]),
            following is not None and not self._own[place].isdisjoint(view.text_atoms.get(following, frozenset())),
            len(siblings),
            len(hits),
            len(known),
            len(later),
            len(beside),
            position,
            bisect_left(siblings, hits[0]) if hits else NAN,
            place - hits[-1] if hits else NAN,
            len(siblings) - bisect_right(siblings, hits[-1]) if hits else NAN,
            rejected_from_user,
            place in self._repeats,
            asked is not None and bool(_WANTS_ALL.search(messages[asked].content[:4_000])),
            min(dates) < self._today if dates and self._today else NAN,
        ]
        return [float(value) for value in values] + self._group(step)

    def _group(self, step: StepView) -> list[float]:
        group = self._groups.get(step.call_index, ())
        inner = [NAN] * 7
        if len(group) > 1:
            near = group[max(0, step.place - MAX_SIBLINGS) : step.place + MAX_SIBLINGS]
            levels = [self._levels[place] for place in near]
            count = len(near)
            inner = [
                sum(any(level) for level in levels) / count,
                sum(level[0] or level[1] for level in levels) / count,
                sum(level[2] for level in levels) / count,
                float(sum(not any(level[:3]) for level in levels)),
                float(len({self.view.steps[place].tool for place in near})),
                float(step.call_index == self._parallel[0]),
                float(sum(self.view.steps[place].verb > 0 for place in near)),
            ]
        elsewhere = {name: total - self._counts[name][step.call_index] for name, total in self._totals.items()}
        return [
            *inner,
            float(len(self._parallel) - (len(group) > 1)),
            float(elsewhere["unused"]),
            elsewhere["unused"] / max(elsewhere["all"], 1),
            float(elsewhere["repeated"]),
            float(elsewhere["failed"]),
        ]

    def pairs(self, step: StepView, candidates: Sequence[Candidate]) -> np.ndarray:
        """Return the facts of a target and its candidates, shape (n_candidates, len(PAIR_NAMES)), NaN where none."""
        view, steps = self.view, self.view.steps
        key = (step.tool, step.turn)
        hits = self._hits[key]
        at, end = bisect_left(hits, step.ordinal), bisect_right(hits, step.ordinal)
        previous = hits[at - 1] if at else None
        following = hits[end] if end < len(hits) else None
        near = {p for p in hits[max(0, at - MAX_SIBLINGS) : end + MAX_SIBLINGS] if p != step.ordinal}
        near_results = {steps[p].result_index for p in near}
        named = frozenset[str]().union(*(self._own[p] for p in sorted(near)))
        user_step = _next(self._user_steps, step.ordinal)
        new_facts = _next(self._new_facts, step.ordinal)
        after = bisect_right(view.assistant_texts, step.result_index)
        reply = frozenset[str]()
        if after < len(view.assistant_texts):
            reply = view.text_atoms.get(view.assistant_texts[after], reply)
        group_results = self._group_results.get(step.call_index, set())
        own = self._own[step.ordinal]
        rows = np.full((len(candidates), len(PAIR_NAMES)), np.nan, dtype=np.float32)
        for row, candidate in zip(rows, candidates, strict=True):
            if candidate.kind == "step":
                place = candidate.members[0]
                other = steps[place]
                row[:10] = (
                    _level_code(self._levels[place]),
                    place == following,
                    place == previous,
                    bool(hits) and place == hits[0],
                    bool(hits) and place == hits[-1],
                    place in near and other.call_index == step.call_index,
                    (other.tool, other.turn) == key,
                    place == user_step,
                    place == new_facts,
                    not self._own[place].isdisjoint(reply),
                )
            elif candidate.kind == "message":
                index = candidate.members[0]
                atoms = view.text_atoms.get(index, frozenset())
                row[_PAIR["message_of_hit_is"] :] = (
                    index in near_results,
                    index in group_results and index != step.result_index,
                    not named.isdisjoint(atoms),
                    not own.isdisjoint(atoms),
                )
        return rows


def _after(places: Sequence[int] | None, after: int) -> bool:
    """Return whether the last of the sorted `places` comes after `after`."""
    return bool(places) and places[-1] > after  # type: ignore[index]


def _holds(places: Sequence[int], place: int) -> bool:
    """Return whether sorted `places` hold a place."""
    at = bisect_left(places, place)
    return at < len(places) and places[at] == place


def _next(places: Sequence[int], after: int) -> int | None:
    at = bisect_right(places, after)
    return places[at] if at < len(places) else None


def _level_code(level: tuple[bool, bool, bool, bool]) -> float:
    return 8.0 * level[0] + 4.0 * level[1] + 2.0 * level[2] + level[3]
