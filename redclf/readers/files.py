"""Which files under a path are traces."""

from __future__ import annotations

import os
from pathlib import Path

from redclf.errors import TraceError
from redclf.readers.document import show_path

SUFFIXES = (".json", ".jsonl", ".traj")
_RELEASE = "final_traces.json"


def find_files(path: str | Path) -> list[Path]:
    """Return the trace files of a path, sorted.

    Parameters
    ----------
    path : str or Path
        A file, whatever its name, or a directory, which is walked for `*.json`, `*.jsonl` and
        `*.traj`. Labels and splits of a benchmark release (`annotation.json` beside
        `final_traces.json`, `splits.json` above one) are no traces and left out.

    Raises
    ------
    TraceError
        If there is no such path, or the directory holds no such file.
    """
    root = Path(path)
    try:
        if root.is_file():
            return [root]
        if not root.is_dir():
            what = "something else" if root.exists() else "no such path"
            raise TraceError(f"expected a file or a directory, got {what}", show_path(root))
    except (OSError, ValueError):
        raise TraceError("expected a path that can be read", show_path(root)) from None
    found: list[Path] = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(folder, name) for name in names if name.endswith(SUFFIXES))
        found.extend(item for item in paths if item.is_file())
    releases = {item.parent for item in found if item.name == _RELEASE}
    above = {parent for folder in releases for parent in (folder, *folder.parents)}
    traces = [
        item
        for item in sorted(found)
        if not (item.name == "annotation.json" and item.parent in releases)
        and not (item.name == "splits.json" and item.parent in above)
    ]
    if not traces:
        wanted = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
        raise TraceError(f"expected trace files ({wanted}), got none", show_path(root))
    return traces
