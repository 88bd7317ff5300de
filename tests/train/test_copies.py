from __future__ import annotations

import numpy as np

from redclf.taxonomy import ABNORMAL, EXPLORATORY
from train.copies import AHEAD, Augmentation, copies_of, cut_copies, injected_copies
from train.tables import Weights, build_copies

CUTS = Augmentation(copies=0, cuts=40)


def test_another_seed_makes_other_copies(tiny_items):
    plan = Augmentation(copies=2)
    first, again, other = (
        [copy for item in tiny_items for copy, _ in injected_copies(item, plan, s)] for s in (0, 0, 1)
    )
    assert first == again
    assert {copy.id for copy in first}.isdisjoint(copy.id for copy in other)


def test_cuts_are_different_and_short(tiny_items):
    for item in tiny_items[:6]:
        made = cut_copies(item, CUTS)
        assert len({copy.id for copy, _ in made}) == len(made) == len(item.trajectory.interactions) - AHEAD
        for copy, first in made:
            assert len(copy.trajectory.interactions) - first == AHEAD + 1
            assert copy.trajectory.messages == item.trajectory.messages[: len(copy.trajectory.messages)]


def test_a_cut_stands_for_its_last_steps_and_keeps_their_labels(tiny_items):
    tables = build_copies(tiny_items, Weights(cut=0.5), CUTS, workers=1)
    originals = {item.id: item for item in tiny_items}
    hidden = 0
    for table in tables:
        gold = {step.step: step for step in originals[table.origin].gold}
        first = int(table.id.rpartition("-")[2]) - AHEAD
        ordinals = {i.step: i.ordinal for i in originals[table.origin].trajectory.interactions}
        for place, step in enumerate(table.steps):
            if ordinals[step] < first:
                assert table.redundant[place] == -1 and table.weight[place] == 0 == table.pair_weight[place]
                continue
            assert table.redundant[place] == (step in gold) and table.weight[place] == np.float32(0.5)
            if step in gold and max(gold[step].evidence) > table.steps[-1][1]:
                hidden += 1
                assert table.gold[place] is None and table.pair_weight[place] > 0 and table.category[place] >= 0
                assert gold[step].category in (ABNORMAL, EXPLORATORY)
    assert hidden


def test_copies_and_tables_are_the_same(tiny_items):
    plan = Augmentation(copies=1, cuts=1)
    tables = build_copies(tiny_items[:5], Weights(), plan, seed=3, workers=1)
    assert sorted(t.id for t in tables) == sorted(c.id for c in copies_of(tiny_items[:5], plan, 3))
