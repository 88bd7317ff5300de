"""What a model folder holds: config, tree ensembles, tokenizer, encoder, calibration."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redclf.errors import ModelError
from redclf.models import find_model
from redclf.runtime.fusion import Fusion
from redclf.runtime.relation_scorer import feature_names

FORMAT = 2


@dataclass(frozen=True)
class Calibration:
    """Scale and shift of the log-odds of redundancy, and the threshold of `detect`."""

    scale: float = 1.0
    shift: float = 0.0
    threshold: float = 0.5

    def logit(self, logit: float) -> float:
        """Return calibrated log-odds of redundancy."""
        return self.scale * logit + self.shift


@dataclass(frozen=True)
class ModelFolder:
    """A loaded `config.json` and where it lies."""

    path: Path
    config: dict[str, Any]

    @classmethod
    def open(cls, name_or_path: str | Path | None) -> ModelFolder:
        """Find a model and read its config.

        Raises
        ------
        ModelError
            If there is none, or it was made for other features or by another version.
        """
        path = find_model(name_or_path)
        try:
            config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ModelError(f"{path}/config.json: expected JSON: {error}") from None
        if not isinstance(config, dict) or config.get("format") != FORMAT:
            found = config.get("format") if isinstance(config, dict) else None
            raise ModelError(f"{path}: expected a model of format {FORMAT}, got {found!r}")
        if config.get("features") != feature_names():
            raise ModelError(f"{path}: was trained on other relations than this version computes; train it again")
        return cls(path, config)

    def calibration(self, row: str = "relations") -> Calibration:
        """Return the calibration of relations alone, or of the text alone (`"text"`)."""
        try:
            found = self.config["calibration"][row]
            return Calibration(float(found["scale"]), float(found["shift"]), float(found["threshold"]))
        except (KeyError, TypeError, ValueError):
            raise self._wrong(f"calibration.{row} with scale, shift and threshold") from None

    def fusion(self) -> tuple[Fusion, float]:
        """Return how relations and text join, and the threshold of `detect`."""
        try:
            found = self.config["calibration"]["both"]
            return Fusion.from_dict(found), float(found["threshold"])
        except (KeyError, TypeError, ValueError):
            raise self._wrong("calibration.both with redundant, cells and threshold") from None

    def _wrong(self, expected: str) -> ModelError:
        return ModelError(f"{self.path}/config.json: expected {expected}")

    def trained_on(self) -> frozenset[str]:
        """Return the hashes of the training trajectories."""
        path = self.path / "trained_on.json"
        try:
            return frozenset(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return frozenset()
        except (OSError, ValueError) as error:
            raise ModelError(f"{path}: expected a JSON list of hashes: {error}") from None
