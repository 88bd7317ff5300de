from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from traces import chain, step, trace, user

from redclf.detectors.cross_encoder import CrossEncoderDetector
from redclf.errors import ModelError
from redclf.taxonomy import CATEGORIES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tiny_model, tmp_path_factory):
    """The model folder elsewhere, without what training left in it."""
    place = tmp_path_factory.mktemp("copied") / "model"
    shutil.copytree(tiny_model, place, ignore=shutil.ignore_patterns("work"))
    return place


@pytest.fixture(scope="module")
def detector(folder):
    return CrossEncoderDetector(folder)


def test_answers_all_three_tasks(detector, tiny_items):
    for item in tiny_items[::6]:
        found = detector.detect(item.trajectory, threshold=0.0)
        assert len(found) == len(item.trajectory.assistant_interactions)
        assert [p.confidence for p in found] == sorted((p.confidence for p in found), reverse=True)
        for gold in item.gold:
            assert sum(detector.classify(item.trajectory, gold.step, gold.evidence).values()) == pytest.approx(1)
            assert detector.retrieve(item.trajectory, gold.step).category in CATEGORIES


def test_same_alone_and_among_others(detector, folder, tiny_items):
    among = [detector.detect(item.trajectory, threshold=0.0) for item in tiny_items[:4]]
    assert CrossEncoderDetector(folder).detect(tiny_items[3].trajectory, threshold=0.0) == among[3]


def reading(place, change=None):
    """A detector on a copied model folder, and a list of the pairs that its encoder will have read."""
    if change is not None:
        config = json.loads((place / "config.json").read_text())
        change(config)
        (place / "config.json").write_text(json.dumps(config))
    detector = CrossEncoderDetector(place)
    read = []
    score = detector._encoder.score
    detector._encoder.score = lambda pairs: read.append(len(pairs)) or score(pairs)
    return detector, read


def test_targets_under_the_floor_are_not_read(folder, tmp_path, tiny_items):
    place = tmp_path / "model"
    shutil.copytree(folder, place)
    detector, read = reading(place, lambda config: config.update(floor=0.999999))
    assert detector.detect(tiny_items[0].trajectory, threshold=0.0) and read == []


def test_a_step_is_read_when_its_category_is_wanted_and_once(folder, tmp_path, tiny_items):
    place = tmp_path / "model"
    shutil.copytree(folder, place)
    detector, read = reading(place, lambda config: config.update(floor=1e-9))
    trajectory = tiny_items[0].trajectory
    odds = detector.redundancy(trajectory)
    assert len(odds) > 3 and read == []
    least = sorted(odds.values())[-2]
    found = detector.detect(trajectory, threshold=least)
    assert len(found) == 2 == len(read)
    detector.detect(trajectory, threshold=least)
    assert len(read) == 2
    assert detector.retrieve(trajectory, found[0].step).evidence == found[0].evidence and len(read) == 2
    assert len(detector.detect(trajectory, threshold=0.0)) == len(odds) == len(read)


def test_every_open_step_is_read_where_the_encoder_has_a_say_over_redundancy(folder, tmp_path, tiny_items):
    place = tmp_path / "model"
    shutil.copytree(folder, place)

    def change(config):
        config["floor"] = 1e-9
        config["calibration"]["both"]["redundant"][2] = 0.5

    detector, read = reading(place, change)
    odds = detector.redundancy(tiny_items[0].trajectory)
    assert len(read) == len(odds) and odds != CrossEncoderDetector(folder).redundancy(tiny_items[0].trajectory)


def test_threads_and_order_change_nothing(folder, tiny_items):
    def answers(detector, items):
        return {item.id: detector.detect(item.trajectory, threshold=0.0) for item in items}

    one = answers(CrossEncoderDetector(folder, threads=1), tiny_items[:6])
    assert one == answers(CrossEncoderDetector(folder, threads=2), tiny_items[5::-1])


def test_odd_trajectories(detector):
    assert detector.detect(trace(user("hello"))) == []
    odd = trace(step("f", "\ud800", {"x": float("nan")}), step("f", "x" * 100_000, ["y"]))
    assert len(detector.detect(odd, threshold=0.0)) == 2
    assert len(detector.detect(chain(60, 60), threshold=0.0)) == 60


@pytest.mark.parametrize("name", ["encoder.onnx", "tokenizer.json", "config.json", "relations/given.onnx"])
def test_missing_file(folder, tmp_path, name):
    place = tmp_path / "model"
    shutil.copytree(folder, place)
    (place / name).unlink()
    with pytest.raises(ModelError):
        CrossEncoderDetector(place)


def test_runs_without_torch(folder, tiny_root):
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from redclf.benchmark.data import load_benchmark
from redclf.detectors.cross_encoder import CrossEncoderDetector
from redclf.detectors.relations import RelationsDetector
item = load_benchmark({str(tiny_root)!r})[0]
for kind in (CrossEncoderDetector, RelationsDetector):
    detector = kind({str(folder)!r})
    detector.detect(item.trajectory)
    detector.classify(item.trajectory, item.gold[0].step, item.gold[0].evidence)
    detector.retrieve(item.trajectory, item.gold[0].step)
heavy = "torch transformers lightgbm sklearn scipy pandas train datasets peft".split()
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
