from __future__ import annotations

import numpy as np
import pytest

from redclf.benchmark.data import LabelledTrajectory
from redclf.trajectory import Message, Trajectory
from train.boosting import fit_boosting, given_rows, listwise_objective, pair_rows
from train.copies import Augmentation
from train.tables import Weights, build_copies, build_originals, build_table, select


@pytest.fixture(scope="module")
def model(tiny_tables, few_trees):
    return fit_boosting(tiny_tables, few_trees)


def test_tables_hold_the_labels(tiny_items, tiny_tables):
    for item, table in zip(tiny_items, tiny_tables, strict=True):
        assert sum(table.redundant == 1) == len(item.gold)
        for label in item.gold:
            place = table.steps.index(label.step)
            assert table.evidence[place][table.gold[place]] == label.evidence
            assert table.pair_weight[place] > 0


def test_copies_count_their_injected_steps_only(tiny_items):
    originals = build_originals(tiny_items[:4], Weights(), workers=1)
    extra = build_copies(tiny_items[:4], Weights(), Augmentation(cuts=1), workers=1)
    copies = [table for table in extra if "#augmented" in table.id]
    assert copies and len(extra) > len(copies)
    for table in copies:
        original = next(t for t in originals if t.id == table.origin)
        assert 0 < (table.pair_weight > 0).sum() <= len(table.targets) - len(original.targets)
    assert select(extra, {originals[0].id}) == [t for t in extra if t.origin == originals[0].id]


def test_disputed_steps_are_not_used(tiny_items):
    item = tiny_items[0]
    step = item.trajectory.assistant_interactions[0].step
    other = LabelledTrajectory(item.trajectory, (), frozenset({step}), item.subset, item.domain, item.group)
    table = build_table(other, Weights())
    assert table.redundant[0] == -1 and table.weight[0] == 0


def test_prediction_is_a_distribution(model, tiny_tables):
    found = model.predict(tiny_tables[0])
    assert len(found) == len(tiny_tables[0].targets)
    for (logit, cells), pairs in zip(found, tiny_tables[0].pairs, strict=True):
        assert np.isfinite(logit) and cells.shape == (4, len(pairs))
        assert np.exp(cells).sum() == pytest.approx(1)


def test_same_seed_same_model(model, tiny_tables, few_trees):
    again = fit_boosting(tiny_tables, few_trees)
    for (a, x), (b, y) in zip(model.predict(tiny_tables[3]), again.predict(tiny_tables[3]), strict=True):
        assert a == b
        np.testing.assert_array_equal(x, y)


def test_no_targets(model):
    empty = LabelledTrajectory(Trajectory("e", (Message("user", "x"),)), (), frozenset(), "s", "d", ("d", "e"))
    assert model.predict(build_table(empty, Weights())) == []


def test_exported_trees_score_the_same(model, tiny_items, tiny_tables, tmp_path):
    from redclf.relations.features import Relations
    from redclf.relations.views import TrajectoryView
    from redclf.runtime.relation_scorer import RelationScorer
    from train.export import export_trees

    export_trees(model, tmp_path)
    scorer = RelationScorer(tmp_path)
    for item, table in zip(tiny_items[:5], tiny_tables[:5], strict=True):
        found = scorer.score(Relations(TrajectoryView(item.trajectory)))
        for (a, x), (b, y) in zip(model.predict(table), found, strict=True):
            assert a == pytest.approx(b, abs=1e-5)
            np.testing.assert_allclose(x, y, atol=1e-4)


def test_rows():
    target, pairs = np.arange(3.0), np.ones((2, 4))
    assert given_rows(target, pairs).shape == (2, 7)
    rows = pair_rows(target, pairs, 2)
    assert rows.shape == (2, 11) and rows[0, 7:].tolist() == [0, 0, 1, 0]


def test_listwise_gradient_is_that_of_a_softmax():
    class Data:
        def get_label(self):
            return np.array([1.0, 0, 0, 0, 1])

        def get_weight(self):
            return np.array([1.0, 1, 1, 2, 2])

    gradient, hessian = listwise_objective([3, 2])(np.array([0.0, 0, 0, 1, 1]), Data())
    np.testing.assert_allclose(gradient, [-2 / 3, 1 / 3, 1 / 3, 1, -1])
    assert (hessian > 0).all()
