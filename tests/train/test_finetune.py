from __future__ import annotations

import json
from pathlib import Path

import pytest

from train import finetune
from train.command import FOLDS, load_items

CONFIG = Path(__file__).parents[2] / "configs" / "smoke.yaml"


def test_the_folder_is_complete(tiny_model):
    names = {path.name for path in tiny_model.iterdir()}
    assert {
        "config.json",
        "tokenizer.json",
        "encoder.onnx",
        "relations",
        "metrics.json",
        "README.md",
        "trained_on.json",
    } <= names
    assert (tiny_model / "work" / "encoder" / "model.safetensors").is_file()
    config = json.loads((tiny_model / "config.json").read_text())
    assert set(config["calibration"]) >= {"relations", "both"} and config["recipe"]["name"] == "smoke"
    assert len(json.loads((tiny_model / "trained_on.json").read_text())) == 28


def test_the_card_names_how_it_was_made(tiny_model):
    card = (tiny_model / "README.md").read_text()
    assert "train.finetune" in card and "28 trajectories" in card and "Out-of-fold" not in card


def test_exported_encoder_is_close_to_the_module(tiny_model):
    import torch

    from redclf.model.pair_encoder import PairEncoder
    from redclf.runtime.encoder import OnnxEncoder
    from train.encoder import collate

    pairs = [([101, 2000 + n, 2050, 102, 3000, 102], 4) for n in range(20)]
    module = PairEncoder.from_pretrained(tiny_model / "work" / "encoder")
    with torch.inference_mode():
        expected = module(*collate([ids for ids, _ in pairs], [first for _, first in pairs])).numpy()
    found = OnnxEncoder(tiny_model / "encoder.onnx").score(pairs)
    assert abs(found - expected).max() < 0.05


def test_a_second_run_trains_nothing_again(tiny_root, tiny_model, monkeypatch):
    from train.stacking import Stack

    scores = Stack.scores
    seen = []
    monkeypatch.setattr(Stack, "scores", lambda self, without: seen.append(without) or scores(self, without))
    before = (tiny_model / "config.json").read_text()
    encoder = (tiny_model / "work" / "encoder" / "encoder.safetensors").stat().st_mtime_ns
    assert finetune.main(["--config", str(CONFIG), "--data", str(tiny_root), "--output", str(tiny_model)]) == 0
    assert seen and (tiny_model / "config.json").read_text() == before
    assert (tiny_model / "work" / "encoder" / "encoder.safetensors").stat().st_mtime_ns == encoder


def test_folds_without_a_split_keep_tasks_together(tiny_root, tmp_path):
    import shutil

    root = tmp_path / "root"
    shutil.copytree(tiny_root, root)
    (root / "splits.json").unlink()
    items, folds = load_items([str(root)])
    by_group: dict[tuple[str, str], set[int]] = {}
    for item in items:
        by_group.setdefault(item.group, set()).add(folds[item.trajectory.id])
    assert set(folds.values()) == set(range(FOLDS)) and all(len(found) == 1 for found in by_group.values())


@pytest.mark.parametrize("wrong", ["data", "config"])
def test_mistakes_are_one_line(tmp_path, tiny_root, capsys, wrong):
    config = tmp_path / "run.yaml"
    config.write_text("nmae: x" if wrong == "config" else "")
    data = tmp_path / "none" if wrong == "data" else tiny_root
    assert finetune.main(["--config", str(config), "--data", str(data), "--output", str(tmp_path / "m")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("redclf train: ") and error.count("\n") == 1 and "expected" in error
