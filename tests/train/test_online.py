from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from redclf.runtime.fusion import UNREAD
from train import online
from train.augment import cut
from train.boosting import fit_boosting
from train.copies import AHEAD
from train.online import ONLINE, ONLINE_CUTS, WHOLE, WHOLE_CUTS, lay_over, online_tables, score_online
from train.stacking import Stack
from train.tables import Weights

CONFIG = Path(__file__).parents[2] / "configs" / "smoke.yaml"


def arguments(root, place, *more):
    return ["--config", str(CONFIG), "--data", str(root), "--output", str(place / "results"),
            "--runs", str(place / "runs"), "--workers", "1", *more]  # fmt: skip


@pytest.fixture(scope="module")
def done(tiny_root, tmp_path_factory):
    place = tmp_path_factory.mktemp("online")
    assert online.main(arguments(tiny_root, place, "--folds", "0", "1")) == 0
    return place


def test_every_target_is_judged_once_on_what_a_loop_has_seen(tiny_items, tiny_tables):
    for item, whole in zip(tiny_items, tiny_tables, strict=True):
        judged = [(table.steps[place], table) for table, places in online_tables(item, Weights()) for place in places]
        assert sorted(step for step, _ in judged) == sorted(whole.steps)
        for step, table in judged:
            ordinal = next(i.ordinal for i in item.trajectory.interactions if i.step == step)
            seen = cut(item, ordinal + AHEAD)
            assert table.steps == [i.step for i in seen.trajectory.interactions if i.requestor == "assistant"]


def test_a_distribution_is_laid_over_the_candidates_of_the_whole_run():
    cells = np.log(np.array([[0.3, 0.1], [0.2, 0.1], [0.1, 0.1], [0.05, 0.05]]))
    laid = lay_over(cells, [(1, 2), (-1,)], [(-1,), (7, 8), (1, 2)])
    assert np.isclose(np.exp(laid).sum(), 1) and np.allclose(laid[:, [2, 0]], cells, atol=1e-6)
    hidden = np.exp(laid[:, 1] - laid[:, 1].max())
    assert laid[:, 1].max() < UNREAD and np.allclose(hidden, np.array([0.4, 0.3, 0.2, 0.1]) / 0.4)


def test_all_rows_and_their_differences_are_reported(done, tiny_items):
    numbers = json.loads((done / "results" / "online-smoke.json").read_text())
    found = numbers["benchmark"]
    assert {WHOLE, ONLINE, WHOLE_CUTS, ONLINE_CUTS} <= found.keys() and numbers["about"]["cuts"] == 3
    assert {found[row]["category"]["n"] for row in (WHOLE, ONLINE, WHOLE_CUTS, ONLINE_CUTS)} == {
        found[WHOLE]["category"]["n"]
    }
    assert len({found[row]["category"]["n"] for row in (WHOLE, ONLINE, WHOLE_CUTS, ONLINE_CUTS)}) == 1
    difference = found[f"{ONLINE} - {WHOLE}"]["localisation.ap"]
    assert difference["b"] == found[WHOLE]["localisation"]["ap"]
    assert "Online is the run up to 2 interactions" in (done / "results" / "online-smoke.md").read_text()


def test_what_comes_later_has_no_say(tiny_items, tiny_tables, few_trees):
    model = fit_boosting(tiny_tables, few_trees)
    changed = 0
    for item, table in zip(tiny_items, tiny_tables, strict=True):
        found = score_online({"m": model}, item, table, Weights())["m"]
        whole = model.predict(table)
        for step, (first, _), (second, cells) in zip(item.trajectory.assistant_interactions, whole, found, strict=True):
            seen = cut(item, step.ordinal + AHEAD).trajectory.messages
            assert first == second or len(seen) < len(item.trajectory.messages)
            changed += first != second
            assert np.isclose(np.exp(cells).sum(), 1)
    assert changed


def test_the_second_model_is_trained_with_cuts_and_neither_saw_the_fold(tiny_root, tmp_path, monkeypatch):
    fits = []
    fit = Stack.fit
    monkeypatch.setattr(Stack, "fit", lambda self, without: fits.append((self, without)) or fit(self, without))
    assert online.main(arguments(tiny_root, tmp_path, "--folds", "0", "--cuts", "1")) == 0
    kinds = set()
    for stack, without in fits:
        tables = stack._tables(without, inside=False)
        assert 0 in without and not any(stack.folds[table.origin] == 0 for table in tables)
        kinds.add(any("#cut-" in table.id for table in tables))
    assert kinds == {False, True}


def test_a_second_run_fits_and_asks_nothing(done, tiny_root, monkeypatch):
    before = json.loads((done / "results" / "online-smoke.json").read_text())
    monkeypatch.setattr(Stack, "fit", lambda self, without: pytest.fail("fitted again"))
    monkeypatch.setattr(online, "_score_online", lambda job: pytest.fail("asked again"))
    assert online.main(arguments(tiny_root, done, "--folds", "0", "1")) == 0
    assert json.loads((done / "results" / "online-smoke.json").read_text())["benchmark"] == before["benchmark"]


@pytest.mark.parametrize(
    ("more", "complaint"),
    [(["--cuts", "0"], "--cuts: expected a positive number, got 0"), (["--folds", "9"], "--folds: expected some of")],
)
def test_wrong_arguments(tiny_root, tmp_path, capsys, more, complaint):
    assert online.main(arguments(tiny_root, tmp_path, *more)) == 2
    assert complaint in capsys.readouterr().err
