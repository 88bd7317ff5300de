"""How much work a piece of code does, counted rather than timed: the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable


def work(function: Callable[[], object]) -> int:
    """Return how many functions, of Python and of C, a call runs."""
    count = 0

    def seen(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count
