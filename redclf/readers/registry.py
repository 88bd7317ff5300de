"""Which formats there are, and which one a file has."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache

import redclf.readers as package
from redclf.errors import TraceError
from redclf.readers.base import Reader
from redclf.readers.document import Document

AUTO = "auto"


@cache
def _readers() -> tuple[Reader, ...]:
    found: dict[str, Reader] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        for member in vars(module).values():
            if not (isinstance(member, type) and issubclass(member, Reader)):
                continue
            if member.__module__ == module.__name__ and not inspect.isabstract(member):
                found[member.name] = member()
    return tuple(sorted(found.values(), key=lambda reader: (reader.generic, reader.name)))


def formats() -> list[Reader]:
    """Return all readers in the order in which they are asked."""
    return list(_readers())


def reader_named(name: str) -> Reader:
    """Return the reader of a format.

    Raises
    ------
    TraceError
        If there is none of this name.
    """
    for reader in _readers():
        if reader.name == name:
            return reader
    known = ", ".join([AUTO, *(reader.name for reader in _readers())])
    raise TraceError(f"expected a format among {known}, got {name!r}")


def recognise(document: Document) -> Reader:
    """Return the reader whose format the file has.

    Raises
    ------
    TraceError
        If no reader knows it; the message lists what each of them missed.
    """
    reasons = []
    for reader in _readers():
        reason = reader.sniff(document)
        if reason is None:
            return reader
        reasons.append(f"{reader.name} ({reason})")
    raise document.place.error(f"expected a known trace format, tried {', '.join(reasons)}")
