from __future__ import annotations

import json
from pathlib import Path

import pytest

from redclf.benchmark.evaluate import evaluate
from redclf.benchmark.results import ResultFileDetector
from train import crossval, rows
from train.command import load_items

CONFIG = Path(__file__).parents[2] / "configs" / "smoke.yaml"


@pytest.fixture(scope="module")
def done(tiny_root, tmp_path_factory):
    place = tmp_path_factory.mktemp("crossval")
    arguments = ["--config", str(CONFIG), "--data", str(tiny_root), "--output", str(place / "results")]
    arguments += ["--runs", str(place / "runs"), "--set", "augmentation.copies=0"]
    assert crossval.main(arguments) == 0
    return place, arguments


def test_every_trajectory_is_predicted_once_and_out_of_fold(done, tiny_items):
    for row in crossval.ROWS:
        detector = ResultFileDetector(done[0] / "results" / "oof" / f"smoke-{row}-benchmark.jsonl")
        found = evaluate(detector, tiny_items)
        assert found.to_dict()["localisation"]["n"] > 0
        assert detector.trained_on() == frozenset()


def test_tables_and_numbers(done):
    text = (done[0] / "results" / "crossval-smoke.md").read_text()
    assert all(row in text for row in crossval.ROWS) and "## benchmark" in text
    numbers = json.loads((done[0] / "results" / "crossval-smoke.json").read_text())
    assert set(crossval.ROWS) <= numbers["benchmark"].keys() and "both - relations" in numbers["benchmark"]
    assert numbers["about"]["data"]["trajectories"] == 28


def test_a_second_run_trains_nothing_and_says_the_same(done, monkeypatch):
    before = (done[0] / "results" / "crossval-smoke.json").read_text()
    monkeypatch.setattr(rows, "fit_encoder", lambda *a: pytest.fail("trained again"))
    assert crossval.main(done[1]) == 0
    after = (done[0] / "results" / "crossval-smoke.json").read_text()
    assert json.loads(before)["benchmark"] == json.loads(after)["benchmark"]


def test_a_fold_is_not_in_its_own_training(tiny_root, tmp_path, monkeypatch):
    class StopError(Exception):
        pass

    found = []

    def spy(workshop, train, scores, place):
        found.append({item.trajectory.id for item in train})
        raise StopError

    monkeypatch.setattr(rows, "fit_encoder", spy)
    with pytest.raises(StopError):
        crossval.main(
            ["--config", str(CONFIG), "--data", str(tiny_root), "--output", str(tmp_path / "o"), "--runs",
             str(tmp_path / "r"), "--set", "augmentation.copies=0"]
        )  # fmt: skip
    _, folds = load_items([str(tiny_root)])
    assert found[0] == {name for name, fold in folds.items() if fold != 0}


def test_seeds_are_reported_with_their_spread(tiny_root, tmp_path):
    arguments = ["--config", str(CONFIG), "--data", str(tiny_root), "--output", str(tmp_path / "results"),
                 "--runs", str(tmp_path / "runs"), "--relations-only", "--seeds", "0", "1"]  # fmt: skip
    assert crossval.main(arguments) == 0
    numbers = json.loads((tmp_path / "results" / "crossval-smoke-seeds.json").read_text())
    found = numbers["benchmark"]["relations"]["category.accuracy"]
    assert numbers["about"]["seed"] == [0, 1] and len(found["seeds"]) == 2 and found["seeds"][0] != found["seeds"][1]
    assert found["mean"] == pytest.approx(sum(found["seeds"]) / 2)
    assert found["spread"] == pytest.approx(abs(found["seeds"][0] - found["seeds"][1]) / 2**0.5)
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"smoke", "smoke-s1"}
    assert "±" in (tmp_path / "results" / "crossval-smoke-seeds.md").read_text()
    again = [*arguments[:-3], "--output", str(tmp_path / "one")]
    assert crossval.main(again) == 0
    one = json.loads((tmp_path / "one" / "crossval-smoke.json").read_text())
    assert one["benchmark"]["relations"]["category"]["accuracy"] == pytest.approx(found["seeds"][0])
