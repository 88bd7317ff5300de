from __future__ import annotations

from dataclasses import replace

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
    model = Stack.model

    def spy(self, without):
        found = model(self, without)
        predict = found.predict
        found.predict = lambda table, *floor: (
            seen.setdefault(self.folds[table.id], set()).add(without) or predict(table, *floor)
        )
        return found

    monkeypatch.setattr(Stack, "model", spy)
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


def changed(stack, fold, **values):
    """The stack with something else in the first table of one fold, and that table."""
    place = next(i for i, table in enumerate(stack.originals) if stack.folds[table.id] == fold)
    table = replace(
        stack.originals[place], **{k: make(getattr(stack.originals[place], k)) for k, make in values.items()}
    )
    return replace(stack, originals=[*stack.originals[:place], table, *stack.originals[place + 1 :]]), table


@pytest.mark.parametrize(
    "change",
    [
        lambda stack: changed(stack, 1, targets=lambda rows: rows + 1)[0],
        lambda stack: changed(stack, 1, pairs=lambda pairs: [pairs[0] + 1, *pairs[1:]])[0],
        lambda stack: changed(stack, 1, weight=lambda weight: weight * 2)[0],
        lambda stack: changed(stack, 1, gold=lambda gold: [None] * len(gold))[0],
        lambda stack: replace(stack, settings=replace(stack.settings, rounds=9)),
        lambda stack: replace(stack, seed=1),
        lambda stack: replace(stack, originals=stack.originals[:-2]),
    ],
    ids=["target", "pair", "weight", "gold", "settings", "seed", "fewer"],
)
def test_nothing_stale_is_read(stack, change, monkeypatch):
    stack.scores(frozenset({0}))
    fitted = []
    fit = Stack.fit
    monkeypatch.setattr(Stack, "fit", lambda self, without: fitted.append(without) or fit(self, without))
    change(stack).scores(frozenset({0}))
    assert fitted == [frozenset({0})]


def test_threads_and_changed_test_trajectories_fit_nothing_again(stack, monkeypatch):
    before = stack.scores(frozenset({0}))
    monkeypatch.setattr(Stack, "fit", lambda self, without: pytest.fail("fitted again"))
    threads = replace(stack, settings=replace(stack.settings, threads=2))
    assert threads.scores(frozenset({0})).keys() == before.keys()
    other, table = changed(stack, 0, targets=lambda rows: rows * np.nan)
    after = other.scores(frozenset({0}))
    assert [x[0] for x in after[table.id]] != [x[0] for x in before[table.id]]
