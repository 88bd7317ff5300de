"""A trace file, opened: one JSON value, or JSON lines that are read one at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from redclf.errors import TraceError
from redclf.readers.fields import Place, got
from redclf.readers.large import RECORDS, LargeJson, has_long_line

T = TypeVar("T")
OnError = Callable[[TraceError], None]

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_OPEN_ENDS = (b"[", b"{", b",", b":")
_HEAD_LINES = 100
_UNREAD = object()


def show_path(path: Path) -> str:
    """Return the path on one line that any stream can print."""
    text = str(path).encode("utf-8", "replace").decode("utf-8")
    return "".join(char if char.isprintable() else "?" for char in text)


class Document:
    """A file of JSON or JSON lines. Which of the two is told from its content.

    Parameters
    ----------
    path : Path

    Attributes
    ----------
    is_lines : bool
        Whether it holds JSON lines.
    head : Any
        What recognition looks at: the value of a JSON file, or the first object or list among the lines.
        Of a large list, or a large object with a list `simulations`, the first item alone is in it.

    Raises
    ------
    TraceError
        If it can't be opened, is empty, or is not JSON.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = show_path(path)
        self.place = Place(self.name)
        self.is_lines = False
        #: Share of the file that has been read, from 0 to 1, while its records are taken one by one.
        self.share = 0.0
        self._value: Any = _UNREAD
        self._large: LargeJson | None = None
        if self.path.is_file() and self._asked(has_long_line):
            self._large = self._asked(LargeJson.open)
        if self._large is None:
            self._tell_lines()
        self.head = self._find_head() if self.is_lines else self._large.head if self._large else self.value

    @property
    def value(self) -> Any:
        """The whole value of a JSON file, None for JSON lines."""
        if self._value is _UNREAD:
            self._value = None if self.is_lines else self._decode(self._read(), self.place)
        return self._value

    def _asked(self, question: Callable[[Path], T]) -> T:
        try:
            return question(self.path)
        except OSError as error:
            raise self._os_error(error) from None

    def _tell_lines(self) -> None:
        """Tell JSON lines from one JSON value, which is decoded, or opened if it is large."""
        lines = self._raw_lines()
        first = next(lines, None)
        if first is None:
            raise self.place.error("expected JSON, the file is empty")
        second = next(lines, None)
        lines.close()
        try:
            value = self._decode(first[1], Place(self.name, f"line {first[0]}"))
        except TraceError:
            # Either JSON over several lines, or lines of which the first is damaged.
            self.is_lines = second is not None and self._starts_lines(first[1], second[1])
            if not self.is_lines:
                self._large = self._asked(LargeJson.open)
        else:
            self.is_lines = second is not None
            if not self.is_lines:
                self._value = value

    def records(self, on_error: OnError) -> Iterator[tuple[Place, Any]]:
        """Yield the lines, or the items of a list, or the only value, each with its place.

        Parameters
        ----------
        on_error : callable
            Told of each line that is not JSON; the next one follows.
        """
        if self.is_lines:
            yield from self._lines(on_error)
        elif isinstance(self.head, list):
            yield from self._numbered(self._items() if self._large else self.head)
        else:
            yield self.place, self.value

    def listed(self, key: str) -> Iterator[tuple[Place, Any]]:
        """Yield the items of a list in the file's object, each with its place.

        Raises
        ------
        TraceError
            If the file holds no object with such a list, or the list is empty.
        """
        found = self.head.get(key) if isinstance(self.head, dict) else None
        if self.is_lines or not isinstance(found, list) or not found:
            what = "JSON lines" if self.is_lines else got(self.head)
            raise self.place.error(f"expected an object with a list `{key}` that is not empty, got {what}")
        yield from self._numbered(self._items() if self._large and key == RECORDS else found)

    def _numbered(self, items: Iterable[Any]) -> Iterator[tuple[Place, Any]]:
        count = len(items) if isinstance(items, list) else 0
        for index, item in enumerate(items):
            self.share = self._large.share if self._large else index / count
            yield Place(self.name, f"record {index}"), item

    def raw_records(self) -> Iterator[tuple[str, Any]]:
        """Yield the file's records as they stand there, each with what its place calls it.

        Lines that are not JSON come as the text that they are.
        """
        if self.is_lines:
            for number, raw in self._raw_lines():
                name = f"line {number}"
                try:
                    yield name, self._decode(raw, Place(self.name, name))
                except TraceError:
                    yield name, raw.decode("utf-8", "replace").rstrip("\r\n")
            return
        value = self.value
        found = value.get(RECORDS) if isinstance(value, dict) else value
        for index, item in enumerate(found if isinstance(found, list) else ()):
            yield f"record {index}", item

    def member(self, key: str) -> Any:
        """Return a member of the file's object, None where there is none."""
        if self._large is not None:
            return self._large.member(key)
        return self.head.get(key) if isinstance(self.head, dict) else None

    def _items(self) -> Iterator[Any]:
        """Yield the items of a large list."""
        assert self._large is not None
        done = 0
        try:
            for item in self._large.items():
                yield item
                done += 1
            return
        except ValueError:
            pass  # `json` reads some of what was refused, and else says where the file is damaged
        except OSError as error:
            raise self._os_error(error) from None
        value = self.value
        yield from (value if isinstance(value, list) else value[RECORDS])[done:]

    def _lines(self, on_error: OnError) -> Iterator[tuple[Place, Any]]:
        size = max(self.path.stat().st_size, 1)
        done = 0
        for number, raw in self._raw_lines():
            done += len(raw)
            self.share = min(done / size, 1.0)
            place = Place(self.name, f"line {number}")
            try:
                value = self._decode(raw, place)
            except TraceError as error:
                on_error(error)
                continue
            yield place, value

    def _find_head(self) -> Any:
        values = (value for _, value in islice(self._lines(lambda error: None), _HEAD_LINES))
        return next((value for value in values if isinstance(value, (dict, list))), None)

    def _starts_lines(self, first: bytes, second: bytes) -> bool:
        if first.rstrip().endswith(_OPEN_ENDS):
            return False
        try:
            return isinstance(self._decode(second, self.place), (dict, list))
        except TraceError:
            return False

    def _raw_lines(self) -> Generator[tuple[int, bytes], None, None]:
        try:
            if not self.path.is_file():
                what = "a directory" if self.path.is_dir() else "none"
                raise self.place.error(f"expected a regular file, got {what}")
            with self.path.open("rb") as stream:
                for number, raw in enumerate(stream, 1):
                    if number == 1:
                        if raw.startswith(_UTF16):
                            raise self.place.error("expected UTF-8, got UTF-16")
                        raw = raw.removeprefix(_BOM)
                    if not raw.isspace() and raw:
                        yield number, raw
        except OSError as error:
            raise self._os_error(error) from None

    def _read(self) -> bytes:
        try:
            return self.path.read_bytes().removeprefix(_BOM)
        except OSError as error:
            raise self._os_error(error) from None

    def _os_error(self, error: OSError) -> TraceError:
        return self.place.error(f"expected a readable file, got: {error.strerror or 'an error'}")

    @staticmethod
    def _decode(raw: bytes, place: Place) -> Any:
        try:
            return json.loads(raw.decode("utf-8"))
        except UnicodeDecodeError as error:
            byte = raw[error.start]
            raise place.error(f"expected UTF-8, got the byte 0x{byte:02x} at offset {error.start}") from None
        except json.JSONDecodeError as error:
            line = "" if place.record else f"line {error.lineno}, "
            raise place.error(
                f"expected JSON, got something else at {line}column {error.colno} ({error.msg})"
            ) from None
        except RecursionError:
            raise place.error("expected JSON, got one that is nested too deep") from None
        except ValueError:
            # The standard library limits the digits of a whole number.
            raise place.error("expected JSON, got a number with too many digits") from None
