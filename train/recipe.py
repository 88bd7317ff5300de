"""One run as a config: every value can be read aloud, and overridden from the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from redclf.model.pair_encoder import PairEncoderConfig
from train.boosting import BoostingSettings
from train.copies import Augmentation
from train.encoder import TrainingSettings
from train.tables import Weights

T = TypeVar("T")


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a model, but the data.

    Parameters
    ----------
    name : str
    base : str
        Base encoder: `all-MiniLM-L6-v2`, `random-tiny`, or a folder.
    partners : int
        Candidates per target that the encoder reads.
    partner_text : bool
        Whether it reads their text; without, the markers of the pair and the target's own text.
    floor : float
        Targets whose redundancy by relations is below it are not read by the encoder.
    easy_share : float
        Share of the necessary targets below the floor that the encoder is trained on.
    copy_share : float
        Share of the injected targets that the encoder is trained on.
    held_out : float
        Share of the training tasks kept for calibration.
    text : float
        Weight of the text's categories, against 1 of the relations'.
    recall : float
        Least recall of localisation at the threshold.
    """

    name: str = "base"
    seed: int = 0
    base: str = "all-MiniLM-L6-v2"
    partners: int = 3
    partner_text: bool = True
    floor: float = 0.02
    easy_share: float = 0.15
    copy_share: float = 1.0
    held_out: float = 0.1
    text: float = 0.5
    recall: float = 0.6
    weights: Weights = field(default_factory=Weights)
    augmentation: Augmentation = field(default_factory=Augmentation)
    boosting: BoostingSettings = field(default_factory=BoostingSettings)
    encoder: PairEncoderConfig = field(default_factory=PairEncoderConfig)
    training: TrainingSettings = field(default_factory=TrainingSettings)

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as plain data."""
        return asdict(self)

    def signature(self) -> dict[str, Any]:
        """Return what decides the model, as JSON reads it back: all of it but the number of threads."""
        found: dict[str, Any] = json.loads(json.dumps(self.to_dict()))
        del found["boosting"]["threads"]
        return found


def _build(kind: type[T], values: dict[str, Any], where: str) -> T:
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    made: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            raise ValueError(f"{where}{key}: expected one of {', '.join(known)}")
        factory = known[key].default_factory
        default = known[key].default if factory is MISSING else factory()
        if is_dataclass(default):
            if not isinstance(value, dict):
                raise ValueError(f"{where}{key}: expected a mapping, got {value!r}")
            made[key] = _build(type(default), value, f"{where}{key}.")
        elif isinstance(default, float) and isinstance(value, int | float) and not isinstance(value, bool):
            made[key] = float(value)
        elif isinstance(default, tuple) and isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
            made[key] = tuple(value)
        elif isinstance(value, type(default)) and not isinstance(default, tuple):
            made[key] = value
        else:
            raise ValueError(f"{where}{key}: expected {type(default).__name__}, got {value!r}")
    return kind(**made)


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe from YAML.

    Parameters
    ----------
    path : str or Path
    overrides : sequence of str
        `key=value` or `part.key=value`, the value in YAML.

    Raises
    ------
    ValueError
        For an unknown key or a value of the wrong type.
    """
    values = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    if not isinstance(values, dict):
        raise ValueError(f"{path}: expected a mapping")
    for override in overrides:
        name, sign, text = override.partition("=")
        if not sign:
            raise ValueError(f"--set {override}: expected key=value")
        place = values
        *parts, last = name.split(".")
        for part in parts:
            place = place.setdefault(part, {})
        place[last] = yaml.safe_load(text)
    return _build(Recipe, values, f"{path}: ")


def recipe_of(values: dict[str, Any]) -> Recipe:
    """Return a recipe from plain data, as `Recipe.to_dict` gives it."""
    return _build(Recipe, values, "recipe: ")


def claim(directory: Path, recipe: Recipe, data: str = "") -> None:
    """Note in a run's folder which recipe and tables it is for.

    Parameters
    ----------
    directory : Path
    recipe : Recipe
    data : str
        Digest of the tables.

    Raises
    ------
    ValueError
        If it holds the work of another recipe or of other tables, which would be reused as this one's.
    """
    directory.mkdir(parents=True, exist_ok=True)
    note = directory / "recipe.json"
    own = {"recipe": recipe.signature(), "tables": data}
    if note.exists():
        found = json.loads(note.read_text(encoding="utf-8"))
        for part, value in own.items():
            if found.get(part) != value:
                raise ValueError(
                    f"{directory}: expected the work of this run's {part}, found that of another; choose another folder"
                )
    note.write_text(json.dumps(own, indent=1, sort_keys=True) + "\n", encoding="utf-8")
