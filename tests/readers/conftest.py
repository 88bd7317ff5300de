"""Fixtures of the reader tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a value as JSON, or bytes and text as they are, and return the path."""

    def _write(value: Any, name: str = "trace.json") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(value, str):
            value = value.encode()
        path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
        return path

    return _write
