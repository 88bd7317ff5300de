from __future__ import annotations

import numpy as np
import pytest

from train.stacking import Stack, load_scores, save_scores


def test_scores_read_back(tmp_path):
    rng = np.random.default_rng(0)
    scores = {
        "a": [(0.5, rng.normal(size=(4, 3))), (-1.0, rng.normal(size=(4, 7)))],
        "b": [(2.0, rng.normal(size=(4, 1)))],
    }
    save_scores(tmp_path / "s.npz", scores)
    found = load_scores(tmp_path / "s.npz")
    assert list(found) == ["a", "b"]
    for key, targets in scores.items():
        for (a, x), (b, y) in zip(targets, found[key], strict=True):
            assert a == b
            np.testing.assert_allclose(x, y, atol=1e-6)


def test_no_scores(tmp_path):
    save_scores(tmp_path / "s.npz", {})
    assert load_scores(tmp_path / "s.npz") == {}


@pytest.fixture
def stack(tiny_tables, few_trees, tmp_path):
    folds = {table.id: place % 3 for place, table in enumerate(tiny_tables)}
    return Stack(tiny_tables, [], folds, few_trees, tmp_path, log=lambda message: None)


def test_no_fold_is_scored_by_a_model_that_saw_it(stack, monkeypatch):
    seen = {}
    fit = Stack.fit

    def spy(self, without):
        model = fit(self, without)
        predict = model.predict
        model.predict = lambda table: seen.setdefault(self.folds[table.id], set()).add(without) or predict(table)
        return model

    monkeypatch.setattr(Stack, "fit", spy)
    found = stack.stacked(0)
    assert set(found) == {table.id for table in stack.originals}
    assert all(fold in without for fold, models in seen.items() for without in models)
    for fold in (1, 2):
        assert frozenset({0, fold}) in seen[fold]


def test_a_second_run_fits_nothing(stack, monkeypatch):
    first = stack.stacked(None)
    monkeypatch.setattr(Stack, "fit", lambda self, without: pytest.fail("fitted again"))
    again = stack.stacked(None)
    assert first.keys() == again.keys()
    for key in first:
        assert all(np.array_equal(x[1], y[1]) for x, y in zip(first[key], again[key], strict=True))
