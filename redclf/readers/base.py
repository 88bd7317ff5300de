"""What a reader of one trace format is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from redclf.errors import TraceError
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, clean
from redclf.trajectory import Trajectory


class Reader(ABC):
    """Reads one trace format.

    A module of this package that defines a subclass is all that a further format takes: the
    registry finds it.
    """

    #: Name on the command line.
    name: ClassVar[str]
    #: One line for `redclf formats`.
    description: ClassVar[str]
    #: Whether it accepts so much that more specific formats must be asked before it.
    generic: ClassVar[bool] = False

    @abstractmethod
    def sniff(self, document: Document) -> str | None:
        """Tell from the content whether the file is of this format.

        Parameters
        ----------
        document : Document

        Returns
        -------
        str or None
            None if it is; else why not, in a few words.
        """

    @abstractmethod
    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the trajectories of a file, which need not have been recognised.

        Parameters
        ----------
        document : Document
        on_error : callable
            Told of each record that can't be read; the next one follows.

        Raises
        ------
        TraceError
            If the file as a whole has another layout.
        """

    def raw_messages(self, record: Any) -> list[Any] | None:
        """Return the list in a decoded record that has one item a message, in the trajectory's order.

        It is changed in place when a trajectory is written back. None where the format has no such list.
        """
        return None


def build_each(
    records: Iterable[tuple[Place, Any]],
    build: Callable[[Place, Any], Trajectory],
    on_error: OnError,
) -> Iterator[Trajectory]:
    """Yield `build(place, record)` of each record, and report those that it refuses."""
    for place, record in records:
        try:
            trajectory = build(place, record)
        except TraceError as error:
            on_error(error)
            continue
        yield trajectory


def default_id(document: Document, place: Place) -> str:
    """Return the id of a record that has none of its own: the file's name, and the record's number if it has one."""
    stem = clean(document.path.stem)
    number = place.record.rpartition(" ")[2]
    return f"{stem}:{number}" if number else stem


class UniqueIds:
    """Makes ids unique within a file: the second "a" becomes "a#2"."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def __call__(self, wanted: str) -> str:
        """Return `wanted`, numbered if it was given out before."""
        given = wanted
        while given in self._counts:
            self._counts[wanted] += 1
            given = f"{wanted}#{self._counts[wanted]}"
        self._counts[given] = 1
        return given
