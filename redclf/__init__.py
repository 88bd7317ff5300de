"""redclf finds the redundant steps in the recorded run of an LLM agent.

Examples
--------
>>> from redclf import Detector, load
>>> for prediction in Detector().detect(load("run.json")[0]):  # doctest: +SKIP
...     print(prediction.step, prediction.category, prediction.reason)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redclf.detectors.base import Prediction
    from redclf.detectors.cross_encoder import CrossEncoderDetector as Detector
    from redclf.errors import RedclfError
    from redclf.readers import iter_trajectories, load
    from redclf.trajectory import Trajectory

__version__ = "0.1.0"

__all__ = ["Detector", "Prediction", "RedclfError", "Trajectory", "__version__", "iter_trajectories", "load"]

# Imported on first use, so that `import redclf` is quick.
_LAZY = {
    "Detector": ("redclf.detectors.cross_encoder", "CrossEncoderDetector"),
    "Prediction": ("redclf.detectors.base", "Prediction"),
    "RedclfError": ("redclf.errors", "RedclfError"),
    "Trajectory": ("redclf.trajectory", "Trajectory"),
    "iter_trajectories": ("redclf.readers", "iter_trajectories"),
    "load": ("redclf.readers", "load"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, member = _LAZY[name]
    value = getattr(importlib.import_module(module), member)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
