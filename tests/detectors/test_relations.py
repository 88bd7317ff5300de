from __future__ import annotations

import json
import shutil

import pytest
from traces import step, trace, user

from redclf.detectors.relations import RelationsDetector
from redclf.errors import ModelError
from redclf.hashing import trajectory_hash
from redclf.taxonomy import CATEGORIES


@pytest.fixture(scope="module")
def folder(tiny_model, tmp_path_factory):
    """The model folder elsewhere, without what training left in it and what this detector has no use for."""
    place = tmp_path_factory.mktemp("copied") / "model"
    shutil.copytree(tiny_model, place, ignore=shutil.ignore_patterns("work", "encoder.onnx", "tokenizer.json"))
    return place


@pytest.fixture(scope="module")
def detector(folder):
    return RelationsDetector(folder)


def test_answers_all_three_tasks(detector, tiny_items):
    for item in tiny_items[::6]:
        found = detector.detect(item.trajectory, threshold=0.0)
        assert len(found) == len(item.trajectory.assistant_interactions)
        for gold in item.gold:
            assert sum(detector.classify(item.trajectory, gold.step, gold.evidence).values()) == pytest.approx(1)
            assert detector.retrieve(item.trajectory, gold.step).category in CATEGORIES


def test_has_learnt_something(detector, tiny_items):
    gold = [(item, step) for item in tiny_items for step in item.gold]
    right = 0
    for item, label in gold:
        found = detector.classify(item.trajectory, label.step, label.evidence)
        right += max(found, key=found.get) == label.category
    assert right > 0.6 * len(gold)
    mean = {True: [], False: []}
    for item in tiny_items:
        redundant = {label.step for label in item.gold}
        for key, value in detector.redundancy(item.trajectory).items():
            mean[key in redundant].append(value)
    assert sum(mean[True]) / len(mean[True]) > 0.1 + sum(mean[False]) / len(mean[False])


def test_remembers_its_training_data(detector, tiny_items):
    assert {trajectory_hash(item.trajectory) for item in tiny_items} == detector.trained_on()


def test_no_steps(detector):
    assert detector.detect(trace(user("hello"))) == []


def test_same_alone_and_among_others(detector, folder, tiny_items):
    among = [detector.detect(item.trajectory, threshold=0.0) for item in tiny_items]
    alone = [RelationsDetector(folder).detect(item.trajectory, threshold=0.0) for item in tiny_items[:3]]
    assert among[:3] == alone


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format=99), "expected a model of format 2, got 99"),
        (lambda c: c["features"].update(target=["x"]), "other relations"),
        (lambda c: c["calibration"].pop("relations"), r"expected calibration\.relations"),
    ],
)
def test_config_of_another_model(folder, tmp_path, change, message):
    place = tmp_path / "model"
    shutil.copytree(folder, place)
    config = json.loads((place / "config.json").read_text())
    change(config)
    (place / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=message):
        RelationsDetector(place)


def test_config_is_no_json(folder, tmp_path):
    place = tmp_path / "model"
    shutil.copytree(folder, place)
    (place / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"config\.json: expected JSON"):
        RelationsDetector(place)


def test_odd_trajectory(detector):
    odd = trace(step("f", "\ud800", {"x": float("nan")}), step("f", "x" * 100_000, ["y"]))
    assert len(detector.detect(odd, threshold=0.0)) == 2
