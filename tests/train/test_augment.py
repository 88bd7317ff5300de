from __future__ import annotations

import random
from collections import Counter

import pytest
from traces import chain

from redclf.benchmark.data import GoldStep, LabelledTrajectory, is_evidence
from redclf.failure import failure_kind
from redclf.relations.views import TrajectoryView
from redclf.taxonomy import ABNORMAL, CATEGORIES, DUPLICATED, EXPLORATORY, INCORRECT
from train import wordings
from train.augment import INJECTIONS, Injector, _finish, augment, cut, rename_tools


def injected_by(item, kind, seed):
    """The copy that one kind of injection makes, or None."""
    injector = Injector(item, random.Random(f"{kind.__name__}:{seed}:{item.id}"))
    return _finish(injector.draft, item, "t") if kind(injector) else None


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


@pytest.fixture(scope="module", params=[kind for kind, _ in INJECTIONS], ids=lambda kind: kind.__name__)
def made(request, tiny_items):
    copies = [
        (item, *found)
        for item in tiny_items
        for seed in range(3)
        if (found := injected_by(item, request.param, seed)) is not None
    ]
    assert copies
    return request.param.__name__, copies


class TestEveryInjection:
    def test_every_call_has_its_result(self, made):
        for _, copy, inserted in made[1]:
            pairing = copy.trajectory.pairing
            assert pairing.unanswered_calls == () and pairing.orphan_results == ()
            assert inserted <= {step.step for step in copy.trajectory.assistant_interactions}

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
            assert all(a.content == b.content for a, b in zip(new, old, strict=True) if b.content)
            moved = {
                (tuple(kept[i] for i in g.step), g.category, tuple(kept[i] if i >= 0 else -1 for i in g.evidence))
                for g in item.gold
            }
            assert moved == {(g.step, g.category, g.evidence) for g in copy.gold if g.step not in inserted}

    def test_category(self, made):
        kind, copies = made
        expected = {
            "repeat": DUPLICATED, "repeat_parallel": DUPLICATED, "failure": ABNORMAL, "refused": INCORRECT,
            "unknown_tool": INCORRECT, "empty_search": EXPLORATORY, "lone_failure": None, "changed_repeat": None,
        }[kind]  # fmt: skip
        for _, copy, inserted in copies:
            found = {label.step: label.category for label in copy.gold if label.step in inserted}
            assert inserted and set(found.values()) == ({expected} if expected else set())
            assert not expected or set(found) == inserted


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


def test_failure_is_followed_by_the_same_call(tiny_items):
    for _, steps, target, label in labelled(tiny_items, Injector.failure):
        retry = steps[label.evidence]
        assert retry.call_key == target.call_key and retry.ordinal > target.ordinal and retry.failure is None
        assert target.result in wordings.TRANSIENT


@pytest.mark.parametrize("kind", [Injector.repeat, Injector.repeat_parallel], ids=lambda kind: kind.__name__)
def test_repeat_brings_what_is_known_and_nothing_changed(kind, tiny_items):
    for view, steps, target, label in labelled(tiny_items, kind):
        first = steps[label.evidence]
        assert first.ordinal < target.ordinal and first.result == target.result and first.tool == target.tool
        between = view.steps[first.ordinal + 1 : target.ordinal]
        assert not any(step.write for step in between)
        assert not any(s.result == target.result for s in view.steps[: first.ordinal])


def test_empty_search_comes_before_the_one_that_hits(tiny_items):
    for _, steps, target, label in labelled(tiny_items, Injector.empty_search):
        hit = steps[label.evidence]
        assert hit.ordinal > target.ordinal and hit.tool == target.tool and not hit.empty
        assert target.result in wordings.EMPTY and target.call_key != hit.call_key


def test_refused_names_what_settles_it(tiny_items):
    for view, _, target, label in labelled(tiny_items, Injector.refused):
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

    def test_what_is_left_out_is_not_injected(self, tiny_items):
        for item in tiny_items[:6]:
            for seed in range(4):
                made = augment(item, seed, injections=6, without=["repeat", "repeat_parallel"])
                labels = {label.category for label in made[0].gold if label.step in made[1]} if made else set()
                assert DUPLICATED not in labels
        assert augment(tiny_items[0], 0, without=[kind.__name__ for kind, _ in INJECTIONS]) is None
        with pytest.raises(ValueError, match=r"without: expected some of repeat.*, got repaet"):
            augment(tiny_items[0], 0, without=["repaet"])

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

    def test_parallel_calls_stay_together(self):
        item = LabelledTrajectory(chain(6, per_message=3), (), frozenset(), "s", "d", ("d", "t"))
        assert len(cut(item, 0).trajectory.interactions) == 3 and not cut(item, 0).trajectory.pairing.unanswered_calls


class TestWordings:
    def test_held_out_is_not_trained_on(self):
        training = {text.lower() for text in wordings.TRANSIENT}
        assert training.isdisjoint(text.lower() for text in wordings.HELD_OUT)
        assert len(set(wordings.TRANSIENT)) == len(wordings.TRANSIENT)

    def test_empty_results_are_no_failures(self):
        assert all(failure_kind(text) is None for text in wordings.EMPTY)

    def test_refusals_are_no_transient_failures(self):
        assert all(failure_kind(text.format(what="id")) != "transient" for text in wordings.REFUSED)
