from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from redclf.model.pair_encoder import PairEncoder, PairEncoderConfig, load_base
from train import encoder
from train.encoder import StateCache, TrainingSettings, collate, order_batches, predict, train_encoder
from train.progress import progress_bar

ROOT = Path(__file__).resolve().parents[2]
SHAPE = PairEncoderConfig(layers=2, frozen_layers=1)


class KilledError(Exception):
    pass


def kill(message: str) -> None:
    if message.startswith("{"):
        raise KilledError


def quiet(message: str) -> None:
    pass


def settings(**more) -> TrainingSettings:
    return TrainingSettings(**{"epochs": 5.0, "batch_targets": 8, "learning_rate": 1e-3, **more})


def module() -> PairEncoder:
    return load_base("random-tiny", SHAPE)


def weights(made: PairEncoder) -> dict[str, torch.Tensor]:
    return made.state_dict()


def same(a: PairEncoder, b: PairEncoder) -> bool:
    return weights(a).keys() == weights(b).keys() and all(torch.equal(v, weights(b)[k]) for k, v in weights(a).items())


def test_the_random_base_is_the_same_every_time():
    torch.manual_seed(5)
    first = module()
    torch.rand(3)
    assert same(first, module())


@pytest.mark.parametrize("tuning", ["top", "full", "frozen", "lora"])
def test_learns_what_it_may_change(tuning, targets, tmp_path):
    before = module()
    cache = None
    if tuning in ("top", "frozen"):
        cache = StateCache(module(), log=quiet)
        cache.add(targets)
    made = train_encoder(module(), targets, settings(tuning=tuning), tmp_path, cache, targets[:8], log=quiet)
    changed = {
        name.split(".")[0] for name, value in weights(made).items() if not torch.equal(value, weights(before)[name])
    }
    moved = {"top": {"upper"}, "frozen": set(), "full": {"embeddings", "lower", "upper"}, "lora": {"lower", "upper"}}[
        tuning
    ]
    assert changed == moved | {"head"}
    assert weights(made).keys() == weights(before).keys()
    record = json.loads((tmp_path / "training.jsonl").read_text().splitlines()[-1])
    assert record["held_out_redundant"] < record["held_out_redundant_relations"]


def test_lora_changes_attention_projections_only_and_exports_as_any_other(targets, tmp_path):
    from train.export import export_encoder

    before = module()
    made = train_encoder(module(), targets, settings(tuning="lora", lora_rank=4), tmp_path, None, log=quiet)
    changed = {name for name, value in weights(made).items() if not torch.equal(value, weights(before)[name])}
    assert all(".attention." in name or name.startswith("head.") for name in changed)
    assert {n.rsplit(".", 2)[-2] for n in changed if "attention" in n} == {"query", "key", "value", "dense"}
    made.save_pretrained(tmp_path / "saved")
    batch = collate(targets[0].pairs, targets[0].first)
    with torch.inference_mode():
        expected = made.eval()(*batch)
        assert torch.allclose(PairEncoder.from_pretrained(tmp_path / "saved")(*batch), expected, atol=1e-6)
    from redclf.runtime.encoder import OnnxEncoder

    export_encoder(made, tmp_path / "e.onnx")
    pairs = list(zip(targets[0].pairs, targets[0].first, strict=True))
    np.testing.assert_allclose(OnnxEncoder(tmp_path / "e.onnx").score(pairs), expected.numpy(), atol=1e-4)


def test_unknown_tuning(targets, tmp_path):
    with pytest.raises(ValueError, match=r"training\.tuning: expected one of top, full, frozen, lora, got 'most'"):
        train_encoder(module(), targets, settings(tuning="most"), tmp_path, None, log=quiet)


@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_killed_and_resumed_is_the_same_as_unbroken(tuning, targets, tmp_path):
    plan = settings(tuning=tuning, checkpoint_seconds=-1.0)
    unbroken = train_encoder(module(), targets, plan, tmp_path / "a", None, log=quiet)
    with pytest.raises(KilledError):
        train_encoder(module(), targets, plan, tmp_path / "b", None, log=kill)
    assert json.loads((tmp_path / "b" / "checkpoint.json").read_text())["step"] == 24
    lines: list[str] = []
    torch.rand(100)
    resumed = train_encoder(module(), targets, plan, tmp_path / "b", None, log=lines.append)
    assert lines[0] == "resumed at step 24 of 30"
    assert same(unbroken, resumed)


def test_a_kill_while_saving_leaves_the_last_checkpoint(targets, tmp_path, monkeypatch):
    import accelerate

    plan = settings(tuning="full", checkpoint_seconds=-1.0, epochs=1.0)
    unbroken = train_encoder(module(), targets, plan, tmp_path / "a", None, log=quiet)
    save = accelerate.Accelerator.save_state
    count = []

    def broken(self, folder, *more, **named):
        count.append(folder)
        save(self, folder, *more, **named)
        if len(count) == 4:
            raise KilledError

    monkeypatch.setattr(accelerate.Accelerator, "save_state", broken)
    with pytest.raises(KilledError):
        train_encoder(module(), targets, plan, tmp_path / "b", None, log=quiet)
    monkeypatch.undo()
    assert json.loads((tmp_path / "b" / "checkpoint.json").read_text())["step"] == 3
    assert same(unbroken, train_encoder(module(), targets, plan, tmp_path / "b", None, log=quiet))


def test_finished_training_is_read_back(targets, tmp_path):
    first = train_encoder(module(), targets, settings(epochs=1.0), tmp_path, None, log=quiet)
    assert same(first, train_encoder(module(), targets, settings(epochs=1.0), tmp_path, None, log=kill))


def test_states_are_those_of_the_whole_module(targets):
    made = module().eval()
    cache = StateCache(made, log=quiet)
    cache.add(targets)
    cache.add(targets)
    for a, b in zip(predict(made, cache, targets), predict(made, None, targets), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-3)


def test_batches_hold_every_target_once(targets):
    batches = order_batches(targets, 7, seed=1)
    assert sorted(place for batch in batches for place in batch) == list(range(len(targets)))
    assert batches == order_batches(targets, 7, seed=1) != order_batches(targets, 7, seed=2)


def test_collate():
    ids, mask, segments = collate([[1, 2, 3], [4, 5]], [1, 2])
    assert ids.tolist() == [[1, 2, 3], [4, 5, 0]] and mask.tolist() == [[1, 1, 1], [1, 1, 0]]
    assert segments.tolist() == [[0, 1, 1], [0, 0, 0]]


def test_progress_bar_on_a_terminal_only():
    shown = Console(force_terminal=True, width=100, record=True, file=__import__("io").StringIO())
    with progress_bar("training", 10, 3, shown) as advance:
        advance()
    assert "4/10" in shown.export_text() and "left" in shown.file.getvalue()
    hidden = Console(force_terminal=False, file=__import__("io").StringIO())
    with progress_bar("training", 10, 0, hidden) as advance:
        advance()
    assert hidden.file.getvalue() == ""


@pytest.mark.parametrize("cached", [True, False])
def test_inputs_go_to_the_device_of_the_module(targets, cached):
    """On the device "meta" nothing is computed, but operands of two devices are refused as on a GPU."""
    cache = None
    if cached:
        cache = StateCache(module(), log=quiet)
        cache.add(targets[:4])
    outputs = encoder._forward(module().to("meta"), cache, targets[:4])
    assert outputs.device.type == "meta" and outputs.shape == (8, 10)
    assert encoder._losses(outputs, targets[:4], 0.5).device.type == "meta"


@pytest.mark.slow
def test_accelerate_launch_trains_the_same(tiny_root, tiny_model, tmp_path):
    launch = "accelerate.commands.launch --cpu --num_processes 1 --num_machines 1 --mixed_precision no"
    command = [sys.executable, "-m", *launch.split(), "--dynamo_backend", "no", "-m", "train.finetune"]
    command += ["--config", str(ROOT / "configs" / "smoke.yaml"), "--data", str(tiny_root)]
    command += ["--output", str(tmp_path / "m")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    files = [place / "work" / "encoder" / "encoder.safetensors" for place in (tiny_model, tmp_path / "m")]
    one, other = map(load_file, files)
    assert one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())
