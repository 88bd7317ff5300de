"""Counts on real traces against a plain look at the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redclf.readers import load

SHARED = Path(__file__).parents[2] / ".." / "shared"
FILES = [
    "redundancybench/human_annotation/airline/final_traces.json",
    "redundancybench/human_annotation/telecom/final_traces.json",
    "redundancybench/automated_annotation/airline/final_traces.json",
    "wild/automated_annotation/banking/final_traces.json",
    "samples/tau2_bench_results.json",
    "samples/tau_bench_gpt4o_airline.json",
]


@pytest.mark.parametrize("name", FILES)
def test_counts(name):
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not beside the repository")
    raw = json.loads(path.read_text(encoding="utf-8"))
    records = raw["simulations"] if isinstance(raw, dict) else raw
    trajectories = load(path)
    assert len(trajectories) == len(records)
    assert len({item.id for item in trajectories}) == len(records)
    for trajectory, record in zip(trajectories, records, strict=True):
        messages = record["messages"] if "messages" in record else record["traj"]
        assert [m.role for m in trajectory.messages] == [m["role"] for m in messages]
        assert [m.content for m in trajectory.messages] == [m["content"] or "" for m in messages]
        calls = [call for m in messages for call in m.get("tool_calls") or []]
        results = [m for m in messages if m["role"] == "tool"]
        assert sum(len(m.tool_calls) for m in trajectory.messages) == len(calls)
        assert len(trajectory.interactions) == len(results)
        for item in trajectory.interactions:
            answer = messages[item.result_index]
            assert answer.get("tool_call_id", answer.get("id")) == item.call.id
            assert answer.get("requestor", "assistant") == item.requestor
        assert trajectory.policy


def test_gold_steps_are_assistant_interactions():
    folder = SHARED / "redundancybench/human_annotation/telecom"
    if not folder.exists():
        pytest.skip("redundancybench is not beside the repository")
    by_task = {item.task_id: item for item in load(folder)}
    for annotation in json.loads((folder / "annotation.json").read_text(encoding="utf-8")):
        for step in annotation["redundant_step_idx"]:
            trajectory = by_task[annotation["task_id"]]
            assert trajectory.interaction_at(step).requestor == "assistant"
