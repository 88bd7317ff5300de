"""`redclf compare`: the contract, a run that is killed, keys, dry runs, the README's part."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stand_in import ODD, TRANSIENT, StandIn, by_digest

from redclf.benchmark.results import result_record, write_results
from redclf.cli import main
from redclf.commands.compare import BEGIN, END
from redclf.detectors.registry import create_detector

ROOT = Path(__file__).resolve().parents[2]
#: All but the time-out, which would take its time: the run must be patient with what is held.
FAULTS = tuple(fault for fault in TRANSIENT + ODD if fault != "timeout")
KEY = "sk-verysecret-0123456789"

needs_sdks = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("openai", "typesafe_sdk")),
    reason="the llm extra is not installed",
)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path, tiny_root):
    """Run the command in this process; returns exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)

    def _run(detectors, *arguments):
        with pytest.raises(SystemExit) as caught:
            main(["compare", "--data", str(tiny_root), "--detectors", detectors, *map(str, arguments)])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return caught.value.code, out, err

    return _run


def shell(tiny_root, folder, detectors, *arguments):
    """Start the command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": KEY, "TYPESAFE_API_KEY": KEY}
    command = [sys.executable, "-m", "redclf", "compare", "--data", str(tiny_root), "--detectors", detectors]
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def config(folder, server, kind="llm", **fields):
    path = folder / f"{kind}.yaml"
    values = {"model": "m", "base_url": server.base_url if kind == "llm" else server.root, **fields}
    path.write_text(json.dumps({"timeout": 2.0, "backoff": 0.001, **values}))
    return f"{kind}:{path}"


@pytest.fixture
def recorded(tmp_path, tiny_items):
    """A result file of the heuristic."""
    path = tmp_path / "recorded.jsonl"
    write_results(path, {}, (result_record(create_detector("heuristic"), item) for item in tiny_items))
    return path


def test_local_detectors_and_files(run, tmp_path, recorded):
    code, out, err = run(f"heuristic,majority,{recorded}", "--json", "all.json", "--output", "out")
    assert (code, err) == (0, "")
    value = json.loads((tmp_path / "all.json").read_text())
    assert list(value["detectors"]) == ["heuristic", "majority", str(recorded)]
    first, _, file = value["detectors"].values()
    for task in ("stepcls", "evidenceret", "stepdet"):
        assert first[task] == file[task] and set(first[task]) >= {"n", "ci"}
    used = ("requests", "failed", "input_tokens", "output_tokens", "cost_usd")
    assert [first[name] for name in used] == [0, 0, 0, 0, 0.0] and first["seconds"] >= 0
    assert [file[name] for name in used] == [None, 0, None, None, None]
    assert value["differences"]["first_minus"]["majority"]["stepcls.accuracy"]["difference"] > 0
    assert value["differences"]["first_minus"][str(recorded)]["stepcls.accuracy"]["difference"] == 0
    assert "Claude-Opus-5 (published)" in out and "better or worse" in " ".join(out.split())
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"heuristic.jsonl", "majority.jsonl"}


def test_scores_are_those_of_evaluate(run, tmp_path, tiny_root):
    run("heuristic", "--json", "compare.json")
    with pytest.raises(SystemExit):
        main(["evaluate", "--data", str(tiny_root), "--detector", "heuristic", "--json", "evaluate.json"])
    compared = json.loads((tmp_path / "compare.json").read_text())["detectors"]["heuristic"]
    evaluated = json.loads((tmp_path / "evaluate.json").read_text())
    assert {name: compared[name] for name in evaluated} == evaluated


def test_markdown_csv_and_plots(run, tmp_path):
    pytest.importorskip("matplotlib")
    assert run("heuristic,majority", "--markdown", "t.md", "--csv", "t.csv", "--plots", "plots")[0] == 0
    text = (tmp_path / "t.md").read_text()
    assert "| heuristic | 100.0 [100.0, 100.0] |" in text and "| Jev (published) | 79.41 |" in text
    lines = list(csv.DictReader((tmp_path / "t.csv").open()))
    assert {line["kind"] for line in lines} == {"measured", "published"}
    assert {line["breakdown"] for line in lines} == {"", "domain", "subset", "category", "messages"}
    opus = [line for line in lines if line["detector"] == "Claude-Opus-5" and line["metric"] == "stepdet.mean"]
    assert [(line["kind"], line["value"]) for line in opus] == [("published", "0.7125")]
    assert (tmp_path / "plots" / "categories.png").read_bytes().startswith(b"\x89PNG")


def test_limit_spreads_over_the_data(run, tmp_path):
    run("heuristic", "--limit", 8, "--json", "l.json")
    scores = json.loads((tmp_path / "l.json").read_text())["detectors"]["heuristic"]
    assert scores["trajectories"] == 8 and len(scores["by_domain"]) == 4


@pytest.mark.parametrize(
    ("detectors", "arguments", "message"),
    [
        ("heuristic,heuristic", (), "expected different names"),
        ("nothing", (), "expected a detector among"),
        ("llm:missing.yaml", (), "found no file 'missing.yaml'"),
        ("llm:m@ftp://x", (), "found no file"),
        ("cascade:heuristic", (), "expected cascade:FIRST+SECOND~WIDTH"),
        ("cascade:heuristic+majority~1.5", (), "WIDTH from 0 to 1"),
        ("cascade:llm:x+majority", (), "FIRST no judge behind an API"),
        ("heuristic", ("--limit", 0), "expected a whole number from 1"),
        ("heuristic", ("--readme", "missing.md"), "expected a text file"),
    ],
)
def test_errors(run, detectors, arguments, message):
    code, _, err = run(detectors, *arguments)
    assert code == 2 and message in err and len(err.splitlines()) == 1


@needs_sdks
def test_a_model_at_a_url(run, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with StandIn() as server:
        spec = f"llm:some/model@{server.base_url}"
        code, _, _ = run(spec, "--limit", 4, "--json", "o.json")
        asked = server.received.total()
        assert run(spec, "--limit", 4, "--json", "again.json")[0] == 0
        assert server.received.total() == asked == len(server.received)
    value = json.loads((tmp_path / "o.json").read_text())["detectors"][spec]
    assert code == 0 and (value["requests"], value["failed"]) == (asked, 0)
    assert (value["input_tokens"], value["output_tokens"]) == (server.input_tokens, server.output_tokens)
    assert value["seconds"] > 0 and value["cost_usd"] is None
    assert json.loads((tmp_path / "again.json").read_text())["detectors"][spec] == value
    assert list((tmp_path / "runs" / "requests").iterdir())


def kill_while_held(process, server, answers):
    """Kill a run when some answers are in and as many requests as are allowed at a time are under way."""
    deadline = time.monotonic() + 60
    while server.held < 8 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (server.held, server.answered.total()) == (8, answers)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    server.release.set()


@needs_sdks
def test_a_run_killed_twice_goes_on_and_pays_for_nothing_twice(tmp_path, tiny_root):
    with StandIn(by_digest(FAULTS), hold_after=12) as llm, StandIn(by_digest(FAULTS), hold_after=5) as jev:
        specs = [config(tmp_path, llm, timeout=20.0), config(tmp_path, jev, "jev", timeout=20.0, max_questions=2)]

        def start(name):
            arguments = ("--limit", 6, "--json", f"{name}.json", "--output", name, "--requests", f"{name}-log")
            return shell(tiny_root, tmp_path, ",".join(specs), *arguments)

        kill_while_held(start("broken"), llm, 12)
        kill_while_held(start("broken"), jev, 5)
        resumed = start("broken")
        resumed.communicate()
        assert resumed.returncode == 0
        prompts, tokens = [], []
        for server in (llm, jev):
            assert set(server.answered.values()) == {1} and set(server.answered) == set(server.received)
            prompts.append(set(server.received))
            tokens.append((server.input_tokens, server.output_tokens))
            server.received.clear()
        whole = start("whole")
        whole.communicate()
        assert whole.returncode == 0 and [set(llm.received), set(jev.received)] == prompts
    files = {path.name: path.read_bytes() for path in (tmp_path / "broken").iterdir()}
    assert len(files) == 2
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    values = [json.loads((tmp_path / f"{name}.json").read_text()) for name in ("broken", "whole")]
    for value in values:
        found = value["detectors"].values()
        assert [(entry["input_tokens"], entry["output_tokens"]) for entry in found] == tokens
        assert [entry["requests"] for entry in found] == [len(sent) for sent in prompts]
        for entry in found:
            del entry["seconds"]
    assert values[0] == values[1]


@needs_sdks
@pytest.mark.parametrize("status", [None, 401])
def test_keys_reach_no_file_and_no_message(status, tmp_path, tiny_root):
    with StandIn(status=status, echo=True) as server:
        detectors = f"{config(tmp_path, server, retries=0)},{config(tmp_path, server, 'jev', retries=0)}"
        arguments = ("--limit", 2, "--json", "o.json", "--csv", "o.csv", "--markdown", "o.md", "--output", "out")
        out, err = shell(tiny_root, tmp_path, detectors, *arguments).communicate()
    assert server.headers and all(headers["authorization"] == f"Bearer {KEY}" for headers in server.headers)
    assert KEY not in out + err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    if status == 401:
        assert "[key]" in err and "OPENAI_API_KEY" in err and len(err.splitlines()) == 1


def test_a_dry_run_writes_the_prompts_and_sends_nothing(run, tmp_path):
    prices = tmp_path / "prices.yaml"
    prices.write_text("date: 2026-01-01\nmodels: {m: {input: 1, output: 10}}")
    with StandIn() as server:
        specs = [config(tmp_path, server), config(tmp_path, server, "jev")]
        specs.append(f"cascade:heuristic+{specs[0]}~0.5")
        code, out, _ = run(",".join(specs), "--limit", 4, "--dry-run", "--requests", "log", "--prices", prices)
    assert code == 0 and not server.received and "nothing sent" in out
    assert out.count("about $") == 3
    files = sorted((tmp_path / "log").glob("*.prompts.jsonl"))
    assert len(files) == 3
    for file in files:
        records = [json.loads(line) for line in file.read_text().splitlines()]
        assert records and {record["task"] for record in records} <= {"stepcls", "evidenceret", "stepdet"}
        assert all(record["prompt"] for record in records)


@needs_sdks
def test_a_cascade_over_its_band_from_recorded_replies(run, tmp_path):
    prices = tmp_path / "prices.yaml"
    prices.write_text("date: 2026-01-01\nmodels: {m: {input: 1, output: 10}}")
    with StandIn() as server:
        judge = config(tmp_path, server)
        cascade = f"cascade:heuristic+{judge}~0.5"
        code, out, _ = run(f"{cascade},{judge},heuristic", "--limit", 6, "--json", "o.json", "--prices", prices)
        assert set(server.answered.values()) == {1}
    assert code == 0 and "by width of the band" in out
    found = json.loads((tmp_path / "o.json").read_text())["detectors"]
    band = found[cascade]["band"]
    assert [point["width"] for point in band][::8] == [0.0, 1.0]
    requests, costs = [point["requests"] for point in band], [point["cost_usd"] for point in band]
    assert requests == sorted(requests) and costs == sorted(costs) and costs[0] == 0
    assert (requests[0], requests[-1]) == (0, found[judge]["requests"])
    for task, path in (("stepcls", "stepcls.accuracy"), ("evidenceret", "evidenceret.accuracy")):
        assert band[0][path] == found["heuristic"][task]["accuracy"]
        assert band[-1][path] == found[judge][task]["accuracy"]
    at = next(point for point in band if point["width"] == 0.5)
    assert (at["requests"], at["cost_usd"]) == (found[cascade]["requests"], found[cascade]["cost_usd"])


def test_the_part_of_the_readme(run, tmp_path, recorded):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert run(f"{recorded},majority", "--readme", readme)[0] == 0
    text = readme.read_text()
    assert text.startswith(f"before\n{BEGIN}\n") and text.endswith(f"{END}\nafter\n") and "old" not in text
    assert "| recorded |" in text and "| GPT-5.4 (published) |" in text
    again = text
    run(f"{recorded},majority", "--readme", readme)
    assert readme.read_text() == again
    readme.write_text("no markers")
    code, _, err = run("majority", "--readme", readme)
    assert code == 2 and "expected the lines" in err


def test_no_score_of_a_stand_in_gets_into_the_readme(run, tmp_path, tiny_items):
    readme = tmp_path / "README.md"
    readme.write_text(f"{BEGIN}\n{END}\n")
    header = {"endpoints": ["http://127.0.0.1:8000/v1"]}
    write_results(
        tmp_path / "judged.jsonl", header, (result_record(create_detector("majority"), item) for item in tiny_items)
    )
    for spec in ("llm:m@http://localhost:9/v1", "cascade:heuristic+jev:m@http://[::1]:9", tmp_path / "judged.jsonl"):
        code, _, err = run(str(spec), "--readme", readme)
        assert code == 2 and "asked on this machine" in err
    assert readme.read_text() == f"{BEGIN}\n{END}\n"


@needs_sdks
def test_no_table_of_zeros_where_nobody_answers(run, tmp_path):
    with StandIn() as server:
        spec = config(tmp_path, server, retries=0)
    code, out, err = run(spec, "--limit", 2)
    assert (code, out) == (2, "") and "got an answer: Connection error" in err and len(err.splitlines()) == 1


def test_in_sample_rows_are_refused_or_marked(run, tmp_path, tiny_items):
    from redclf.hashing import trajectory_hash

    header = {"trained_on": [trajectory_hash(tiny_items[0].trajectory)]}
    records = (result_record(create_detector("majority"), item) for item in tiny_items)
    write_results(tmp_path / "trained.jsonl", header, records)
    code, _, err = run("trained.jsonl")
    assert code == 2 and "--allow-train" in err
    assert "trained (IN-SAMPLE)" in run("trained.jsonl", "--allow-train")[1]
    (tmp_path / "README.md").write_text(f"{BEGIN}\n{END}\n")
    code, _, err = run("trained.jsonl", "--allow-train", "--readme", "README.md")
    assert code == 2 and "in-sample" in err


@needs_sdks
@pytest.mark.parametrize("kind", ["llm", "jev"])
def test_detect_says_where_there_is_no_answer(kind, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with StandIn(lambda digest: "empty") as server, pytest.raises(SystemExit) as caught:
        spec = config(tmp_path, server, kind, retries=0)
        main(["detect", str(ROOT / "examples" / "library_desk.json"), "--detector", spec, "--json"])
    out, err = capsys.readouterr()
    assert (caught.value.code, out) == (2, "")
    assert "library_desk.json: no answer of m: the reply can't be used" in err
