from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from redclf.detectors.cross_encoder import CrossEncoderDetector
from redclf.errors import ModelError
from redclf.runtime.encoder import OnnxEncoder
from redclf.runtime.torch_encoder import TorchEncoder, restore_weights

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
HEADS = 2  # of the tiny encoder


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(1)
    lengths = rng.integers(6, 100, 30)
    return [([101, *map(int, rng.integers(1000, 20_000, n)), 102], int(n) // 2) for n in lengths]


def test_both_backends_agree_in_fp32(tiny_model, pairs):
    path = tiny_model / "work" / "encoder.fp32.onnx"
    expected = OnnxEncoder(path).score(pairs)
    np.testing.assert_allclose(TorchEncoder(path, HEADS, "cpu").score(pairs), expected, atol=1e-4)
    np.testing.assert_allclose(TorchEncoder(path, HEADS, "cpu", batch=1).score(pairs), expected, atol=1e-4)


def test_stored_weights_are_restored(tiny_model, pairs):
    exact = restore_weights(tiny_model / "work" / "encoder.fp32.onnx")
    stored = restore_weights(tiny_model / "encoder.onnx")
    assert exact.keys() == stored.keys() and len(exact) > 30
    for name, values in exact.items():
        assert stored[name].shape == values.shape
        np.testing.assert_allclose(stored[name], values, atol=0.02 * np.abs(values).max() + 1e-6)
    found = TorchEncoder(tiny_model / "encoder.onnx", HEADS, "cpu").score(pairs)
    assert np.abs(found - OnnxEncoder(tiny_model / "encoder.onnx").score(pairs)).max() < 0.05


def test_the_weights_are_those_of_the_module(tiny_model):
    from redclf.model.pair_encoder import PairEncoder

    module = PairEncoder.from_pretrained(tiny_model / "work" / "encoder")
    found = restore_weights(tiny_model / "work" / "encoder.fp32.onnx")
    for name, value in module.named_parameters():
        np.testing.assert_allclose(found[name], value.detach().numpy(), atol=1e-6)


def test_the_detector_says_the_same(tiny_model, tiny_items):
    one, other = CrossEncoderDetector(tiny_model), CrossEncoderDetector(tiny_model, backend="torch", device="cpu")
    for item in tiny_items[:5]:
        first, second = (d.detect(item.trajectory, threshold=0.0) for d in (one, other))
        assert len(first) == len(second)
        for a, b in zip(sorted(first, key=lambda p: p.step), sorted(second, key=lambda p: p.step), strict=True):
            assert a.redundancy == b.redundancy and a.confidence == pytest.approx(b.confidence, abs=0.05)


def test_the_shipped_model_has_all_its_weights():
    detector = CrossEncoderDetector(backend="torch", device="cpu")
    found = detector._encoder.score([([101, 2000, 102, 2001, 102], 3)])
    assert found.shape == (1, 10) and np.isfinite(found).all()


def test_no_pairs(tiny_model):
    assert TorchEncoder(tiny_model / "encoder.onnx", HEADS, "cpu").score([]).shape == (0, 10)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [({"backend": "jax"}, "expected a backend among onnx, torch"), ({"device": "cuda"}, "expected cpu with the onnx"),
     ({"backend": "torch", "device": "warp:9"}, "device warp:9")],
)  # fmt: skip
def test_wrong_settings(tiny_model, settings, complaint):
    with pytest.raises(ModelError, match=complaint) as error:
        CrossEncoderDetector(tiny_model, **settings)
    assert "\n" not in str(error.value)


def test_another_file(tiny_model, tmp_path):
    with pytest.raises(ModelError, match="found none"):
        TorchEncoder(tmp_path / "none.onnx", HEADS)
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    with pytest.raises(ModelError, match=r"can't be loaded|expected the weights"):
        TorchEncoder(tmp_path / "bad.onnx", HEADS)
    with pytest.raises(ModelError, match="expected the weights of a pair encoder"):
        TorchEncoder(tiny_model / "relations" / "given.onnx", HEADS)


def test_a_folder_that_does_not_say_its_heads(tiny_model, tmp_path):
    shutil.copytree(tiny_model, tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    del config["encoder"]
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"expected encoder\.attention_heads"):
        CrossEncoderDetector(tmp_path / "m", backend="torch")


def test_without_torch_it_says_so(tiny_model):
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
sys.modules["torch"] = None
from redclf.detectors.cross_encoder import CrossEncoderDetector
from redclf.errors import ModelError
try:
    CrossEncoderDetector({str(tiny_model)!r}, backend="torch")
except ModelError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "the torch backend needs torch, which is not installed" in done.stdout, done.stderr
