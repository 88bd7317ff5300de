"""Numeric relations: one row for each target step, and one for each (target, candidate) pair.

Every value is a plain float that a person can check against the trace. Names ending in `_n` are
counts, `_f` fractions in [0, 1], `_is` flags. Missing values are NaN.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from redclf.relations.candidates import Candidate, CandidateIndex
from redclf.relations.coding import CODING_PAIR_NAMES, CODING_TARGET_NAMES, CodingFacts
from redclf.relations.commands import COMMAND_KINDS
from redclf.relations.siblings import GROUP_NAMES, Siblings
from redclf.relations.siblings import PAIR_NAMES as SIBLING_PAIR_NAMES
from redclf.relations.siblings import TARGET_NAMES as SIBLING_TARGET_NAMES
from redclf.relations.views import StepView, TrajectoryView

NAN = math.nan
_FAILURES = {None: 0.0, "transient": 1.0}
#: Changes between two steps that are looked at one by one.
MAX_CHANGES = 30
_KINDS = {"step": 0.0, "joint": 1.0, "message": 2.0, "policy": 3.0}


def _share(part: int, whole: int) -> float:
    return part / whole if whole else NAN


def _max(a: float, b: float) -> float:
    """Return the larger of two values, NaN counting as absent."""
    return b if math.isnan(a) else a if math.isnan(b) else max(a, b)


def _known(value: float) -> float:
    """Return a value, 0 where it is missing."""
    return 0.0 if math.isnan(value) else float(value)


def _jaccard(a: frozenset, b: frozenset) -> float:
    both = len(a & b)
    union = len(a) + len(b) - both
    return both / union if union else NAN


@dataclass(slots=True)
class _Use:
    """Where the new values of a step's result turn up later."""

    args: int
    write: int
    text: int
    next_text: int
    user: int
    ids: int
    first_arg: float
    word_text: float
    asked: float
    asked_best: float


class _Mates:
    """Steps with the same tool in the same turn: their best scores before, after and in all.

    Parameters
    ----------
    places : list of int
        Their ordinals, ascending.
    scores, asked : list of float
    """

    def __init__(self, places: list[int], scores: list[float], asked: list[float]) -> None:
        self.places = places
        self.score_before, self.score_after = _running(scores)
        self.asked_before, self.asked_after = _running(asked)
        self.best_score, self.best_asked = max(scores), max(asked)
        self.best = places[scores.index(self.best_score)]


def _running(values: list[float]) -> tuple[list[float], list[float]]:
    """Return, per place, the largest value before it and after it; NaN where there is none."""
    before = [NAN, *accumulate(values[:-1], max)]
    after = [NAN, *accumulate(reversed(values[1:]), max)][::-1]
    return before, after


class Relations:
    """All relations of one trajectory.

    Parameters
    ----------
    view : TrajectoryView
    extra : mapping, optional
        Target's ordinal to one more candidate, which becomes its last.

    Attributes
    ----------
    targets : list of int
        Ordinals of the assistant's interactions.
    target_features : ndarray of shape (n_targets, len(TARGET_NAMES)), float32
    candidates : list of list of Candidate
        Per target.
    pair_features : list of ndarray of shape (n_candidates, len(PAIR_NAMES)), float32
    """

    def __init__(self, view: TrajectoryView, extra: Mapping[int, Candidate] | None = None) -> None:
        self.view = view
        self.index = CandidateIndex(view)
        self.coding = CodingFacts(view)
        steps = view.steps
        self.targets = [step.ordinal for step in steps if step.assistant]
        self.writes = [step.ordinal for step in steps if step.write]
        self.write_atoms: dict[str, list[int]] = defaultdict(list)
        for place in self.writes:
            for atom in steps[place].arg_atoms:
                self.write_atoms[atom].append(place)
        self.last_edit = {file: place for place in self.writes for file in steps[place].command.writes}
        self.values = [frozenset(step.values) for step in steps]
        self.use = [self._use(step) for step in steps]
        self.score = [self._use_score(place) for place in range(len(steps))]
        self.run_of = self._runs()
        self.mates = self._mates()
        self.tool_best = {
            tool: max(self.score[place] for place in places) for tool, places in self.index.by_tool.items()
        }
        self.group_best: dict[int, float] = {}
        for step in steps:
            best = self.group_best.get(step.call_index, -math.inf)
            self.group_best[step.call_index] = max(best, self.score[step.ordinal])
        self.after_results = self._after_results()
        self.siblings = Siblings(view, self.write_atoms)
        self.first_result: dict[str, int] = {}
        for step in steps:
            self.first_result.setdefault(step.result_key, step.ordinal)
        self.candidates = [self.index.all(steps[place]) for place in self.targets]
        for place, candidates in zip(self.targets, self.candidates, strict=True):
            if extra and place in extra:
                candidates.append(extra[place])
        self.pair_features: list[np.ndarray] = []
        rows = []
        for place, candidates in zip(self.targets, self.candidates, strict=True):
            pairs, summary = self._pairs(steps[place], candidates)
            self.pair_features.append(np.concatenate([pairs, self.siblings.pairs(steps[place], candidates)], axis=1))
            rows.append(self._target(steps[place], summary) + self.siblings.target(steps[place]))
        self.target_features = np.asarray(rows, dtype=np.float32).reshape(-1, len(TARGET_NAMES))

    # ---- what happens to a step's result later ------------------------------------------------

    def _use(self, step: StepView) -> _Use:
        view = self.view
        ids = [atom for atom in step.new_atoms if atom in step.ids]
        args = write = text = next_text = user = 0
        first = math.inf
        said = bisect_left(view.assistant_texts, step.result_index)
        nxt: frozenset[str] = frozenset()
        if said < len(view.assistant_texts):
            nxt = view.text_atoms[view.assistant_texts[said]]
        for atom in ids:
            later = view.later(view.in_args.get(atom), step.ordinal)
            if later:
                args += 1
                first = min(first, view.in_args[atom][-later])
            write += view.later(self.write_atoms.get(atom), step.ordinal) > 0
            text += view.later(view.in_text.get(atom), step.result_index) > 0
            next_text += atom in nxt
            user += view.later(view.in_user.get(atom), step.result_index) > 0
        words = step.new_atoms
        word_text = _share(sum(atom in nxt for atom in words), len(words))
        weights = []
        for atom in step.atoms:
            places = view.in_user.get(atom)
            if places and places[0] < step.result_index:
                weights.append(1.0 / len(view.in_results[atom]))
        # An exact sum, because the order of a set's members changes from process to process.
        asked, asked_best = math.fsum(weights), max(weights, default=0.0)
        return _Use(
            args, write, text, next_text, user, len(ids),
            first - step.ordinal if first < math.inf else NAN, word_text, asked, asked_best,
        )  # fmt: skip

    def _use_score(self, place: int) -> float:
        use, step = self.use[place], self.view.steps[place]
        follow = sum(self.view.later(self.write_atoms.get(atom), place) > 0 for atom in step.arg_ids)
        return 4.0 * min(use.write + follow, 3) + 2.0 * min(use.args, 3) + min(use.text, 4) * 0.5

    def _runs(self) -> list[tuple[int, int]]:
        """For each step: start and end (exclusive) of the run of same-tool steps around it."""
        steps = self.view.steps
        spans: list[tuple[int, int]] = [(0, 0)] * len(steps)
        start = 0
        for place in range(1, len(steps) + 1):
            if place == len(steps) or steps[place].tool != steps[start].tool:
                for inner in range(start, place):
                    spans[inner] = (start, place)
                start = place
        return spans

    def _mates(self) -> dict[tuple[str, int], _Mates]:
        """Group the steps by tool and turn, with running bests."""
        steps = self.view.steps
        places: dict[tuple[str, int], list[int]] = defaultdict(list)
        for step in steps:
            places[step.tool, step.turn].append(step.ordinal)
        return {
            key: _Mates(found, [self.score[place] for place in found], [self.use[place].asked for place in found])
            for key, found in places.items()
        }

    def _after_results(self) -> list[int]:
        """Return, for each message, the first index after it that holds no tool result."""
        messages = self.view.trajectory.messages
        after = [len(messages)] * len(messages)
        for index in range(len(messages) - 2, -1, -1):
            after[index] = after[index + 1] if messages[index + 1].role == "tool" else index + 1
        return after

    def _changed(self, start: int, end: int, target: StepView) -> tuple[float, float]:
        """Count the writes between two ordinals, and say whether one touches the target's objects."""
        low, high = (start, end) if start < end else (end, start)
        at, end = bisect_left(self.writes, low + 1), bisect_left(self.writes, high)
        for place in self.writes[at : min(at + MAX_CHANGES, end)]:
            write = self.view.steps[place]
            if not (
                write.arg_ids.isdisjoint(target.arg_ids)
                and write.arg_ids.isdisjoint(target.ids)
                and write.command.writes.isdisjoint(target.command.reads)
            ):
                return float(max(end - at, 0)), 1.0
        return float(max(end - at, 0)), 0.0

    # ---- one row per pair -----------------------------------------------------------------------

    def _pairs(self, target: StepView, candidates: Sequence[Candidate]) -> tuple[np.ndarray, dict[str, float]]:
        rows = np.full((len(candidates), len(_OWN_PAIR_NAMES)), np.nan, dtype=np.float32)
        steps = self.view.steps
        col = _PAIR_COLUMN
        turn = target.turn
        best_after = max(
            (self.score[c.members[0]] for c in candidates if c.kind == "step" and c.members[0] > target.ordinal),
            default=NAN,
        )
        summary: dict[str, float] = defaultdict(lambda: NAN)
        cover_before: list[tuple[float, int]] = []
        for row, candidate in zip(rows, candidates, strict=True):
            row[col["kind"]] = _KINDS[candidate.kind]
            if candidate.kind == "policy":
                row[col["policy_args_f"]] = _share(
                    len(target.arg_atoms & self.view.policy_atoms), len(target.arg_atoms)
                )
                continue
            if candidate.kind == "message":
                self._message_row(row, target, candidate.members[0])
                continue
            others = [steps[place] for place in candidate.members]
            other = others[0]
            facts = frozenset[str]().union(*(o.facts for o in others)) if len(others) > 1 else other.facts
            atoms = frozenset[str]().union(*(o.atoms for o in others)) if len(others) > 1 else other.atoms
            arg_atoms = frozenset[str]().union(*(o.arg_atoms for o in others)) if len(others) > 1 else other.arg_atoms
            gap = other.ordinal - target.ordinal
            cover = _share(len(target.facts & facts), len(target.facts))
            atom_cover = _share(len((target.ids & atoms) | (target.ids & arg_atoms)), len(target.ids))
            changes, touched = self._changed(other.ordinal, target.ordinal, target)
            low, high = sorted((other.turn, turn))
            same_result = other.result_key == target.result_key
            values = {
                "gap": gap,
                "abs_gap": abs(gap),
                "message_gap": other.call_index - target.call_index,
                "before_is": other.result_index < target.call_index,
                "same_message_is": other.call_index == target.call_index,
                "turns_between_n": high - low,
                "user_is": not other.assistant,
                "same_tool_is": other.tool == target.tool,
                "same_args_is": other.call_key == target.call_key,
                "args_jaccard_f": _jaccard(other.arg_atoms, target.arg_atoms),
                "values_jaccard_f": _jaccard(self.values[other.ordinal], self.values[target.ordinal]),
                "shared_arg_ids_n": len(other.arg_ids & target.arg_ids),
                "same_result_is": same_result,
                "result_cover_f": cover,
                "result_cover_back_f": _share(len(target.facts & facts), len(facts)),
                "ids_cover_f": atom_cover,
                "atoms_jaccard_f": _jaccard(atoms, target.atoms),
                "args_in_result_f": _share(len(target.arg_atoms & atoms), len(target.arg_atoms)),
                "target_feeds_f": _share(len(other.arg_ids & target.new_atoms), len(other.arg_ids)),
                "candidate_feeds_f": _share(len(target.arg_ids & other.new_atoms), len(target.arg_ids)),
                "other_failure": _FAILURES.get(other.failure, 2.0),
                "other_empty_is": other.empty,
                "other_write_is": other.write,
                "other_verb": other.verb,
                "other_length": math.log1p(other.length),
                "length_ratio": math.log1p(other.length) - math.log1p(target.length),
                "writes_between_n": changes,
                "write_touches_is": touched,
                "other_use_args_n": self.use[other.ordinal].args,
                "other_use_write_n": self.use[other.ordinal].write,
                "other_use_text_n": self.use[other.ordinal].text,
                "other_next_text_n": self.use[other.ordinal].next_text,
                "other_score": self.score[other.ordinal],
                "score_diff": self.score[other.ordinal] - self.score[target.ordinal],
                "other_asked": self.use[other.ordinal].asked,
                "asked_diff": self.use[other.ordinal].asked - self.use[target.ordinal].asked,
                "best_after_is": self.score[other.ordinal] == best_after and gap > 0,
                "other_new_f": _share(len(other.new_atoms), len(other.atoms)),
                "other_group_n": other.group,
                "size_n": len(others),
                "command_kind": COMMAND_KINDS.index(other.command.kind),
                "same_command_kind_is": other.command.kind == target.command.kind,
                "same_files_f": _jaccard(other.command.reads, target.command.reads),
                "edits_target_file_is": bool(other.command.writes & target.command.reads),
                "target_edits_file_is": bool(target.command.writes & other.command.reads),
                "both_write_same_is": bool(target.command.writes & other.command.writes),
                "range_cover_f": _range_cover(target, other),
            }
            row[_STEP_PLACES] = [values[name] for name in _STEP_COLUMNS]
            if len(others) > 1:
                row[col["joint_gain_f"]] = cover - max(
                    _share(len(target.facts & o.facts), len(target.facts)) for o in others
                )
                row[col["joint_ids_gain_f"]] = atom_cover - max(
                    _share(len((target.ids & o.atoms) | (target.ids & o.arg_atoms)), len(target.ids)) for o in others
                )
                row[col["second_gap"]] = others[1].ordinal - target.ordinal
                summary["joint_cover"] = _max(summary["joint_cover"], cover)
                summary["joint_ids_cover"] = _max(summary["joint_ids_cover"], atom_cover)
            elif other.assistant and gap < 0:
                both = (
                    (_known(cover) + _known(atom_cover)) / (2 - math.isnan(cover) - math.isnan(atom_cover))
                    if not (math.isnan(cover) and math.isnan(atom_cover))
                    else 0.0
                )
                cover_before.append((round(both, 3), -other.ordinal))
                for key, value in (("cover_before", cover), ("ids_cover_before", atom_cover)):
                    summary[key] = _max(summary[key], value)
                if other.tool == target.tool:
                    summary["cover_same_tool"] = _max(summary["cover_same_tool"], cover)
                    summary["args_like_before"] = _max(summary["args_like_before"], values["args_jaccard_f"])
            elif other.assistant:
                summary["cover_after"] = _max(summary["cover_after"], cover)
                if other.tool == target.tool:
                    summary["args_like_after"] = _max(summary["args_like_after"], values["args_jaccard_f"])
        self._ranks(rows, candidates, target)
        rows[:, -len(CODING_PAIR_NAMES) :] = self.coding.pairs(target, candidates)
        if cover_before:
            best, place = max(cover_before)
            changes, touched = self._changed(-place, target.ordinal, target)
            summary["best_cover"] = best
            summary["best_cover_gap"] = -place - target.ordinal
            summary["best_cover_writes"] = changes
            summary["best_cover_touched"] = touched
        return rows, summary

    def _ranks(self, rows: np.ndarray, candidates: Sequence[Candidate], target: StepView) -> None:
        """Fill in what depends on the other candidates: first, next and best of their kind."""
        steps = self.view.steps
        col = _PAIR_COLUMN
        order = [(i, steps[c.members[0]]) for i, c in enumerate(candidates) if c.kind == "step"]

        def mark(name: str, places: list[int]) -> None:
            for rank, place in enumerate(places[:4]):
                rows[place, col[name]] = rank

        after = [(i, s) for i, s in order if s.ordinal > target.ordinal]
        before = [(i, s) for i, s in order if s.ordinal < target.ordinal]
        mark("next_same_rank", [i for i, s in after if s.tool == target.tool])
        mark("prev_same_rank", [i for i, s in reversed(before) if s.tool == target.tool])
        mark("next_ok_rank", [i for i, s in after if s.failure is None and not s.empty])
        mark("next_same_ok_rank", [i for i, s in after if s.failure is None and s.call_key == target.call_key])
        mark("next_assistant_rank", [i for i, s in after if s.assistant])
        mark("next_write_rank", [i for i, s in after if s.write])
        mark("next_used_rank", [i for i, s in after if self.score[s.ordinal] >= 4])
        mark("first_same_result_rank", [i for i, s in before if s.result_key == target.result_key])
        mark("first_same_call_rank", [i for i, s in before if s.call_key == target.call_key])
        for name, source in (
            ("cover_rank", "result_cover_f"),
            ("ids_cover_rank", "ids_cover_f"),
            ("args_rank", "args_jaccard_f"),
        ):
            ranked = sorted(before, key=lambda item: (-_known(rows[item[0], col[source]]), item[1].ordinal))
            mark(name, [i for i, _ in ranked])
        ranked = sorted(after, key=lambda item: (-self.score[item[1].ordinal], item[1].ordinal))
        mark("score_rank_after", [i for i, _ in ranked])
        ranked = sorted(after, key=lambda item: (-self.use[item[1].ordinal].asked, item[1].ordinal))
        mark("asked_rank_after", [i for i, _ in ranked])
        same = [(i, s) for i, s in order if s.tool == target.tool]
        ranked = sorted(same, key=lambda item: (-self.score[item[1].ordinal], item[1].ordinal))
        mark("score_rank_same", [i for i, _ in ranked])
        start, end = self.run_of[target.ordinal]
        run_end = [i for i, s in order if s.ordinal == end - 1]
        for i in run_end:
            rows[i, col["run_end_is"]] = 1.0
        for i, s in order:
            rows[i, col["in_run_is"]] = float(start <= s.ordinal < end)

    def _message_row(self, row: np.ndarray, target: StepView, index: int) -> None:
        view = self.view
        col = _PAIR_COLUMN
        message = view.trajectory.messages[index]
        atoms = view.text_atoms.get(index, frozenset())
        turns = view.user_texts
        here = bisect_left(turns, target.call_index)
        values = {
            "message_gap": index - (target.call_index if index < target.call_index else target.result_index),
            "before_is": index < target.call_index,
            "role": {"user": 0.0, "assistant": 1.0, "tool": 2.0}.get(message.role, 3.0),
            "own_is": index == target.result_index,
            "turn_rank": bisect_left(turns, index) - here if message.role == "user" else NAN,
            "first_user_is": bool(turns) and index == turns[0],
            "last_message_is": index == len(view.trajectory.messages) - 1,
            "has_call_is": bool(message.tool_calls),
            "message_length": math.log1p(len(message.content)),
            "args_in_result_f": _share(len(target.arg_atoms & atoms), len(target.arg_atoms)),
            "ids_cover_f": _share(len(target.ids & atoms), len(target.ids)),
            "message_new_f": _share(len(target.new_atoms & atoms), len(target.new_atoms)),
            "arg_ids_first_is": any(view.first_seen.get(atom) == index for atom in target.arg_ids),
            "args_first_is": any(view.first_seen.get(atom) == index for atom in target.arg_atoms),
        }
        for name, value in values.items():
            row[col[name]] = value

    # ---- one row per target ---------------------------------------------------------------------

    def _target(self, step: StepView, summary: dict[str, float]) -> list[float]:
        view = self.view
        steps = view.steps
        use = self.use[step.ordinal]
        n = len(steps)
        tools = self.index.by_tool[step.tool]
        at = bisect_left(tools, step.ordinal)
        calls = self.index.by_call[step.call_key]
        call_at = bisect_left(calls, step.ordinal)
        results = self.index.by_result[step.result_key]
        result_at = bisect_left(results, step.ordinal)
        start, end = self.run_of[step.ordinal]
        mates = self.mates[step.tool, step.turn]
        mate = bisect_left(mates.places, step.ordinal)
        args = step.arg_atoms
        seen = {"user": 0, "text": 0, "result": 0, "none": 0, "policy": 0}
        for atom in args:
            first = view.first_seen.get(atom, step.call_index)
            if first >= step.call_index:
                seen["none"] += 1
                seen["policy"] += atom in view.policy_atoms
            elif view.trajectory.messages[first].role == "user" and first in view.text_atoms:
                seen["user"] += 1
            elif first in view.text_atoms and not view.trajectory.messages[first].tool_calls:
                seen["text"] += 1
            else:
                seen["result"] += 1
        user_at = bisect_left(view.user_texts, step.call_index)
        last_user = view.user_texts[user_at - 1] if user_at else -1
        asked_args = len(args & view.text_atoms.get(last_user, frozenset()))
        nxt = steps[step.ordinal + 1] if step.ordinal + 1 < n else None
        prv = steps[step.ordinal - 1] if step.ordinal else None
        message = view.trajectory.messages[step.call_index]
        changed_args = [
            s for s in tools[at + 1 : at + 4] if steps[s].call_key != step.call_key and steps[s].failure is None
        ]
        follow_write = sum(view.later(self.write_atoms.get(a), step.ordinal) > 0 for a in step.arg_ids)
        follow_args = sum(view.later(view.in_args.get(a), step.ordinal) > 0 for a in step.arg_ids)
        follow_text = sum(view.later(view.in_text.get(a), step.result_index) > 0 for a in step.arg_ids)
        known = sum(view.first_seen.get(a, step.call_index) < step.call_index for a in step.ids)
        first_write = self.writes[0] if self.writes else n
        messages = view.trajectory.messages
        after_result = self.after_results[step.result_index]
        follow = messages[after_result] if after_result < len(messages) else None
        cmd = step.command
        files = cmd.reads | cmd.writes
        later_edit = any(self.last_edit.get(file, -1) > step.ordinal for file in files)
        later_same_file = sum(bool(s.command.reads & cmd.writes) for s in steps[step.ordinal + 1 : step.ordinal + 60])
        file_mentions = 0.0
        if step.assistant and cmd.kind != "none":
            file_mentions = float(
                sum(bool(s.command.reads & files) for s in steps[step.ordinal + 1 : step.ordinal + 60])
            )
        values: dict[str, float] = {
            "position_f": step.ordinal / max(n - 1, 1),
            "ordinal": step.ordinal,
            "left_n": n - 1 - step.ordinal,
            "total_n": n,
            "turn": step.turn,
            "turns_left_n": (view.turn_at[-1] if view.turn_at else 0) - step.turn,
            "steps_in_turn_before_n": sum(
                1 for s in steps[max(0, step.ordinal - 40) : step.ordinal] if s.turn == step.turn
            ),
            "group_n": step.group,
            "place_n": step.place,
            "parallel_against_policy_is": view.one_call_rule and step.group > 1,
            "one_call_rule_is": view.one_call_rule,
            "text_with_call_is": bool(message.content.strip()),
            "text_against_policy_is": view.one_call_rule and bool(message.content.strip()),
            "policy_is": bool(view.trajectory.policy),
            "verb": step.verb,
            "write_is": step.write,
            "failure": _FAILURES.get(step.failure, 2.0),
            "empty_is": step.empty,
            "length": math.log1p(step.length),
            "structured": step.structured,
            "items": math.log1p(step.items),
            "facts": math.log1p(len(step.facts)),
            "args_n": len(step.values),
            "arg_ids_n": len(step.arg_ids),
            "args_length": math.log1p(len(step.arguments)),
            "same_tool_before_n": at,
            "same_tool_after_n": len(tools) - at - 1,
            "same_call_before_n": call_at,
            "same_call_after_n": len(calls) - call_at - 1,
            "same_result_before_n": result_at,
            "same_result_after_n": len(results) - result_at - 1,
            "same_result_gap": results[0] - step.ordinal if result_at else NAN,
            "run_n": end - start,
            "run_place_n": step.ordinal - start,
            "run_left_n": end - 1 - step.ordinal,
            "new_facts_f": _share(step.new_facts, len(step.facts)),
            "new_atoms_f": _share(len(step.new_atoms), len(step.atoms)),
            "new_ids_n": math.log1p(use.ids),
            "known_ids_f": _share(known, len(step.ids)),
            "use_args_n": use.args,
            "use_write_n": use.write,
            "use_text_n": use.text,
            "use_text_f": _share(use.text, use.ids),
            "use_next_text_n": use.next_text,
            "use_user_n": use.user,
            "use_first_gap": use.first_arg,
            "word_next_text_f": use.word_text,
            "asked": use.asked,
            "asked_best": use.asked_best,
            "score": self.score[step.ordinal],
            "follow_write_n": follow_write,
            "follow_args_n": follow_args,
            "follow_text_n": follow_text,
            "args_user_f": _share(seen["user"], len(args)),
            "args_text_f": _share(seen["text"], len(args)),
            "args_result_f": _share(seen["result"], len(args)),
            "args_unseen_f": _share(seen["none"], len(args)),
            "args_policy_f": _share(seen["policy"], len(args)),
            "args_last_user_f": _share(asked_args, len(args)),
            "user_gap": step.call_index - last_user,
            "mates_n": len(mates.places),
            "mates_later_n": len(mates.places) - mate - 1,
            "mates_best_score": mates.best_score,
            "mates_best_diff": mates.best_score - self.score[step.ordinal],
            "mates_best_gap": mates.best - step.ordinal,
            "mates_best_before": mates.score_before[mate],
            "mates_best_after": mates.score_after[mate],
            "mates_asked_diff": mates.best_asked - use.asked,
            "mates_asked_before": mates.asked_before[mate],
            "mates_asked_after": mates.asked_after[mate],
            "tool_best_diff": self.tool_best[step.tool] - self.score[step.ordinal],
            "group_best_diff": self.group_best[step.call_index] - self.score[step.ordinal],
            "corrected_next_n": len(changed_args),
            "next_same_tool_is": nxt is not None and nxt.tool == step.tool,
            "next_write_is": nxt is not None and nxt.write,
            "next_failure": _FAILURES.get(nxt.failure, 2.0) if nxt else NAN,
            "next_same_turn_is": nxt is not None and nxt.turn == step.turn,
            "next_args_jaccard_f": _jaccard(nxt.arg_atoms, step.arg_atoms) if nxt else NAN,
            "next_uses_result_f": _share(len(nxt.arg_ids & step.new_atoms), len(nxt.arg_ids)) if nxt else NAN,
            "next_user_call_is": nxt is not None and not nxt.assistant,
            "prev_failure": _FAILURES.get(prv.failure, 2.0) if prv else NAN,
            "prev_same_tool_is": prv is not None and prv.tool == step.tool,
            "prev_write_is": prv is not None and prv.write,
            "prev_score": self.score[prv.ordinal] if prv else NAN,
            "prev_args_jaccard_f": _jaccard(prv.arg_atoms, step.arg_atoms) if prv else NAN,
            "writes_before_n": bisect_left(self.writes, step.ordinal),
            "writes_after_n": len(self.writes) - bisect_left(self.writes, step.ordinal + 1),
            "before_first_write_is": step.ordinal < first_write,
            "next_message_role": _role(follow),
            "next_message_length": math.log1p(len(follow.content)) if follow else NAN,
            "next_message_calls_is": bool(follow.tool_calls) if follow else NAN,
            "cover_before_f": summary["cover_before"],
            "ids_cover_before_f": summary["ids_cover_before"],
            "cover_same_tool_f": summary["cover_same_tool"],
            "cover_after_f": summary["cover_after"],
            "joint_cover_f": summary["joint_cover"],
            "joint_ids_cover_f": summary["joint_ids_cover"],
            "args_like_before_f": summary["args_like_before"],
            "args_like_after_f": summary["args_like_after"],
            "best_cover_f": summary["best_cover"],
            "best_cover_gap": summary["best_cover_gap"],
            "best_cover_writes_n": summary["best_cover_writes"],
            "best_cover_touched_is": summary["best_cover_touched"],
            "command_kind": COMMAND_KINDS.index(cmd.kind),
            "files_n": len(cmd.reads),
            "files_written_n": len(cmd.writes),
            "files_later_edit_is": later_edit,
            "files_later_n": file_mentions,
            "script_later_n": later_same_file,
            "script_is": bool(cmd.script),
        }
        values.update(dict.fromkeys(CODING_TARGET_NAMES, NAN) | self.coding.target(step))
        return [float(values[name]) for name in _OWN_TARGET_NAMES]


def _role(message: object) -> float:
    role = getattr(message, "role", None)
    return {"user": 0.0, "assistant": 1.0, "tool": 2.0}.get(role, NAN)  # type: ignore[arg-type]


def _range_cover(target: StepView, other: StepView) -> float:
    """Share of the lines that the target shows which the other showed of the same file."""
    a, b = target.command.lines, other.command.lines
    if a is None or not target.command.reads & other.command.reads:
        return NAN
    if b is None:
        return 1.0 if other.command.kind == "view" else NAN
    overlap = min(a[1], b[1]) - max(a[0], b[0]) + 1
    return max(overlap, 0) / max(a[1] - a[0] + 1, 1)


_OWN_TARGET_NAMES: tuple[str, ...] = tuple(
    """position_f ordinal left_n total_n turn turns_left_n steps_in_turn_before_n group_n place_n
    parallel_against_policy_is one_call_rule_is text_with_call_is text_against_policy_is policy_is verb write_is
    failure empty_is length structured items facts args_n arg_ids_n args_length same_tool_before_n same_tool_after_n
    same_call_before_n same_call_after_n same_result_before_n same_result_after_n same_result_gap run_n run_place_n
    run_left_n new_facts_f new_atoms_f new_ids_n known_ids_f use_args_n use_write_n use_text_n use_text_f
    use_next_text_n use_user_n use_first_gap word_next_text_f asked asked_best score follow_write_n follow_args_n
    follow_text_n args_user_f args_text_f args_result_f args_unseen_f args_policy_f args_last_user_f user_gap mates_n
    mates_later_n mates_best_score mates_best_diff mates_best_gap mates_best_before mates_best_after mates_asked_diff
    mates_asked_before mates_asked_after tool_best_diff group_best_diff corrected_next_n next_same_tool_is
    next_write_is next_failure next_same_turn_is next_args_jaccard_f next_uses_result_f next_user_call_is prev_failure
    prev_same_tool_is prev_write_is prev_score prev_args_jaccard_f writes_before_n writes_after_n
    before_first_write_is next_message_role next_message_length next_message_calls_is cover_before_f
    ids_cover_before_f cover_same_tool_f cover_after_f joint_cover_f joint_ids_cover_f args_like_before_f
    args_like_after_f best_cover_f best_cover_gap best_cover_writes_n best_cover_touched_is command_kind files_n
    files_written_n files_later_edit_is files_later_n script_later_n script_is""".split()
    + list(CODING_TARGET_NAMES)
)

_OWN_PAIR_NAMES: tuple[str, ...] = tuple(
    """kind gap abs_gap message_gap before_is same_message_is turns_between_n user_is same_tool_is same_args_is
    args_jaccard_f values_jaccard_f shared_arg_ids_n same_result_is result_cover_f result_cover_back_f ids_cover_f
    atoms_jaccard_f args_in_result_f target_feeds_f candidate_feeds_f other_failure other_empty_is other_write_is
    other_verb other_length length_ratio writes_between_n write_touches_is other_use_args_n other_use_write_n
    other_use_text_n other_next_text_n other_score score_diff other_asked asked_diff best_after_is other_new_f
    other_group_n size_n command_kind same_command_kind_is same_files_f edits_target_file_is target_edits_file_is
    both_write_same_is range_cover_f joint_gain_f joint_ids_gain_f second_gap next_same_rank prev_same_rank
    next_ok_rank next_same_ok_rank next_assistant_rank next_write_rank next_used_rank first_same_result_rank
    first_same_call_rank cover_rank ids_cover_rank args_rank score_rank_after asked_rank_after score_rank_same
    run_end_is in_run_is role own_is turn_rank first_user_is last_message_is has_call_is message_length message_new_f
    arg_ids_first_is args_first_is policy_args_f""".split()
    + list(CODING_PAIR_NAMES)
)
_PAIR_COLUMN = {name: place for place, name in enumerate(_OWN_PAIR_NAMES)}
#: Columns that hold for every step or joint candidate.
_STEP_COLUMNS = _OWN_PAIR_NAMES[_OWN_PAIR_NAMES.index("gap") : _OWN_PAIR_NAMES.index("range_cover_f") + 1]
_STEP_PLACES = np.asarray([_PAIR_COLUMN[name] for name in _STEP_COLUMNS])

TARGET_NAMES: tuple[str, ...] = (*_OWN_TARGET_NAMES, *SIBLING_TARGET_NAMES, *GROUP_NAMES)
PAIR_NAMES: tuple[str, ...] = (*_OWN_PAIR_NAMES, *SIBLING_PAIR_NAMES)


def relate(view: TrajectoryView) -> Relations:
    """Compute all relations of a trajectory."""
    return Relations(view)


__all__ = ["PAIR_NAMES", "TARGET_NAMES", "Relations", "relate"]
