from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_benchmark import write_benchmark

from redclf.detectors.cross_encoder import CrossEncoderDetector
from train import unseen

CONFIG = Path(__file__).parents[2] / "configs" / "smoke.yaml"


@pytest.fixture(scope="module")
def other_root(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("other"), seed=9)


def test_a_model_folder_is_scored_as_it_ships(tiny_model, other_root, tmp_path):
    assert unseen.main(["--model", str(tiny_model), "--test", str(other_root), "--name", "few",
                        "--domains", "harbour", "archive", "--output", str(tmp_path)]) == 0  # fmt: skip
    found = json.loads((tmp_path / "unseen-few.json").read_text())
    assert {"relations", "text", "both", "both - relations"} <= found["all"].keys()
    assert all(found["all"][row]["trajectories"] == 14 for row in ("relations", "text", "both"))
    assert found["all"]["both"]["by_domain"].keys() == {"harbour", "archive"}
    assert found["all"]["both"]["localisation"]["ece"] is not None
    assert found["about"]["model"]["name"] == "redclf-smoke" and found["about"]["model"]["training"]["commit"]
    text = (tmp_path / "unseen-few.md").read_text()
    assert text.count("by domain") == 3 and "ECE" in text and "both - relations" in text


def test_both_is_the_shipped_detector_and_text_is_not(tiny_model, other_root):
    from redclf.benchmark.data import load_benchmark

    trajectory = load_benchmark(other_root)[0].trajectory
    rows = unseen.detectors_of(tiny_model, relations_only=False)
    assert rows["both"].detect(trajectory) == CrossEncoderDetector(tiny_model).detect(trajectory)
    scored = {row: detector.scores(trajectory).targets for row, detector in rows.items()}
    places = [k for k, target in enumerate(scored["text"]) if np.ptp(target.cells) > 0]
    assert places
    for place in places:
        text, both = scored["text"][place], scored["both"][place]
        assert text.cells.shape == both.cells.shape and text.logit != both.logit
        # What the encoder did not read is next to impossible by the text alone.
        assert (text.cells.max(axis=0) > -20).sum() <= 2


def test_what_the_model_was_trained_on_is_refused(tiny_model, tiny_root, tmp_path, capsys):
    assert unseen.main(["--model", str(tiny_model), "--test", str(tiny_root), "--output", str(tmp_path)]) == 2
    assert "IN-SAMPLE" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_training_first_and_relations_alone(tiny_root, other_root, tmp_path):
    arguments = ["--config", str(CONFIG), "--data", str(tiny_root), "--test", str(other_root), "--runs",
                 str(tmp_path / "runs"), "--output", str(tmp_path / "out"), "--relations-only"]  # fmt: skip
    assert unseen.main(arguments) == 0
    found = json.loads((tmp_path / "out" / "unseen-all.json").read_text())
    assert "relations" in found["all"] and "both" not in found["all"]
    folder = tmp_path / "runs" / "smoke-visible"
    assert (folder / "relations" / "redundant.onnx").is_file() and not (folder / "encoder.onnx").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "expected --model, or --config and --data"),
        (["--config", str(CONFIG)], "--config: expected --data"),
        (["--model", "nowhere"], "nowhere: expected a model folder"),
    ],
)
def test_mistakes(more, message, other_root, tmp_path, capsys):
    assert unseen.main(["--test", str(other_root), "--output", str(tmp_path), *more]) == 2
    assert message in capsys.readouterr().err
