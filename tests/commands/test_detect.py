"""`redclf detect` over many trajectories: killed, resumed, in several processes, on Ray."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from local_ray import local_cluster

from redclf.cli import main
from redclf.engine import scorer

ROOT = Path(__file__).resolve().parents[2]


def chat(number):
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": json.dumps({"n": number})}}
    answer = {"role": "tool", "content": "\u00e9", "tool_call_id": "c"}
    pair = [{"role": "assistant", "content": None, "tool_calls": [call]}, answer]
    return {"id": f"run-{number}", "messages": [{"role": "user", "content": "go"}, *pair * (2 + number % 3)]}


@pytest.fixture
def traces(tmp_path):
    path = tmp_path / "runs.jsonl"
    lines = [json.dumps(chat(n)) for n in range(30)]
    lines.insert(4, "{damaged")
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def detect(capfd):
    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(["detect", *map(str, arguments), "--detector", "heuristic"])
        out, err = capfd.readouterr()
        return stop.value.code, out, err

    return run


@pytest.fixture
def scored(monkeypatch):
    """The ids that are scored, not counting what an earlier run did."""
    seen = []
    call = scorer.Scorer.__call__
    monkeypatch.setattr(scorer.Scorer, "__call__", lambda self, run: seen.append(run.id) or call(self, run))
    return seen


def unfinished(target, lines, tail=b""):
    """Make a finished file look as if the run had been killed after some lines."""
    kept = target.read_bytes().split(b"\n")[:lines]
    (target.parent / f"{target.name}.part").write_bytes(b"".join(line + b"\n" for line in kept) + tail)
    target.unlink()


@pytest.mark.parametrize(
    ("lines", "tail"), [(0, b""), (11, b""), (11, b'{"trajectory_id": "run-1'), (29, b""), (30, b"")]
)
def test_resume_gives_what_an_unbroken_run_gives(detect, traces, scored, tmp_path, lines, tail):
    target = tmp_path / "out.jsonl"
    code, out, _ = detect(traces, "--output", target)
    whole = target.read_bytes()
    assert code == 2 and whole.count(b"\n") == 30 and not list(tmp_path.glob("*.part*"))
    # The note of an unfinished run, as a run leaves it that is stopped by a damaged line.
    assert detect(traces, "--output", tmp_path / "other.jsonl", "--strict")[0] == 2
    (tmp_path / "other.jsonl.part.json").rename(tmp_path / "out.jsonl.part.json")
    unfinished(target, lines, tail)
    scored.clear()
    code, again, _ = detect(traces, "--output", target, "--resume")
    assert code == 2 and target.read_bytes() == whole and again == out
    assert scored == [f"run-{n}" for n in range(lines, 30)]
    assert not list(tmp_path.glob("out.jsonl.part*"))


def test_a_run_that_is_killed_keeps_what_it_has(traces, tmp_path):
    traces.write_text("\n".join(json.dumps(chat(n)) for n in range(20_000)))
    target = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "redclf", "detect", str(traces), "--detector", "heuristic"]
    command += ["--output", str(target)]
    part = tmp_path / "out.jsonl.part"
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    while not (part.exists() and part.stat().st_size > 50_000) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL and not target.exists()
    before = part.read_bytes()
    done = subprocess.run([*command, "--resume"], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = target.read_bytes().splitlines()
    assert [json.loads(line)["trajectory_id"] for line in lines] == [f"run-{n}" for n in range(20_000)]
    assert target.read_bytes().startswith(before[: before.rindex(b"\n") + 1]) and "20,000 trajectories" in done.stdout


def test_an_interrupted_run_says_how_to_go_on(detect, traces, scored, tmp_path):
    target = tmp_path / "out.jsonl"
    code, _, err = detect(traces, "--output", target, "--strict")
    assert code == 2 and "--resume" in err and "out.jsonl.part" in err and len(scored) == 4
    fixed = traces.read_text().replace("{damaged", json.dumps(chat(99)))
    traces.write_text(fixed)
    assert detect(traces, "--output", target, "--strict", "--resume")[0] == 0 and len(scored) == 31
    names = [json.loads(line)["trajectory_id"] for line in target.read_text().splitlines()]
    assert len(names) == 31 and names[4] == "run-99"


def test_without_resume_a_run_begins_again(detect, traces, scored, tmp_path):
    target = tmp_path / "out.jsonl"
    detect(traces, "--output", target, "--strict")
    detect(traces, "--output", target)
    assert len(scored) == 34 and target.read_text().count("\n") == 30 and not list(tmp_path.glob("*.part*"))


def test_nothing_to_resume(detect, traces, scored, tmp_path):
    target = tmp_path / "out.jsonl"
    detect(traces, "--output", target)
    whole = target.read_bytes()
    code, _, err = detect(traces, "--output", target, "--resume")
    assert code == 0 and "is complete" in err and target.read_bytes() == whole and len(scored) == 30
    target.unlink()
    assert detect(traces, "--output", target, "--resume")[0] == 2 and target.read_bytes() == whole


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--threshold", "0.5"], "was made with threshold None, this run has 0.5"),
        (["--top-k", "1"], "was made with top-k None, this run has 1"),
        (["--format", "openai_chat"], "was made with format 'auto'"),
    ],
)
def test_another_run_is_not_resumed(detect, traces, tmp_path, more, complaint):
    target = tmp_path / "out.jsonl"
    detect(traces, "--output", target, "--strict")
    before = (tmp_path / "out.jsonl.part").read_bytes()
    code, _, err = detect(traces, "--output", target, "--resume", *more)
    assert code == 2 and complaint in err and (tmp_path / "out.jsonl.part").read_bytes() == before


def test_a_part_of_something_else_is_not_resumed(detect, traces, tmp_path):
    target = tmp_path / "out.jsonl"
    detect(traces, "--output", target, "--strict")
    for line in ('{"id": 1}', "text", "[1]"):
        (tmp_path / "out.jsonl.part").write_text(line + "\n")
        code, _, err = detect(traces, "--output", target, "--resume")
        assert code == 2 and "expected results of this command" in err and err.count("\n") == 1
        assert (tmp_path / "out.jsonl.part").read_text() == line + "\n"


def test_a_mistake_in_the_command_leaves_an_unfinished_run_alone(detect, traces, tmp_path):
    target = tmp_path / "out.jsonl"
    detect(traces, "--output", target, "--strict")
    before = (tmp_path / "out.jsonl.part").read_bytes()
    for more in (["--model", "none"], ["--engine", "spark"], ["--workers", "-1"], ["--format", "none"]):
        assert detect(traces, "--output", target, *more)[0] == 2
    assert detect(tmp_path / "none", "--output", target, "--resume")[0] == 2
    assert (tmp_path / "out.jsonl.part").read_bytes() == before


@pytest.mark.parametrize("more", [["--workers", "2"], ["--workers", "0"], ["--engine", "ray", "--workers", "2"]])
def test_other_engines_write_the_same_bytes(detect, traces, tmp_path, more):
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    code, out, err = detect(traces, "--output", one)
    with local_cluster() if "ray" in more else nullcontext():
        found = detect(traces, "--output", other, *more)
    assert found[:2] == (code, out.replace("one.jsonl", "other.jsonl")) and other.read_bytes() == one.read_bytes()
    assert err in found[2] and (err == found[2] or "ray" in more)
    if "ray" not in more:
        assert detect(traces, "--json", *more)[1] == detect(traces, "--json")[1]


def test_a_step_is_found_in_its_own_tool_by_the_calls_id(detect, traces):
    out = detect(traces, "--json")[1].splitlines()
    assert all(found["call_id"] == "c" for line in out for found in json.loads(line)["predictions"])


def test_tables_from_several_processes(detect, traces):
    assert detect(traces, "--workers", "2") == detect(traces)


@pytest.mark.parametrize("more", [["--resume"], ["--engine", "spark"], ["--workers", "-2"]])
def test_wrong_options(detect, traces, more):
    code, _, err = detect(traces, *more)
    assert code == 2 and f"{more[0]}: expected" in err and err.count("\n") == 1
