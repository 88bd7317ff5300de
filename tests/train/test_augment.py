from __future__ import annotations

import random
from collections import Counter

import pytest
from traces import chain

from redclf.benchmark.data import GoldStep, LabelledTrajectory, is_evidence
from redclf.relations.views import TrajectoryView
from redclf.taxonomy import ABNORMAL, CATEGORIES, DUPLICATED, EXPLORATORY, INCORRECT
from redclf.trajectory import Message, ToolCall, Trajectory
from train.augment import augment, cut
from train.disguise import AFTER, BEFORE, call_in_parallel, plain_results, rename_tools, rename_values, without_policy
from train.injections import INJECTIONS, Injector

#: What each kind of injection labels its steps; kinds that inject necessary steps label none.
EXPECTED = {
    "repeat": {DUPLICATED}, "repeat_parallel": {DUPLICATED}, "other_query": {DUPLICATED}, "other_tool": {DUPLICATED},
    "joint": {DUPLICATED}, "failure": {ABNORMAL}, "failure_earlier": {ABNORMAL}, "refused": {INCORRECT},
    "guessed": {INCORRECT}, "bad_form": {INCORRECT}, "unknown_tool": {INCORRECT}, "wrong_target": {INCORRECT},
    "search_on": {INCORRECT}, "empty_search": {EXPLORATORY}, "off_target": {EXPLORATORY}, "off_search": {EXPLORATORY},
    "ruled_out": {EXPLORATORY}, "research": {DUPLICATED, EXPLORATORY, INCORRECT}, "lone_failure": set(),
    "changed_repeat": set(), "poll": set(), "next_page": set(), "parallel_objects": set(), "chain": set(),
    "refused_again": {INCORRECT},
    "view_again": {DUPLICATED}, "no_hits": {EXPLORATORY}, "wrong_path": {INCORRECT}, "refused_edit": {INCORRECT},
}  # fmt: skip
#: Kinds that put necessary steps in, beside redundant ones.
MIXED = {"research"}


def _conversation(*turns) -> LabelledTrajectory:
    """A trajectory of (role, text) and of (tool, arguments, result)."""
    messages = []
    for number, turn in enumerate(turns):
        if len(turn) == 2:
            messages.append(Message(turn[0], turn[1]))
        else:
            name, arguments, result = turn
            messages.append(Message("assistant", "", (ToolCall(name, arguments, f"c{number}"),)))
            messages.append(Message("tool", result, tool_call_id=f"c{number}"))
    return LabelledTrajectory(Trajectory("t", tuple(messages)), (), frozenset(), "s", "d", ("d", "t"))


@pytest.fixture(scope="module")
def shop() -> LabelledTrajectory:
    """Look-ups by id, a search by words, a listing, a write: something for every kind."""
    return _conversation(
        ("user", "Please move my booking, my user is ann_2210 and the parcel is P7001."),
        ("get_user", {"user_id": "ann_2210"}, '{"name": "Ann", "city": "Ulm", "all": ["B4411", "B4412", "B4413"]}'),
        ("get_parcel", {"parcel_id": "P7001"}, '{"parcel": "P7001", "weight": 12, "depot": "D881"}'),
        ("list_bookings", {"user": "ann_2210"}, '[{"b": "B4411"}, {"b": "B4412"}, {"b": "B4413"}]'),
        ("get_booking", {"booking_id": "B4412"}, '{"booking": "B4412", "slot": "S9007", "gate": 31}'),
        ("search_slots", {"text": "free morning slots"}, '[{"slot": "S5512", "day": "2030-02-01"}, {"slot": "S5513"}]'),
        ("assistant", "Slot S5512 is free, shall I move B4412 from S9007 at gate 31?"),
        ("user", "Yes please."),
        ("update_booking", {"booking_id": "B4412", "slot": "S5512"}, '{"booking": "B4412", "slot": "S5512"}'),
        ("get_booking", {"booking_id": "B4412"}, '{"booking": "B4412", "slot": "S5512", "gate": 31, "done": 1}'),
        ("assistant", "Done: B4412 is at S5512 now."),
    )  # fmt: skip


@pytest.fixture(scope="module")
def code() -> LabelledTrajectory:
    def shown(text: str) -> str:
        return f"<returncode>0</returncode>\n<output>\n{text}\n</output>"

    listing = "\n".join(f"line_{n} = {n}" for n in range(1, 41))
    return _conversation(
        ("user", "Fix the bug."),
        ("bash", {"command": "ls src/pkg/core.py"}, shown("src/pkg/core.py")),
        ("bash", {"command": 'grep -rn "def compute" src'}, shown("src/pkg/core.py:12:def compute(x):")),
        ("bash", {"command": "cat src/pkg/core.py"}, shown(listing)),
        ("assistant", "I see it."),
        ("bash", {"command": "sed -n '1,9p' src/pkg/core.py"}, shown(listing[:90])),
        ("bash", {"command": "sed -i 's/a(b)/c/' src/pkg/core.py"}, shown("ok, written")),
        ("assistant", "Done."),
    )


@pytest.fixture(scope="module")
def items(tiny_items, shop, code):
    return [*tiny_items, shop, code]


def injected_by(item, kind, seed):
    """The copy that one kind of injection makes, or None."""
    injector = Injector(item, random.Random(f"{kind}:{seed}:{item.id}"))
    return injector.draft.finish(item, "t") if injector.apply(kind) else None


def originals_of(copy, item, inserted):
    """The copy's messages without injected ones, and the old index of each."""
    added = {index for step in inserted for index in step if index not in original_calls(copy, item)}
    return [index for index in range(len(copy.trajectory.messages)) if index not in added]


def original_calls(copy, item):
    """Indices of messages in the copy that hold an original's call (parallel repeats are added to one)."""
    ids = {call.id for message in item.trajectory.messages for call in message.tool_calls}
    return {
        index
        for index, message in enumerate(copy.trajectory.messages)
        if any(call.id in ids for call in message.tool_calls)
    }


@pytest.fixture(scope="module", params=list(INJECTIONS))
def made(request, items):
    copies = [
        (item, *found)
        for item in items
        for seed in range(4)
        if (found := injected_by(item, request.param, seed)) is not None
    ]
    assert copies
    return request.param, copies


class TestEveryInjection:
    def test_every_call_has_its_result(self, made):
        for _, copy, inserted in made[1]:
            pairing = copy.trajectory.pairing
            assert pairing.unanswered_calls == () and pairing.orphan_results == ()
            assert inserted.keys() <= {step.step for step in copy.trajectory.assistant_interactions}

    def test_labels_are_of_real_steps(self, made):
        for _, copy, _ in made[1]:
            steps = {step.step for step in copy.trajectory.assistant_interactions}
            every = {step.step for step in copy.trajectory.interactions}
            assert len({label.step for label in copy.gold}) == len(copy.gold)
            for label in copy.gold:
                assert label.step in steps and label.category in CATEGORIES
                assert is_evidence(copy.trajectory, label.evidence)
                assert len(label.evidence) != 2 or label.evidence in every
                assert label.evidence != label.step

    def test_the_originals_keep_their_text_and_their_labels(self, made):
        for item, copy, inserted in made[1]:
            kept = originals_of(copy, item, inserted)
            old = item.trajectory.messages
            assert len(kept) == len(old)
            new = [copy.trajectory.messages[index] for index in kept]
            assert [(m.role, m.tool_call_id) for m in new] == [(m.role, m.tool_call_id) for m in old]
            assert all(a.content.startswith(b.content) for a, b in zip(new, old, strict=True))
            assert all(a.tool_calls[: len(b.tool_calls)] == b.tool_calls for a, b in zip(new, old, strict=True))
            moved = {
                (tuple(kept[i] for i in g.step), g.category, tuple(kept[i] if i >= 0 else -1 for i in g.evidence))
                for g in item.gold
            }
            assert moved == {(g.step, g.category, g.evidence) for g in copy.gold if g.step not in inserted}

    def test_category(self, made):
        kind, copies = made
        found = Counter()
        for _, copy, inserted in copies:
            assert inserted and set(inserted.values()) == {kind}
            labels = {label.step: label.category for label in copy.gold if label.step in inserted}
            found.update(labels.values())
            if kind not in MIXED:
                assert set(labels) == (set(inserted) if EXPECTED[kind] else set())
        assert set(found) == EXPECTED[kind]

    def test_evidence_stands_where_the_category_has_it(self, made):
        for _, copy, inserted in made[1]:
            for label in copy.gold:
                if label.step in inserted and label.evidence != (-1,):
                    if label.category in (INCORRECT, DUPLICATED):
                        assert all(index <= label.step[0] or index < label.step[1] for index in label.evidence)
                    elif label.category == ABNORMAL:
                        assert label.evidence[0] > label.step[0]

    def test_same_seed_same_copy(self, made, items):
        kind, _ = made
        for item in items[-2:]:
            assert injected_by(item, kind, 0) == injected_by(item, kind, 0)


def test_every_kind_is_expected():
    assert set(EXPECTED) == set(INJECTIONS)


def labelled(items, kind, seeds=4):
    for item in items:
        for seed in range(seeds):
            found = injected_by(item, kind, seed)
            if found is not None:
                copy, inserted = found
                view = TrajectoryView(copy.trajectory)
                steps = {(s.call_index, s.result_index): s for s in view.steps}
                for label in copy.gold:
                    if label.step in inserted:
                        yield view, steps, steps[label.step], label


def test_failure_is_followed_by_the_same_call(items):
    for _, steps, target, label in labelled(items, "failure"):
        retry = steps[label.evidence]
        assert retry.call_key == target.call_key and retry.ordinal > target.ordinal and retry.failure is None


@pytest.mark.parametrize("kind", ["repeat", "repeat_parallel"])
def test_repeat_brings_what_is_known_and_nothing_changed(kind, items):
    for view, steps, target, label in labelled(items, kind):
        first = steps[label.evidence]
        assert first.ordinal < target.ordinal and first.result == target.result and first.tool == target.tool
        between = view.steps[first.ordinal + 1 : target.ordinal]
        assert not any(step.write for step in between)
        assert not any(s.result == target.result for s in view.steps[: first.ordinal])


@pytest.mark.parametrize("kind", ["other_tool", "joint", "view_again"])
def test_what_is_covered_was_known(kind, items):
    for view, steps, target, label in labelled(items, kind):
        pairs = [steps[label.evidence[i : i + 2]] for i in range(0, len(label.evidence), 2)]
        known = " ".join(step.result.lower() + step.arguments.lower() for step in pairs)
        assert kind == "view_again" or all(atom in known for atom in target.atoms)
        assert all(step.ordinal < target.ordinal for step in pairs)
        assert not any(step.write for step in view.steps[pairs[0].ordinal + 1 : target.ordinal])


def test_lines_of_a_file_that_are_viewed_again_were_shown(code):
    for _, steps, target, label in labelled([code], "view_again", seeds=12):
        assert target.facts <= steps[label.evidence].facts


def test_another_object_is_not_the_wanted_one(shop):
    for kind in ("off_target", "search_on", "wrong_target"):
        found = list(labelled([shop], kind))
        assert found
        for _, steps, target, label in found:
            wanted = next((steps[label.evidence] for _ in [0] if label.evidence in steps), None)
            if wanted is None:
                assert len(label.evidence) == 1 and kind == "wrong_target"
            else:
                assert target.tool == wanted.tool and target.call_key != wanted.call_key
                assert (target.ordinal < wanted.ordinal) == (kind == "off_target")
                assert target.result != wanted.result and not target.empty


def test_failures_that_nothing_replaces_have_no_retry(shop):
    for seed in range(8):
        copy, inserted = injected_by(shop, "lone_failure", seed)
        view = TrajectoryView(copy.trajectory)
        keys = Counter(step.call_key for step in view.steps)
        (step,) = inserted
        assert keys[next(s.call_key for s in view.steps if (s.call_index, s.result_index) == step)] == 1


def test_a_poll_brings_another_state_each_time(shop):
    for seed in range(4):
        copy, inserted = injected_by(shop, "poll", seed)
        view = TrajectoryView(copy.trajectory)
        polls = [s for s in view.steps if (s.call_index, s.result_index) in inserted]
        assert len({s.result for s in polls}) == len(polls)


def test_reply_uses_the_page_that_is_necessary(shop):
    for _, steps, target, label in labelled([shop], "research", seeds=12):
        if (
            label.category == EXPLORATORY
            and target.tool == steps[label.evidence].tool
            and "query" not in target.arguments
        ):
            assert target.call_key != steps[label.evidence].call_key


def test_empty_search_comes_before_the_one_that_hits(items):
    for _, steps, target, label in labelled(items, "empty_search"):
        hit = steps[label.evidence]
        assert hit.ordinal > target.ordinal and hit.tool == target.tool and not hit.empty
        assert target.call_key != hit.call_key


def test_refused_names_what_settles_it(items):
    for view, _, target, label in labelled(items, "refused"):
        assert all(index < target.call_index for index in label.evidence)
        assert target.failure is not None or target.result
        assert view.trajectory.messages[label.step[1]].role == "tool"


class TestAugment:
    def test_same_seed_same_copy(self, tiny_items):
        assert augment(tiny_items[0], 3) == augment(tiny_items[0], 3)
        assert augment(tiny_items[0], 3) != augment(tiny_items[0], 4)

    def test_original_is_left_alone_and_the_copy_has_another_id(self, tiny_items):
        item = tiny_items[1]
        before = (item.trajectory.messages, item.gold)
        copy, _ = augment(item, 0)
        assert (item.trajectory.messages, item.gold) == before
        assert copy.id != item.id and copy.group == item.group

    def test_nothing_to_inject_into(self):
        empty = LabelledTrajectory(chain(0), (), frozenset(), "s", "d", ("d", "t"))
        assert augment(empty, 0) is None

    def test_every_kind_turns_up(self, tiny_items):
        found = Counter(
            label.category
            for item in tiny_items
            for seed in range(3)
            for copy, inserted in [augment(item, seed)]
            for label in copy.gold
            if label.step in inserted
        )
        assert set(found) == set(CATEGORIES)

    def test_kinds_and_disguises_can_be_left_out(self, items):
        every = {*INJECTIONS, *BEFORE, *AFTER}
        for kind in ("repeat", "research"):
            for item in items:
                made = augment(item, 1, injections=6, rename=1.0, without=every - {kind})
                assert made is None or set(made[1].values()) == {kind}
                made = augment(item, 1, injections=6, rename=1.0, without=(kind,))
                assert made is None or kind not in made[1].values()

    def test_every_disguised_copy_is_whole(self, items):
        for item in items:
            for seed in range(6):
                copy, inserted = augment(item, seed, injections=4, rename=1.0)
                assert copy.trajectory.pairing.unanswered_calls == () and copy.trajectory.pairing.orphan_results == ()
                steps = {step.step for step in copy.trajectory.assistant_interactions}
                assert inserted.keys() <= steps and {label.step for label in copy.gold} <= steps
                assert all(is_evidence(copy.trajectory, label.evidence) for label in copy.gold)

    def test_disputed_steps_move_along(self, tiny_items):
        item = next(i for i in tiny_items if len(i.gold) > 1)
        step = item.gold[-1].step
        item = LabelledTrajectory(item.trajectory, item.gold[:-1], frozenset({step}), *_places(item))
        tool = item.trajectory.interaction_at(step).call
        for seed in range(5):
            copy, _ = augment(item, seed, rename=0.0)
            (moved,) = copy.disputed
            assert copy.trajectory.interaction_at(moved).call == tool


def _places(item):
    return item.subset, item.domain, item.group


def test_rename_tools_is_one_name_a_tool(tiny_items):
    item = tiny_items[0]
    renamed = rename_tools(item, random.Random(0))
    names = {
        (a.call.name, b.call.name)
        for a, b in zip(item.trajectory.interactions, renamed.trajectory.interactions, strict=True)
    }
    assert len(names) == len({old for old, _ in names}) and all(old != new for old, new in names)
    assert renamed.gold == item.gold


def test_rename_values_is_one_value_a_value(shop):
    found = rename_values(shop, random.Random(0))
    old = " ".join(m.content for m in shop.trajectory.messages)
    new = " ".join(m.content for m in found.trajectory.messages)
    assert "B4412" in old and "B4412" not in new and len(old) == len(new)
    before, after = TrajectoryView(shop.trajectory).steps, TrajectoryView(found.trajectory).steps
    assert [len(step.facts) for step in before] == [len(step.facts) for step in after]
    assert [[a.call_key == b.call_key for b in before] for a in before] == [
        [a.call_key == b.call_key for b in after] for a in after
    ]
    assert "2030" in new


def test_plain_results_hold_the_same_values(shop):
    found = plain_results(shop, random.Random(0))
    for a, b in zip(TrajectoryView(shop.trajectory).steps, TrajectoryView(found.trajectory).steps, strict=True):
        assert a.ids <= b.ids and b.structured == 0


class TestCallInParallel:
    def test_only_calls_that_do_not_need_each_other_are_joined(self, shop):
        joined = set()
        for seed in range(8):
            found = call_in_parallel(shop, random.Random(seed))
            view = TrajectoryView(found.trajectory)
            assert [s.call_key for s in view.steps] == [s.call_key for s in TrajectoryView(shop.trajectory).steps]
            for step in view.steps:
                mates = [s for s in view.steps if s.call_index == step.call_index]
                joined.add(len(mates))
                assert len(mates) == 1 or not any(s.write for s in mates)
                first = mates[0].ordinal
                known = " ".join(s.result for s in view.steps[:first]) + shop.trajectory.messages[0].content
                assert len(mates) == 1 or all(atom in known.lower() for atom in step.arg_ids)
        assert max(joined) > 1

    def test_labels_move_along(self, shop):
        steps = shop.trajectory.interactions
        gold = (GoldStep(steps[1].step, EXPLORATORY, steps[3].step), GoldStep(steps[2].step, DUPLICATED, steps[0].step))
        item = LabelledTrajectory(shop.trajectory, gold, frozenset(), *_places(shop))
        for seed in range(8):
            found = call_in_parallel(item, random.Random(seed))
            moved = found.trajectory.interactions
            assert [g.step for g in found.gold] == [moved[1].step, moved[2].step]
            assert [g.evidence for g in found.gold] == [moved[3].step, moved[0].step]


def test_labels_that_rest_on_the_policy_go_with_it(shop):
    parallel = call_in_parallel(shop, random.Random(0))
    step = next(
        s.step for s in parallel.trajectory.interactions if len(parallel.trajectory.messages[s.step[0]].tool_calls) > 1
    )
    from dataclasses import replace

    trajectory = replace(parallel.trajectory, policy="You may make a single tool call at a time.")
    item = LabelledTrajectory(trajectory, (GoldStep(step, INCORRECT, (-1,)),), frozenset(), *_places(shop))
    found = without_policy(item, random.Random(0))
    assert found.gold == () and found.disputed == {step} and found.trajectory.policy == ""


class TestCut:
    def test_labels_stay_where_their_evidence_is_cut_off(self):
        trajectory = chain(4)
        gold = (
            GoldStep((1, 2), EXPLORATORY, (5, 6)),
            GoldStep((3, 4), DUPLICATED, (1, 2)),
            GoldStep((3, 4), INCORRECT, (-1,)),
        )
        item = LabelledTrajectory(trajectory, gold, frozenset(), "s", "d", ("d", "t"))
        found = cut(item, 1)
        assert len(found.trajectory.messages) == 5 and found.gold == gold
        assert cut(item, 0).gold == gold[:1]
        assert len(cut(item, 99).trajectory.messages) == len(trajectory.messages)
