"""Where the shipped models are, and what their folders say about them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redclf.errors import ModelError

#: The model that is used where none is named.
DEFAULT_MODEL = "redclf-minilm"
CONFIG = "config.json"
METRICS = "metrics.json"


@dataclass(frozen=True)
class ModelInfo:
    """A model folder.

    Parameters
    ----------
    name : str
        The folder's name.
    path : Path
    config : mapping
        `config.json`.
    metrics : mapping
        `metrics.json`, the measured scores that its card quotes; empty without one.
    size : int
        Bytes of all its files.
    """

    name: str
    path: Path
    config: Mapping[str, Any]
    metrics: Mapping[str, Any]
    size: int

    @property
    def is_default(self) -> bool:
        """Whether it is the model that is used where none is named."""
        return self.name == DEFAULT_MODEL


def model_folders() -> list[Path]:
    """Return where shipped models are looked for: inside the installed package, then in a checkout."""
    package = Path(__file__).resolve().parent
    return [package / "_models", package.parent / "models"]


def find_model(name_or_path: str | Path | None = None) -> Path:
    """Return the folder of a model.

    Parameters
    ----------
    name_or_path : str or Path, optional
        The folder of a model, or the name of a shipped one; `DEFAULT_MODEL` by default. A folder goes before a
        shipped model of the same name.

    Returns
    -------
    Path
        A folder that holds `config.json`; what else it holds is checked where it is loaded.

    Raises
    ------
    ModelError
        If there is none.
    """
    name = DEFAULT_MODEL if name_or_path is None else name_or_path
    if name_or_path is not None:
        path = Path(name)
        if _is_model(path):
            return path
        if _exists(path) and path.name != str(name):
            raise ModelError(f"{name}: expected a model folder with a {CONFIG}, found none in it")
    shipped = _shipped_paths()
    if str(name) in shipped:
        return shipped[str(name)]
    held = f"shipped models: {', '.join(shipped)}" if shipped else "no model is shipped with this installation"
    if name_or_path is not None and _exists(Path(name)):
        raise ModelError(f"{name}: expected a model folder with a {CONFIG}, found none in it ({held})")
    raise ModelError(f"{name}: expected a model folder or the name of a shipped model, found neither ({held})")


def shipped_models() -> list[ModelInfo]:
    """Return the models that come with this installation, by name.

    Raises
    ------
    ModelError
        If one of their files can't be read.
    """
    return [model_info(path) for path in _shipped_paths().values()]


def model_info(path: str | Path) -> ModelInfo:
    """Read what a model folder says about itself.

    Raises
    ------
    ModelError
        If `config.json` is missing, or it or `metrics.json` is not a JSON object.
    """
    path = Path(path)
    metrics = _read_object(path / METRICS) if (path / METRICS).is_file() else {}
    try:
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    except OSError as error:
        raise ModelError(f"{path}: can't be read: {error.strerror}") from None
    return ModelInfo(path.name, path, _read_object(path / CONFIG), metrics, size)


def _shipped_paths() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder in model_folders():
        if folder.is_dir():
            for path in sorted(folder.iterdir()):
                if _is_model(path):
                    found.setdefault(path.name, path)
    return dict(sorted(found.items()))


def _is_model(path: Path) -> bool:
    try:
        return (path / CONFIG).is_file()
    except (OSError, ValueError):
        return False


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{path}: expected this file, found none") from None
    except OSError as error:
        raise ModelError(f"{path}: can't be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise ModelError(f"{path}: expected JSON") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path}: expected a JSON object")
    return value
