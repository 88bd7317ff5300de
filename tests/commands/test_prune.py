"""`redclf prune`: files written back in their own format, or as chat messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from api_rules import anthropic_faults, openai_faults

from redclf.cli import main
from redclf.readers import load
from redclf.readers.writing import to_chat

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared"


def call(number, name="look", **arguments):
    return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def answer(number, text):
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


MESSAGES = [
    {"role": "user", "content": "go", "extra": [1, {"kept": True}]},
    {"role": "assistant", "content": None, "tool_calls": [call(0, bed=1)]},
    answer(0, "bed 1 is dry"),
    {"role": "assistant", "content": "Again.", "tool_calls": [call(1, bed=1)]},
    answer(1, "bed 1 is dry"),
    {"role": "assistant", "content": None, "tool_calls": [call(2, bed=1), call(3, "list")], "usage": {"total": 7}},
    answer(2, "bed 1 is dry"),
    answer(3, "beds 1 to 9"),
    {"role": "assistant", "content": "Bed 1 is dry."},
]
#: What is left: the repeats are gone, the text beside one of them and the call beside the other are not.
LEFT = [
    *MESSAGES[:3],
    {"role": "assistant", "content": "Again."},
    {**MESSAGES[5], "tool_calls": [call(3, "list")]},
    *MESSAGES[7:],
]


@pytest.fixture
def prune(capfd, tmp_path):
    def run(*arguments, output=tmp_path / "out"):
        with pytest.raises(SystemExit) as stop:
            main(["prune", *map(str, arguments), "--output", str(output), "--detector", "heuristic"])
        out, err = capfd.readouterr()
        return stop.value.code, out, err

    return run


@pytest.fixture
def write(tmp_path):
    def written(text, name="runs.json"):
        path = tmp_path / "in" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return path

    return written


@pytest.mark.parametrize(
    "wrap",
    [lambda m: m, lambda m: {"messages": m, "id": "a", "other": [1]},
     lambda m: [{"messages": m}, {"messages": m, "x": 1}],
     lambda m: [m, m], lambda m: [{"task_id": 3, "traj": m, "reward": 1.0, "info": {"y": 2}}],
     lambda m: {"simulations": [{"id": "r", "task_id": "t", "messages": m}], "info": {}, "tasks": [5]},
     lambda m: {"simulations": [{"task_id": "t", "messages": m}] * 1, "z": None}],
    ids=["list", "object", "objects", "lists", "tau_bench", "tau2", "release"],
)  # fmt: skip
def test_a_file_keeps_its_format_and_all_else_that_is_in_it(prune, write, tmp_path, wrap):
    path = write(wrap(MESSAGES))
    code, out, err = prune(path)
    assert (code, err) == (0, "") and "steps taken out" in out
    assert json.loads((tmp_path / "out" / "runs.json").read_text()) == wrap(LEFT)


def test_lines(prune, write, tmp_path):
    lines = [json.dumps({"id": str(n), "messages": MESSAGES}) for n in range(3)]
    path = write("\n".join([lines[0], "{damaged", lines[1], json.dumps({"messages": 7}), lines[2]]), "runs.jsonl")
    code, _, err = prune(path)
    assert code == 2 and err.count("\n") == 2 and "line 2" in err and "line 4" in err
    found = (tmp_path / "out" / "runs.jsonl").read_text().splitlines()
    # What could not be read is still there, as it was.
    assert found[1] == "{damaged" and json.loads(found[3]) == {"messages": 7} and len(found) == 5
    assert json.loads(found[4]) == {"id": "2", "messages": LEFT}


def test_lines_that_are_messages(prune, write, tmp_path):
    path = write("\n".join(map(json.dumps, MESSAGES)), "run.jsonl")
    assert prune(path)[0] == 0
    assert [json.loads(line) for line in (tmp_path / "out" / "run.jsonl").read_text().splitlines()] == LEFT


def test_layout_is_kept(prune, write, tmp_path):
    write(json.dumps({"messages": MESSAGES}, indent=4), "a.json")
    path = write({"messages": MESSAGES}, "b.json").parent
    prune(path)
    assert (tmp_path / "out" / "a.json").read_text().count("\n") > 30
    assert (tmp_path / "out" / "b.json").read_text().count("\n") == 1


def test_a_folder_keeps_its_paths(prune, write, tmp_path):
    for name in ("x", "y"):
        (tmp_path / "in" / name).mkdir(parents=True)
        write(MESSAGES, f"{name}/runs.json")
    assert prune(tmp_path / "in")[0] == 0
    assert {p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*.json")} == {
        "x/runs.json",
        "y/runs.json",
    }
    code, _, err = prune(
        tmp_path / "in" / "x" / "runs.json", tmp_path / "in" / "y" / "runs.json", output=tmp_path / "o2"
    )
    assert code == 2 and "would both be written to" in err and not (tmp_path / "o2").exists()


def test_placeholder_and_map(prune, write, tmp_path):
    path = write({"id": "a", "messages": MESSAGES})
    assert prune(path, "--placeholder", "--map", tmp_path / "map.jsonl")[0] == 0
    found = json.loads((tmp_path / "out" / "runs.json").read_text())["messages"]
    assert (
        len(found) == len(MESSAGES)
        and "see messages 1 and 2" in found[4]["content"]
        and "1 and 2" in found[6]["content"]
    )
    record = json.loads((tmp_path / "map.jsonl").read_text())
    assert record["new_indices"] == list(range(9)) and len(record["removed"]) == 2 and record["kept"] == []
    prune(path, "--map", tmp_path / "map.jsonl")
    assert json.loads((tmp_path / "map.jsonl").read_text())["new_indices"] == [0, 1, 2, 3, None, 4, None, 5, 6]


def test_as_chat_messages(prune, write, tmp_path):
    path = write({"simulations": [{"id": "r", "task_id": "t", "messages": MESSAGES}]})
    assert prune(path, "--to", "openai_chat")[0] == 0
    found = json.loads((tmp_path / "out" / "runs.json").read_text())
    assert found["id"] == "r" and not openai_faults(found["messages"]) and len(found["messages"]) == len(LEFT)
    (run,) = load(tmp_path / "out")
    assert [i.call.name for i in run.interactions] == ["look", "list"]


def test_nothing_redundant_changes_nothing(prune, write, tmp_path):
    path = write({"messages": MESSAGES[:3]})
    code, out, _ = prune(path)
    assert code == 0 and "0 steps taken out" in out
    assert json.loads((tmp_path / "out" / "runs.json").read_text()) == {"messages": MESSAGES[:3]}


@pytest.mark.parametrize("more", [["--to", "xml"], ["--threshold", "2"], ["--format", "none"], ["--model", "m"]])
def test_wrong_options(prune, write, tmp_path, more):
    code, _, err = prune(write(MESSAGES), *more)
    assert code == 2 and err.count("\n") == 1 and "expected" in err and not (tmp_path / "out").exists()


def test_the_input_is_not_overwritten(prune, write):
    path = write(MESSAGES)
    before = path.read_bytes()
    code, _, err = prune(path, output=path.parent)
    assert code == 2 and "another folder" in err and path.read_bytes() == before


def test_nothing_to_read(prune, tmp_path, write):
    code, _, err = prune(tmp_path / "none.json")
    assert code == 2 and "nothing written" in err
    assert prune(write("text"))[0] == 2 and prune(write("{}"), "--strict")[0] == 2


@pytest.mark.skipif(not (SHARED / "samples").is_dir(), reason="needs the samples of ../shared")
@pytest.mark.shipped_model
@pytest.mark.parametrize("name", ["tau2_bench_results.json", "tau_bench_gpt4o_airline.json"])
def test_real_samples(capfd, tmp_path, name):
    with pytest.raises(SystemExit) as stop:
        main(["prune", str(SHARED / "samples" / name), "--output", str(tmp_path), "--threshold", "0.3"])
    assert stop.value.code == 0, capfd.readouterr().err
    before, after = load(SHARED / "samples" / name), load(tmp_path / name)
    assert [run.id for run in before] == [run.id for run in after]
    assert sum(len(run.messages) for run in after) < sum(len(run.messages) for run in before)
    for old, new in zip(before, after, strict=True):
        assert len(openai_faults(to_chat(new)["messages"])) <= len(openai_faults(to_chat(old)["messages"]))
        assert len(anthropic_faults(new.messages)) <= len(anthropic_faults(old.messages))
