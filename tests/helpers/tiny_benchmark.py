"""A small benchmark in the release's layout, made up for these tests: every category, several domains and folds."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from redclf.taxonomy import ABNORMAL, DUPLICATED, EXPLORATORY, INCORRECT

#: Subset, domain, what it is about, and the tools: search, read, write.
DOMAINS = (
    ("automated_annotation", "greenhouse", "bed", ("find_beds", "get_bed", "water_bed")),
    ("automated_annotation", "harbour", "berth", ("search_berths", "read_berth", "assign_berth")),
    ("automated_annotation", "observatory", "slot", ("list_slots", "show_slot", "reserve_slot")),
    ("human_annotation", "archive", "scroll", ("look_up_scrolls", "fetch_scroll", "move_scroll")),
)
FOLDS = 3
PER_DOMAIN = 7


class _Run:
    """One trajectory while it is written, with its labels."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.labels: list[tuple[list[int], str, list[int]]] = []

    def say(self, role: str, text: str) -> int:
        self.messages.append({"role": role, "content": text, "tool_calls": None})
        return len(self.messages) - 1

    def call(self, tool: str, result: Any, requestor: str = "assistant", **arguments: Any) -> list[int]:
        index = len(self.messages)
        call = {"id": f"c{index}", "name": tool, "arguments": arguments, "requestor": requestor}
        self.messages.append({"role": requestor, "content": None, "tool_calls": [call]})
        text = result if isinstance(result, str) else json.dumps(result)
        self.messages.append({"role": "tool", "id": f"c{index}", "content": text, "requestor": requestor})
        return [index, index + 1]

    def label(self, step: list[int], category: str, evidence: list[int]) -> None:
        self.labels.append((step, category, evidence))


def _write_run(rng: random.Random, thing: str, tools: tuple[str, str, str]) -> _Run:
    search, read, write = tools
    run = _Run()
    name, other = f"{thing}-{rng.randrange(100, 999)}", f"{thing}-{rng.randrange(100, 999)}"
    run.say("assistant", "Good day, how may I help?")
    ask = run.say("user", f"Please see to {name} in the north wing before Tuesday.")
    record = {"id": name, "wing": "north", "level": rng.randrange(90), "keeper": f"keeper_{rng.randrange(50)}"}
    if rng.random() < 0.6:
        lost = run.call(search, "[]", query=f"{thing} tuesday")
        hit = run.call(search, [{"id": name, "wing": "north"}, {"id": other, "wing": "south"}], query="north wing")
        run.label(lost, EXPLORATORY, hit)
    if rng.random() < 0.6:
        wrong = run.call(read, f"Error: {thing} not found", **{f"{thing}_id": name[:-1]})
        run.label(wrong, INCORRECT, [ask] if rng.random() < 0.7 else [-1])
    if rng.random() < 0.5:
        failed = run.call(read, "Error: the request timed out", **{f"{thing}_id": name})
        first = run.call(read, record, **{f"{thing}_id": name})
        run.label(failed, ABNORMAL, first)
    else:
        first = run.call(read, record, **{f"{thing}_id": name})
    run.call("get_keeper", {"keeper": record["keeper"], "shift": rng.randrange(3)}, keeper=record["keeper"])
    if rng.random() < 0.7:
        again = run.call(read, record, **{f"{thing}_id": name})
        run.label(again, DUPLICATED, first)
    if rng.random() < 0.3:
        run.call("check_gauge", {"gauge": rng.randrange(9)}, requestor="user")
    run.call(write, {"status": "done", "id": name}, **{f"{thing}_id": name, "by": record["keeper"]})
    run.say("assistant", f"{name} is seen to; {record['keeper']} knows about it.")
    run.say("user", "Thank you, that was all.")
    return run


def write_benchmark(root: Path, seed: int = 0) -> Path:
    """Write traces, annotations and splits under `root`, and return it."""
    rng = random.Random(seed)
    folds: dict[str, int] = {}
    for subset, domain, thing, tools in DOMAINS:
        simulations, annotations = [], []
        for number in range(PER_DOMAIN):
            run = _write_run(rng, thing, tools)
            task = str(number)
            human = subset == "human_annotation"
            key = {"task_id": task} if human else {"trajectory_id": f"{domain}-run-{number}", "task_id": task}
            simulations.append({**key, "messages": run.messages, "policy": "Make only one tool call at a time."})
            annotations.append(
                {
                    **key,
                    "redundant_step_idx": [step for step, _, _ in run.labels],
                    "redundant_step_type": [category for _, category, _ in run.labels],
                    "evidence_step_idx": [evidence for _, _, evidence in run.labels],
                    "confidence": ["1"] * len(run.labels),
                }
            )
            folds[f"{subset}:{domain}:{task}" if human else key["trajectory_id"]] = number % FOLDS
        folder = root / subset / domain
        folder.mkdir(parents=True)
        (folder / "final_traces.json").write_text(json.dumps({"tasks": [], "simulations": simulations}))
        (folder / "annotation.json").write_text(json.dumps(annotations))
    (root / "splits.json").write_text(json.dumps({"folds": folds}))
    return root
