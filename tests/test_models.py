"""Finding shipped models and model folders."""

from __future__ import annotations

import json

import pytest

from redclf import models
from redclf.errors import ModelError
from redclf.models import DEFAULT_MODEL, find_model, model_info, shipped_models


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """Two places of shipped models, as in a wheel and in a checkout."""
    wheel, checkout = tmp_path / "wheel", tmp_path / "checkout"
    for folder, names in ((wheel, [DEFAULT_MODEL]), (checkout, [DEFAULT_MODEL, "other"])):
        for name in names:
            path = folder / name
            path.mkdir(parents=True)
            (path / "config.json").write_text(json.dumps({"from": folder.name}))
    (checkout / "README.md").write_text("no model")
    monkeypatch.setattr(models, "model_folders", lambda: [wheel, checkout])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_default_is_the_shipped_one(shelf):
    assert find_model() == shelf / "wheel" / DEFAULT_MODEL


def test_by_name_and_by_path(shelf):
    assert find_model("other") == shelf / "checkout" / "other"
    assert find_model("checkout/other").samefile(shelf / "checkout" / "other")


def test_a_folder_without_config(shelf):
    (shelf / "empty").mkdir()
    for name in ("empty", "./empty"):
        with pytest.raises(ModelError, match=r"empty: expected a model folder with a config\.json"):
            find_model(name)


@pytest.mark.parametrize("name", ["missing", "a/b/c", "", "x\0y", "x" * 5000])
def test_neither_folder_nor_name(shelf, name):
    with pytest.raises(ModelError, match="expected a model folder") as caught:
        find_model(name)
    assert "redclf-minilm, other" in str(caught.value) or "other, redclf-minilm" in str(caught.value)


def test_nothing_shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "model_folders", lambda: [tmp_path / "none"])
    assert shipped_models() == []
    with pytest.raises(ModelError, match="no model is shipped"):
        find_model()


def test_infos(shelf):
    metrics = {"stepcls": {"accuracy": 0.5}}
    (shelf / "checkout" / "other" / "metrics.json").write_text(json.dumps(metrics))
    default, other = sorted(shipped_models(), key=lambda info: not info.is_default)
    assert default.config == {"from": "wheel"} and default.metrics == {}
    assert other.name == "other" and other.metrics == metrics and other.size > 0


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000])
def test_damaged_files(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelError, match=r"config\.json: expected") as caught:
        model_info(tmp_path)
    assert "\n" not in str(caught.value)
