"""Stands in for the drawing of a trajectory, and ends the process that scores one of a certain name."""

from __future__ import annotations

import os
import signal
from pathlib import Path

#: Holds the folder in which deaths are noted.
NOTES = "REDCLF_TEST_DEATHS"


def die_once_or_always(trajectory, predictions):
    """Die at the first sight of an id with "once" in it, and at every sight of one with "always"."""
    note = Path(os.environ[NOTES]) / trajectory.id
    if "always" in trajectory.id or ("once" in trajectory.id and not note.exists()):
        note.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return trajectory.id
