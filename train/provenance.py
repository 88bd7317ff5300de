"""Where a result comes from: command, data, seed and commit."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from redclf import __version__
from redclf.benchmark.data import LabelledTrajectory
from redclf.hashing import trajectory_hash


def commit() -> str:
    """Return the commit of the working tree, `-dirty` where it has changes."""
    try:
        run = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parent,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return run.stdout.strip()


def data_digest(items: Sequence[LabelledTrajectory]) -> str:
    """Return 16 hex digits of a hash over the trajectories and their number."""
    digest = hashlib.sha256()
    for value in sorted(trajectory_hash(item.trajectory) for item in items):
        digest.update(value.encode())
    return digest.hexdigest()[:16]


def header(items: Sequence[LabelledTrajectory], seed: int, module: str, **more: Any) -> dict[str, Any]:
    """Return the header of a result file."""
    arguments = [_public(argument) for argument in sys.argv[1:]]
    return {
        "command": f"python -m {module} {shlex.join(arguments)}".strip(),
        "data": {"trajectories": len(items), "digest": data_digest(items)},
        "seed": seed,
        "commit": commit(),
        "version": __version__,
        **more,
    }


def _public(argument: str) -> str:
    """Shorten absolute paths to their last two parts: a result should not name a machine."""
    path = Path(argument)
    return str(Path(*path.parts[-2:])) if path.is_absolute() else argument
