"""Historical runs of tau-bench: `[{task_id, traj, reward, ...}]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redclf.readers.base import Reader, UniqueIds, build_each
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, got, optional_id, optional_number, record_object
from redclf.readers.messages import parse_messages, system_text
from redclf.trajectory import Trajectory


class TauBenchReader(Reader):
    """Reads runs with their reward; `info` (it holds the expected actions) is not read."""

    name = "tau_bench"
    description = "tau-bench historical runs: a list of {task_id, traj, reward, trial}"

    def sniff(self, document: Document) -> str | None:
        """Return None for a list (or lines) of objects with `task_id` and `traj`."""
        head = document.head
        if not document.is_lines:
            if not isinstance(head, list):
                return f"{got(head)}, not a list of runs"
            head = next((item for item in head if isinstance(item, dict)), None)
        if not isinstance(head, dict):
            return "a list without objects"
        missing = [key for key in ("task_id", "traj") if key not in head]
        return f"records without `{missing[0]}`" if missing else None

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the trajectories, named `<task_id>:<trial>`."""
        unique = UniqueIds()

        def build(place: Place, value: Any) -> Trajectory:
            record = record_object(value, place, "a run")
            task_id = optional_id(record, "task_id", place)
            if task_id is None:
                raise place.expected("task_id", "text or a whole number", None)
            trial = optional_id(record, "trial", place)
            reward = optional_number(record, "reward", place)
            messages = parse_messages(record.get("traj"), place, "traj")
            return Trajectory(
                unique(task_id if trial is None else f"{task_id}:{trial}"),
                messages,
                policy=system_text(messages),
                task_id=task_id,
                reward=reward,
                source=place.source,
                extra={} if trial is None else {"trial": trial},
            )

        yield from build_each(document.records(on_error), build, on_error)

    def raw_messages(self, record: Any) -> list[Any] | None:
        """Return the run's messages."""
        found = record.get("traj") if isinstance(record, dict) else None
        return found if isinstance(found, list) else None
