from __future__ import annotations

import json
import tracemalloc

import pytest

from redclf.errors import TraceError
from redclf.readers import iter_trajectories, large, load
from redclf.readers.document import Document


def simulation(number):
    messages = [{"role": "user", "content": f"number {number}"}]
    for step in range(3):
        call = {"id": f"c{step}", "name": "look", "arguments": {"n": 1.5, "deep": [number, None, True]}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call], "turn_idx": step})
        messages.append(
            {"role": "tool", "id": f"c{step}", "content": "\u00e9\ud83d\ude00 " * 50, "requestor": "assistant"}
        )
    return {"id": f"run-{number}", "task_id": str(number), "reward_info": {"reward": 1.0}, "messages": messages}


TAU2 = {"info": {"environment_info": {"domain_name": "garden", "policy": "Be kind."}}, "tasks": [{"simulations": [7]}],
        "simulations": [simulation(n) for n in range(40)]}  # fmt: skip
CHATS = [{"id": f"c{n}", "messages": [{"role": "user", "content": f"{n} " * 99}] * 4} for n in range(40)]


@pytest.fixture(params=["one line", "many lines", "byte order mark"])
def write(request, tmp_path, monkeypatch):
    monkeypatch.setattr(large, "LARGE", 2_000)

    def written(value, name="runs.json"):
        text = json.dumps(value, indent=1 if request.param == "many lines" else None)
        path = tmp_path / name
        path.write_text(("\ufeff" if request.param == "byte order mark" else "") + text, encoding="utf-8")
        return path

    return written


@pytest.mark.parametrize(
    "value", [TAU2, {**TAU2, "simulations": TAU2["simulations"][:1]}, CHATS, dict(reversed(TAU2.items()))]
)
def test_a_large_file_reads_as_a_small_one(write, monkeypatch, value):
    path = write(value)
    with monkeypatch.context() as patch:
        patch.setattr(Document, "value", property(lambda self: pytest.fail("decoded as a whole")))
        found = load(path)
    monkeypatch.setattr(large, "LARGE", 2**40)
    assert found == load(path) and len(found) in (1, 40)


def test_one_item_at_a_time(write):
    path = write([{"id": str(n), "messages": [{"role": "user", "content": "x" * 50_000}]} for n in range(60)])
    tracemalloc.start()
    count = sum(len(run.messages) for run in iter_trajectories(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 60 and peak < path.stat().st_size / 4


def test_a_large_list_of_messages_is_one_trajectory(write):
    path = write([{"role": "user", "content": "x" * 100}] * 100)
    (found,) = load(path)
    assert len(found.messages) == 100


@pytest.mark.parametrize("strange", [float("nan"), float("inf"), 10**30])
def test_what_the_streaming_parser_refuses_is_read_all_the_same(write, strange):
    value = [dict(chat) for chat in CHATS]
    value[20]["extra"] = strange
    assert [run.id for run in load(write(value))] == [f"c{n}" for n in range(40)]


@pytest.mark.parametrize("value", [CHATS, TAU2])
def test_damage_is_reported_after_what_could_be_read(write, value):
    path = write(value)
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: int(len(text) * 0.6)], encoding="utf-8")
    errors = []
    found = list(iter_trajectories(path, on_error=errors.append))
    assert 15 < len(found) < 30 and len(errors) == 1
    assert "expected JSON, got something else" in str(errors[0]) and str(path) in str(errors[0])
    with pytest.raises(TraceError):
        load(path)


def test_refused_records_keep_their_numbers(write):
    value = [dict(chat) for chat in CHATS]
    value[3]["messages"] = 7
    errors = []
    found = list(iter_trajectories(write(value), on_error=errors.append))
    assert len(found) == 39 and len(errors) == 1 and "record 3" in str(errors[0])


@pytest.mark.parametrize(
    "value", [{"messages": CHATS[0]["messages"] * 20}, {"simulations": []}, {"simulations": 7}, [], "x" * 9_000]
)
def test_other_large_files_are_read_as_ever(write, monkeypatch, value):
    path = write(value)

    def outcome():
        try:
            return load(path)
        except TraceError as error:
            return str(error)

    found = outcome()
    monkeypatch.setattr(large, "LARGE", 2**40)
    assert found == outcome()


def test_lines_longer_than_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(large, "LARGE", 4_000)
    path = tmp_path / "runs.jsonl"
    path.write_text(
        "\n".join(json.dumps({"id": str(n), "messages": [{"role": "user", "content": "x" * 9_000}]}) for n in range(5))
    )
    assert [run.id for run in load(path)] == ["0", "1", "2", "3", "4"]
