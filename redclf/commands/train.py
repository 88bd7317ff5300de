"""`redclf train`: hand over to the training pipeline, which is not part of the installed package."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from redclf.errors import RedclfError

_NEEDED = ("torch", "transformers", "peft", "accelerate", "datasets", "safetensors", "sklearn", "yaml")


def run_train(arguments: Sequence[str]) -> int:
    """Run `python -m train.finetune` with these arguments.

    Returns
    -------
    int
        Its exit code.

    Raises
    ------
    RedclfError
        If this is no clone of the repository, or the training extras are not installed.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / "train" / "finetune.py").is_file():
        raise RedclfError(
            "train: expected a clone of the repository (the installed package has no training code); "
            "there, run: pip install -e '.[train]'"
        )
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise RedclfError(
            f"train: expected the training extras, {', '.join(missing)} missing; run: pip install -e '.[train]'"
        )
    path = os.pathsep.join(part for part in (str(root), os.environ.get("PYTHONPATH")) if part)
    process = subprocess.Popen(
        [sys.executable, "-m", "train.finetune", *arguments], env={**os.environ, "PYTHONPATH": path}
    )
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # It got the signal, too, and saves its checkpoint.
            continue
