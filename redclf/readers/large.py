"""Large JSON files, read one item at a time, so that memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

#: Bytes from which a JSON file is not decoded as a whole, where its layout allows that.
LARGE = 32 * 2**20
#: Member of an object whose items are the records.
RECORDS = "simulations"
_BOM = b"\xef\xbb\xbf"


def has_long_line(path: Path) -> bool:
    """Return whether a file's first line alone is large: no JSON lines, most likely.

    Raises
    ------
    OSError
    """
    with path.open("rb") as stream:
        return len(stream.readline(LARGE)) == LARGE


class LargeJson:
    """A JSON file that is a list, or an object with a list `simulations`: the layouts that grow large.

    Parameters
    ----------
    path : Path
    is_list : bool
        Whether the file is the list itself.
    first : Any
        The first item.
    """

    def __init__(self, path: Path, is_list: bool, first: Any) -> None:
        self.path = path
        self.is_list = is_list
        #: Share of the file that `items` has read, from 0 to 1.
        self.share = 0.0
        self.head: Any = [first] if is_list else {RECORDS: [first]}

    @classmethod
    def open(cls, path: Path) -> LargeJson | None:
        """Return one for a large file of such a layout; None for any other, which is for `json` to judge.

        Raises
        ------
        OSError
        """
        if path.stat().st_size < LARGE:
            return None
        with _stream(path) as stream:
            is_list = stream.read(1024).lstrip()[:1] == b"["
        for first in _skipping(path, f"{'' if is_list else RECORDS + '.'}item"):
            return cls(path, is_list, first)
        return None

    def items(self) -> Iterator[Any]:
        """Yield the items of the list.

        Raises
        ------
        ValueError
            Where they are not JSON as `ijson` reads it: it takes no NaN and no whole number of more than 64 bits.
        """
        prefix = "item" if self.is_list else f"{RECORDS}.item"
        size = self.path.stat().st_size
        with _stream(self.path) as stream:
            for item in _items(stream, prefix):
                self.share = stream.tell() / size
                yield item

    def member(self, key: str) -> Any:
        """Return a member of the object beside the list, None where it has none."""
        return None if self.is_list else next(iter(_skipping(self.path, key)), None)


def _items(stream: IO[bytes], prefix: str) -> Iterator[Any]:
    import ijson

    try:
        yield from ijson.items(stream, prefix, use_float=True)
    except ijson.JSONError as error:
        raise ValueError(str(error)) from None


def _skipping(path: Path, prefix: str) -> Iterator[Any]:
    """Yield items up to where the file is damaged."""
    with _stream(path) as stream:
        try:
            yield from _items(stream, prefix)
        except ValueError:
            return


def _stream(path: Path) -> IO[bytes]:
    stream = path.open("rb")
    if stream.read(len(_BOM)) != _BOM:
        stream.seek(0)
    return stream
