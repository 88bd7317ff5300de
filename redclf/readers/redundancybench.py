"""RedundancyBench's release layout: `<subset>/<domain>/final_traces.json`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from redclf.errors import TraceError
from redclf.readers.base import Reader, build_each
from redclf.readers.document import Document, OnError
from redclf.readers.fields import Place, clean, optional_id, optional_text, record_object
from redclf.readers.messages import parse_messages, system_text
from redclf.readers.simulations import each_simulation, first_simulation, simulation_messages
from redclf.trajectory import Trajectory

_SUFFIX = "_annotation"
_HUMAN = "human_annotation"


class RedundancyBenchReader(Reader):
    """Reads the trajectories; `annotation.json` beside them is the benchmark loader's.

    `tasks` is not read at all (it holds the expected actions), nor the `error` flag of results.
    """

    name = "redundancybench"
    description = "RedundancyBench release: <subset>/<domain>/final_traces.json"

    def sniff(self, document: Document) -> str | None:
        """Return None for `simulations` with `messages` and no run `id` of their own."""
        first = first_simulation(document)
        if isinstance(first, str):
            return first
        if "messages" not in first or "task_id" not in first:
            return "simulations without `task_id` and `messages`"
        return "simulations have an `id` of their own" if "id" in first else None

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the trajectories, with subset and domain from the path."""
        subset, domain = subset_and_domain(document.path)
        seen: set[str] = set()

        def build(place: Place, value: Any) -> Trajectory:
            record = record_object(value, place, "a simulation")
            task_id = optional_id(record, "task_id", place)
            trajectory_id = optional_id(record, "trajectory_id", place)
            if trajectory_id is None:
                if task_id is None:
                    raise place.error("expected a `trajectory_id` or a `task_id`, got neither")
                trajectory_id = f"{subset or _HUMAN}:{domain}:{task_id}" if domain else task_id
            if trajectory_id in seen:
                raise place.error(f"expected unique trajectories, got {trajectory_id} again")
            messages = parse_messages(record.get("messages"), place)
            policy = optional_text(record, "policy", place) or system_text(messages)
            seen.add(trajectory_id)
            return Trajectory(
                trajectory_id,
                messages,
                policy=policy,
                domain=domain,
                task_id=task_id,
                subset=subset,
                source=place.source,
            )

        yield from build_each(each_simulation(document), build, on_error)

    def raw_messages(self, record: Any) -> list[Any] | None:
        """Return the simulation's messages."""
        return simulation_messages(record)


def subset_and_domain(path: Path) -> tuple[str | None, str | None]:
    """Return subset and domain of `<subset>/<domain>/final_traces.json`.

    Returns
    -------
    tuple
        (None, None) where the file does not stand in a folder `*_annotation/<domain>`.
    """
    parent = path.absolute().parent
    if not parent.parent.name.endswith(_SUFFIX):
        return None, None
    return clean(parent.parent.name), clean(parent.name)


def read_simulations(path: str | Path, on_error: OnError | None = None) -> Iterator[Trajectory]:
    """Yield the trajectories of one `final_traces.json`.

    Parameters
    ----------
    path : str or Path
    on_error : callable, optional
        Told of each record that can't be read; without it the first one raises.

    Yields
    ------
    Trajectory
        `id` is the `trajectory_id` of the automated subset, and
        `human_annotation:<domain>:<task_id>` in the human one.

    Raises
    ------
    TraceError
    """

    def fail(error: TraceError) -> None:
        raise error

    yield from RedundancyBenchReader().read(Document(Path(path)), on_error or fail)
