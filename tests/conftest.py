from __future__ import annotations

import os
from pathlib import Path

import pytest
from tiny_benchmark import write_benchmark

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def tiny_root(tmp_path_factory) -> Path:
    """A small benchmark on disk."""
    return write_benchmark(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny_items(tiny_root):
    from redclf.benchmark.data import load_benchmark

    return load_benchmark(tiny_root)


@pytest.fixture(scope="session")
def tiny_model(tiny_root, tmp_path_factory) -> Path:
    """A model folder that the smoke recipe makes of the small benchmark."""
    pytest.importorskip("torch")
    from train.finetune import main

    folder = tmp_path_factory.mktemp("model") / "smoke"
    config = Path(__file__).parents[1] / "configs" / "smoke.yaml"
    assert main(["--config", str(config), "--data", str(tiny_root), "--output", str(folder)]) == 0
    return folder
