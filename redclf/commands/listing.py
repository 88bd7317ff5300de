"""`redclf models` and `redclf formats`: what there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redclf.commands.output import console, one_line
from redclf.models import ModelInfo, model_folders, shipped_models
from redclf.readers import formats

#: Where `metrics.json` keeps the scores of the whole model out of fold.
_PART = "out_of_fold.benchmark.both."
#: Path of a score to its heading.
_SCORES = {
    "stepcls.accuracy": "StepCls",
    "evidenceret.accuracy": "EvidenceRet",
    "stepdet.at_least_one.mean": "StepDet",
    "localisation.f1": "loc. F1",
    "localisation.ap": "loc. AP",
}
_SPACE = "  "


def show_models() -> None:
    """Print a line for each shipped model, with its out-of-fold scores on the benchmark where it has them."""
    screen = console()
    infos = shipped_models()
    if not infos:
        looked = ", ".join(str(path) for path in model_folders())
        screen.print(f"no model is shipped with this installation (looked in {looked})", markup=False)
        return
    for info in infos:
        name = f"{info.name} (default)" if info.is_default else info.name
        screen.print(_SPACE.join([name, f"{info.size / 1e6:.1f} MB", *_scores(info)]), markup=False, soft_wrap=True)
        screen.print(f"{_SPACE}{info.path}", style="dim", markup=False, soft_wrap=True)


def show_formats() -> None:
    """Print name and description of each trace format."""
    screen = console()
    readers = formats()
    width = max(len(reader.name) for reader in readers)
    for reader in readers:
        line = f"{reader.name:<{width}}{_SPACE}{one_line(reader.description)}"
        screen.print(line, markup=False, soft_wrap=True)


def _scores(info: ModelInfo) -> list[str]:
    found = {heading: _find(info.metrics, _PART + path) for path, heading in _SCORES.items()}
    return [f"{heading} {value:.1%}" for heading, value in found.items() if value is not None]


def _find(metrics: Mapping[str, Any], path: str) -> float | None:
    value: Any = metrics
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
