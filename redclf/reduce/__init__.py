"""Keeping an agent's context small while it runs: what a step's result no longer needs is taken out of it."""

from redclf.reduce.reducer import Reducer
from redclf.reduce.reflectors import (
    REFLECTORS,
    ClassifierReflector,
    DeleteReflector,
    NoReflector,
    RandomReflector,
    Reflector,
    TruncateReflector,
    create_reflector,
)

__all__ = [
    "REFLECTORS",
    "ClassifierReflector",
    "DeleteReflector",
    "NoReflector",
    "RandomReflector",
    "Reducer",
    "Reflector",
    "TruncateReflector",
    "create_reflector",
]
