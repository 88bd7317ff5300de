"""The evidence candidates of a target step: few enough to score, wide enough to hold the answer."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from redclf.relations.views import StepView, TrajectoryView

Kind = Literal["step", "message", "joint", "policy"]

#: Other interactions considered per target.
MAX_STEPS = 40
#: Nearest interactions on each side that are always considered.
WINDOW = 8
#: Joint sets considered per target.
MAX_JOINT = 3
#: Facts and identifiers of a target that joint sets are built to cover.
MAX_WANTED = 400


@dataclass(frozen=True, slots=True)
class Candidate:
    """One possible evidence of a target.

    Parameters
    ----------
    kind : {"step", "message", "joint", "policy"}
    members : tuple of int
        Ordinals of the interactions (`step`, `joint`), or the message's index (`message`).
    evidence : tuple of int
        The reference in the benchmark's form.
    """

    kind: Kind
    members: tuple[int, ...]
    evidence: tuple[int, ...]


POLICY = Candidate("policy", (), (-1,))


class CandidateIndex:
    """Finds candidates by call, result and shared identifiers, without comparing all pairs."""

    def __init__(self, view: TrajectoryView) -> None:
        self.view = view
        self.by_call: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.by_result: dict[str, list[int]] = defaultdict(list)
        self.by_tool: dict[str, list[int]] = defaultdict(list)
        self.by_fact: dict[str, list[int]] = defaultdict(list)
        for step in view.steps:
            self.by_call[step.call_key].append(step.ordinal)
            self.by_result[step.result_key].append(step.ordinal)
            self.by_tool[step.tool].append(step.ordinal)
            for fact in step.facts:
                places = self.by_fact[fact]
                if len(places) < 32:
                    places.append(step.ordinal)
        self.results = [step.result_index for step in view.steps]
        # Results of parallel or slow calls may come out of order: running bounds keep searches logarithmic.
        self._highest = list(accumulate(self.results, max))
        self._lowest = list(accumulate(reversed(self.results), min))[::-1]
        self._useful = [step.ordinal for step in view.steps if step.failure is None and step.assistant]

    def steps(self, target: StepView) -> list[int]:
        """Return ordinals of the interactions that could be evidence, in their order."""
        steps = self.view.steps
        here = target.ordinal
        if len(steps) <= MAX_STEPS + 1:
            return [step.ordinal for step in steps if step.ordinal != here]
        chosen: dict[int, None] = {}
        for near in range(max(0, here - WINDOW), min(len(steps), here + WINDOW + 1)):
            chosen[near] = None
        for places in (self.by_call[target.call_key], self.by_result[target.result_key]):
            for place in (*places[:2], *places[-2:], *_around(places, here)):
                chosen[place] = None
        for place in _around(self.by_tool[target.tool], here, 4):
            chosen[place] = None
        shared: Counter[int] = Counter()
        for fact in sorted(target.facts):
            shared.update(self.by_fact[fact])
        for atom in sorted(target.arg_ids):
            for place in self.view.in_args.get(atom, ())[:32]:
                shared[place] += 3
        for place, _ in shared.most_common(MAX_STEPS):
            if len(chosen) > MAX_STEPS:
                break
            chosen[place] = None
        chosen.pop(here, None)
        return sorted(chosen)

    def messages(self, target: StepView) -> list[int]:
        """Return indices of the single messages that could be evidence."""
        view = self.view
        call, result = target.call_index, target.result_index
        users, texts = view.user_texts, view.assistant_texts
        asked = bisect_left(users, call)
        chosen = {*users[max(0, asked - 4) : asked], *users[: min(asked, 1)]}
        answered = bisect_right(users, result)
        chosen.update(users[answered : answered + 2])
        said = bisect_right(texts, call)
        chosen.update(texts[max(0, said - 2) : said])
        chosen.update(texts[said : said + 5])
        if said < len(texts):
            chosen.add(texts[-1])
        chosen.add(result)
        chosen.update(self._results_after(result, 2))
        before = bisect_left(self._lowest, call)
        if before:
            chosen.add(self.results[before - 1])
        return sorted(chosen)

    def _results_after(self, index: int, count: int) -> list[int]:
        """Return the first `count` results, in the order of their calls, that come after message `index`."""
        found: list[int] = []
        place = bisect_right(self._highest, index)
        while place < len(self.results) and len(found) < count:
            if self.results[place] > index:
                found.append(self.results[place])
            place += 1
        return found

    def joint(self, target: StepView) -> list[tuple[int, ...]]:
        """Return small sets of earlier steps that together hold what the target returned.

        Greedy set cover over the target's facts and identifiers, from the earliest steps on.
        """
        if not target.facts and not target.ids:
            return []
        wanted: set[str] = set(target.facts) | set(target.ids) | set(target.arg_ids)
        if len(wanted) > MAX_WANTED:
            wanted = set(sorted(wanted)[:MAX_WANTED])
        earlier = self._earlier(target)
        has = {s.ordinal: (wanted & s.facts) | (wanted & s.atoms) | (wanted & s.arg_ids) for s in earlier}
        sets: list[tuple[int, ...]] = []
        used: set[int] = set()
        for _ in range(MAX_JOINT):
            left = set(wanted)
            chosen: list[int] = []
            while left and len(chosen) < 3:
                gains = [
                    (len(has[s.ordinal] & left), -s.ordinal)
                    for s in earlier
                    if s.ordinal not in chosen and not (not chosen and s.ordinal in used)
                ]
                gain, place = max(gains, default=(0, 0))
                if gain == 0:
                    break
                chosen.append(-place)
                left -= has[-place]
            if len(chosen) < 2:
                break
            used.add(chosen[0])
            for size in (2, 3):
                pick = tuple(sorted(chosen[:size]))
                if len(pick) == size and pick not in sets:
                    sets.append(pick)
        return sets[: MAX_JOINT + 1]

    def _earlier(self, target: StepView) -> list[StepView]:
        """Return the latest assistant's steps, up to a limit, that had succeeded before the target's call."""
        steps = self.view.steps
        place = bisect_left(self._useful, target.ordinal - target.place)
        found: list[StepView] = []
        while place and len(found) < MAX_STEPS:
            place -= 1
            step = steps[self._useful[place]]
            if step.result_index < target.call_index:
                found.append(step)
        return found[::-1]

    def all(self, target: StepView) -> list[Candidate]:
        """Return every candidate of a target."""
        steps = self.view.steps
        found = [Candidate("step", (place,), _ref(steps[place])) for place in self.steps(target)]
        for members in self.joint(target):
            evidence = tuple(index for place in members for index in _ref(steps[place]))
            found.append(Candidate("joint", members, evidence))
        found += [Candidate("message", (index,), (index,)) for index in self.messages(target)]
        found.append(POLICY)
        return found


def _ref(step: StepView) -> tuple[int, int]:
    return (step.call_index, step.result_index)


def _around(places: list[int], here: int, count: int = 2) -> list[int]:
    """Return the `count` places before and after `here`."""
    before, after = bisect_left(places, here), bisect_right(places, here)
    return places[max(0, before - count) : before] + places[after : after + count]
