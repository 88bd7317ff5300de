"""The results file of tau2-bench."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redclf.readers.base import Reader, UniqueIds, build_each
from redclf.readers.document import Document, OnError
from redclf.readers.fields import (
    Place,
    optional_id,
    optional_number,
    optional_object,
    optional_text,
    record_object,
)
from redclf.readers.messages import parse_messages, system_text
from redclf.readers.simulations import each_simulation, first_simulation, simulation_messages
from redclf.trajectory import Trajectory


class Tau2Reader(Reader):
    """Reads runs with their reward and token usage. `tasks` is not read."""

    name = "tau2"
    description = "tau2-bench results.json"

    def sniff(self, document: Document) -> str | None:
        """Return None for `simulations` that are runs with an `id` and `messages`."""
        first = first_simulation(document)
        if isinstance(first, str):
            return first
        missing = [key for key in ("id", "task_id", "messages") if key not in first]
        return f"simulations without `{missing[0]}`" if missing else None

    def read(self, document: Document, on_error: OnError) -> Iterator[Trajectory]:
        """Yield the trajectories in file order."""
        info = optional_object({"info": document.member("info")}, "info", document.place)
        environment = optional_object(info, "environment_info", document.place)
        domain = optional_text(environment, "domain_name", document.place)
        shared_policy = optional_text(environment, "policy", document.place) or ""
        unique = UniqueIds()

        def build(place: Place, value: Any) -> Trajectory:
            record = record_object(value, place, "a simulation")
            task_id = optional_id(record, "task_id", place)
            run_id = optional_id(record, "id", place) or task_id
            if run_id is None:
                raise place.error("expected an `id` or a `task_id`, got neither")
            reward = optional_number(optional_object(record, "reward_info", place), "reward", place)
            policy = optional_text(record, "policy", place) or shared_policy
            extra = {
                "trial": optional_id(record, "trial", place),
                "termination_reason": optional_text(record, "termination_reason", place),
            }
            messages = parse_messages(record.get("messages"), place)
            return Trajectory(
                unique(run_id),
                messages,
                policy=policy or system_text(messages),
                domain=domain,
                task_id=task_id,
                reward=reward,
                source=place.source,
                extra={key: item for key, item in extra.items() if item is not None},
            )

        yield from build_each(each_simulation(document), build, on_error)

    def raw_messages(self, record: Any) -> list[Any] | None:
        """Return the simulation's messages."""
        return simulation_messages(record)
