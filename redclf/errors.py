"""Errors that a user can mend. The command prints them as one line and exits with 2."""

from __future__ import annotations


class RedclfError(Exception):
    """Base class: the message says what was expected, what came and where."""


class TraceError(RedclfError):
    """A trace file or record that can't be read.

    Parameters
    ----------
    message : str
        What was expected and what came.
    path : str, optional
        The file.
    where : str, optional
        The record, message index or field within it, such as `record 3, message 7`.
    """

    def __init__(self, message: str, path: str | None = None, where: str | None = None) -> None:
        self.path = path
        self.where = where
        place = ": ".join(part for part in (path, where) if part)
        super().__init__(f"{place}: {message}" if place else message)


class ModelError(RedclfError):
    """A model folder that is missing, damaged or of another version."""


class InSampleError(RedclfError):
    """An evaluation of a model on trajectories that it was trained on."""
