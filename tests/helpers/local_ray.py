"""A Ray cluster on this machine, for tests; they are skipped where none can be started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def local_cluster(**variables: str) -> Iterator[None]:
    """Start Ray with two workers, and stop it; skip the test where that does not work."""
    ray = pytest.importorskip("ray")
    try:
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
            runtime_env={"env_vars": variables} if variables else None,
        )
    except Exception as error:
        pytest.skip(f"Ray can't be started here: {error}")
    try:
        yield
    finally:
        ray.shutdown()
