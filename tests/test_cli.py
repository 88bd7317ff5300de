"""The command: output, errors, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from redclf import __version__
from redclf.cli import main
from redclf.models import shipped_models

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "library_desk.json"
FIELDS = {"redundant_step_idx", "redundant_step_type", "evidence_step_idx", "confidence", "interaction", "reason"}

needs_model = pytest.mark.skipif(not shipped_models(), reason="models/ holds no shipped model")


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command in this process; returns exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "120")

    def _run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return caught.value.code, out, err

    return _run


@pytest.fixture
def detect(run):
    """Run `redclf detect` with the heuristic detector."""
    return lambda *arguments: run("detect", "--detector", "heuristic", *arguments)


def chat(*messages, **fields):
    return {"messages": list(messages), **fields}


def call(call_id, name="get_book", arguments="{}"):
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": call_id, "function": function}]}


def result(call_id, content):
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def write(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


TWICE = (call("a"), result("a", "Emma"), call("b"), result("b", "Emma"))


def subprocess_run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "redclf", *map(str, arguments)], capture_output=True, text=True, cwd=ROOT, **options
    )


# ---- what it prints -----------------------------------------------------------------------------------


def test_version(run):
    assert run("--version") == (0, f"redclf {__version__}\n", "")


def test_the_table(detect):
    code, out, err = detect(EXAMPLE)
    assert (code, err) == (0, "")
    for text in ("[22, 23]", "find_member(email=mirela", "Duplicated", "0.90", "[2, 3]", "same result"):
        assert text in out
    assert "1 trajectory, 12 steps, 2 redundant (17%)" in out


def test_json_is_one_object_a_trajectory(detect, tmp_path):
    lines = write(tmp_path / "runs.jsonl", "\n".join(json.dumps(chat(*TWICE, id=name)) for name in "xy"))
    code, out, err = detect("--json", lines, EXAMPLE)
    assert (code, err) == (0, "")
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["trajectory_id"] for record in records] == ["x", "y", "library-desk"]
    for record in records:
        assert set(record) == {"trajectory_id", "source", "failed", "warnings", "predictions"}
        assert record["predictions"] and all(set(p) >= FIELDS for p in record["predictions"])
    assert records[0]["predictions"][0]["redundant_step_idx"] == [2, 3]
    assert records[0]["predictions"][0]["interaction"] == 1


def test_top_k_and_threshold(detect):
    for options, number in ((["--top-k", 1], 1), (["--threshold", 0.93], 1), (["--threshold", 1], 0)):
        code, out, _ = detect("--json", EXAMPLE, *options)
        assert code == 0 and len(json.loads(out)["predictions"]) == number


def test_output_is_written_whole(detect, tmp_path):
    target = write(tmp_path / "out.jsonl", "old")
    code, out, _ = detect(EXAMPLE, "--output", target)
    assert code == 0 and "12 steps" in out and "out.jsonl" in out.replace("\n", "")
    assert json.loads(target.read_text())["trajectory_id"] == "library-desk"
    assert list(tmp_path.iterdir()) == [target]


def test_no_redundant_steps(detect, tmp_path):
    code, out, _ = detect(write(tmp_path / "a.json", chat(call("a"), result("a", "Emma"))))
    assert code == 0 and "no redundant steps found" in out
    code, out, _ = detect(write(tmp_path / "b.json", chat({"role": "user", "content": "Hi"})))
    assert code == 0 and "no tool calls" in out


def test_a_failed_run_is_scored_and_marked(detect, tmp_path):
    path = write(tmp_path / "a.json", chat(*TWICE, reward=0))
    code, out, _ = detect(path)
    assert code == 0 and "FAILED RUN" in out and "Duplicated" in out
    record = json.loads(detect("--json", path)[1])
    assert record["failed"] is True and record["predictions"]


def test_calls_and_results_without_a_partner_are_counted(detect, tmp_path):
    path = write(tmp_path / "cut.json", chat(*TWICE, result("zz", "late"), call("c"), call("d")))
    code, out, err = detect("--json", path)
    record = json.loads(out)
    assert code == 0 and len(record["predictions"]) == 1
    assert record["warnings"] == ["2 calls without a result, not scored", "1 result without a call, not scored"]
    assert err.count("warning") == 2 and "cut.json" in err


def test_trace_text_cannot_write_to_the_terminal(detect, tmp_path):
    name = "\x1b[31mred[bold]x[/bold]\n\x07"
    arguments = json.dumps({"k": "\x1b]0;title\x07[/nope] [link=x]y"})
    steps = []
    for call_id in "ab":
        steps += [call(call_id, name, arguments), result(call_id, "\x1b[2J")]
    code, out, err = detect(write(tmp_path / "a.json", chat(*steps, id="id\x1b[1m[red]")))
    assert code == 0 and err == "" and "\x1b" not in out and "\x07" not in out
    assert "red[bold]x[/bold]" in out and "[/nope]" in out and "[red]" in out


def test_fifty_megabytes_in_one_message(detect, tmp_path):
    long = "word " * 10_000_000
    path = write(tmp_path / "long.json", chat(call("a"), result("a", long), *TWICE[2:]))
    code, out, err = detect("--json", path)
    assert (code, err) == (0, "") and json.loads(out)["predictions"] == []


def test_listings(run):
    code, out, _ = run("formats")
    assert code == 0 and "openai_chat" in out and "tau2" in out
    code, out, _ = run("models")
    assert code == 0 and out


# ---- bad input ----------------------------------------------------------------------------------------

BAD = {
    "not JSON": "hello",
    "empty": "",
    "cut off": '{"messages": [',
    "wrong layout": '{"a": 1}',
    "unknown role": '{"messages": [{"role": "wizard", "content": "x"}]}',
    "no messages": '{"messages": []}',
    "message is no object": '[{"role": "user", "content": "x"}, 3]',
    "bad arguments": '[{"role": "assistant", "tool_calls": [{"function": {"name": 3}}]}]',
    "null": "null",
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(detect, tmp_path, name):
    path = write(tmp_path / "bad.json", BAD[name])
    code, out, err = detect("--json", path, EXAMPLE)
    assert code == 2 and len(err.splitlines()) == 1
    assert err.startswith("redclf: error: ") and "bad.json" in err and "expected" in err
    assert json.loads(out)["trajectory_id"] == "library-desk"
    code, out, err = detect("--json", "--strict", path, EXAMPLE)
    assert (code, out) == (2, "") and len(err.splitlines()) == 1


def test_not_utf8(detect, tmp_path):
    path = tmp_path / "latin.json"
    path.write_bytes('[{"role": "user", "content": "Käse"}]'.encode("latin-1"))
    code, _, err = detect(path)
    assert code == 2 and "UTF-8" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("name", ["missing.json", "folder", "x\0y", "new\nline"])
def test_no_traces(detect, tmp_path, name):
    (tmp_path / "folder").mkdir()
    code, _, err = detect(tmp_path / name)
    assert code == 2 and len(err.splitlines()) == 1 and err.startswith("redclf: error: ")


def test_one_bad_record_among_good_ones(detect, tmp_path):
    lines = [json.dumps(chat(*TWICE, id="x")), "{broken", json.dumps(chat(*TWICE, id="y"))]
    path = write(tmp_path / "runs.jsonl", "\n".join(lines))
    code, out, err = detect("--json", path)
    assert code == 2 and "line 2" in err
    assert [json.loads(line)["trajectory_id"] for line in out.splitlines()] == ["x", "y"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["detect"],
        ["detect", EXAMPLE, "--threshold", "1.5"],
        ["detect", EXAMPLE, "--threshold", "nan"],
        ["detect", EXAMPLE, "--threshold", "much"],
        ["detect", EXAMPLE, "--top-k", "0"],
        ["detect", EXAMPLE, "--format", "nonsense", "--detector", "heuristic"],
        ["detect", EXAMPLE, "--detector", "nonsense"],
        ["detect", EXAMPLE, "--detector", "missing.jsonl"],
        ["detect", EXAMPLE, "--detector", "heuristic", "--model", "x"],
        ["detect", EXAMPLE, "--model", "no/such/folder"],
        ["detect", EXAMPLE, "--detector", "relations", "--model", "no/such/folder"],
        ["detect", EXAMPLE, "--bogus"],
        ["detect", EXAMPLE, "--detector", "heuristic", "--output", "/no/such/folder/out"],
        ["detect", EXAMPLE, "--detector", "heuristic", "--output", ROOT],
        ["detect", EXAMPLE, "--detector", "heuristic", "--output", EXAMPLE],
        ["evaluate"],
        ["evaluate", "--data", "/no/such/folder", "--detector", "heuristic"],
        ["evaluate", "--data", ROOT / "redclf", "--detector", "heuristic"],
        ["bogus"],
    ],
)
def test_bad_usage_is_one_line(run, arguments):
    before = EXAMPLE.read_bytes()
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("redclf: error: ") and len(err.splitlines()) == 1
    assert "unexpected" not in err or "bogus" in err
    assert EXAMPLE.read_bytes() == before


def test_output_is_left_alone_where_nothing_was_read(detect, tmp_path):
    bad, target = write(tmp_path / "bad.json", "x"), write(tmp_path / "out.jsonl", "old")
    for options in ([], ["--strict"]):
        assert detect(bad, "--output", target, *options)[0] == 2
        assert target.read_text() == "old" and len(list(tmp_path.iterdir())) == 2


def test_an_error_of_the_detector_is_one_line_a_trajectory(run, tmp_path):
    known = write(tmp_path / "known.jsonl", json.dumps({"trajectory_id": "x", "predictions": []}))
    path = write(tmp_path / "runs.jsonl", "\n".join(json.dumps(chat(*TWICE, id=name)) for name in "xyz"))
    code, out, err = run("detect", "--json", "--detector", known, path)
    assert code == 2 and len(out.splitlines()) == 1 and len(err.splitlines()) == 2


# ---- evaluate -----------------------------------------------------------------------------------------


@pytest.fixture
def benchmark(tmp_path):
    folder = tmp_path / "release" / "auto_annotation" / "books"
    folder.mkdir(parents=True)
    simulations = [{"task_id": str(i), "trajectory_id": f"t{i}", "messages": list(TWICE)} for i in range(3)]
    write(folder / "final_traces.json", {"tasks": [], "simulations": simulations})
    labels = [
        {
            "trajectory_id": f"t{i}",
            "redundant_step_idx": [[2, 3]],
            "redundant_step_type": ["Duplicated Step"],
            "evidence_step_idx": [[0, 1]],
        }
        for i in range(3)
    ]
    write(folder / "annotation.json", labels)
    return tmp_path / "release"


def test_evaluate(run, benchmark, tmp_path):
    scores = tmp_path / "scores.json"
    code, out, err = run("evaluate", "--data", benchmark, "--detector", "heuristic", "--json", scores)
    assert (code, err) == (0, "") and "StepCls" in out and "Localisation" in out
    value = json.loads(scores.read_text())
    assert value["stepcls"]["accuracy"] == value["stepdet"]["p@1"] == value["triple"]["f1"] == 1.0
    assert value["evidenceret"]["n"] == 3 and value["by_domain"]["books"]["localisation"]["ap"] == 1.0


def test_evaluate_refuses_in_sample_figures(run, benchmark, tmp_path):
    from redclf.benchmark.data import load_benchmark
    from redclf.hashing import trajectory_hash

    hashes = [trajectory_hash(item.trajectory) for item in load_benchmark(benchmark)]
    header = json.dumps({"header": {"trained_on": hashes}})
    records = [json.dumps({"trajectory_id": f"t{i}", "predictions": []}) for i in range(3)]
    recorded = write(tmp_path / "seen.jsonl", "\n".join([header, *records]))
    code, out, err = run("evaluate", "--data", benchmark, "--detector", recorded)
    assert (code, out) == (2, "") and "IN-SAMPLE" in err and len(err.splitlines()) == 1
    code, out, _ = run("evaluate", "--data", benchmark, "--detector", recorded, "--allow-train")
    assert code == 0 and "IN-SAMPLE" in out


# ---- as a process -------------------------------------------------------------------------------------


def test_importing_is_light():
    code = (
        "import sys, redclf, redclf.cli; heavy = {'torch', 'numpy', 'onnxruntime', 'tokenizers', 'rich.table'};"
        "print(sorted(heavy & set(sys.modules)), callable(redclf.load), 'load' in dir(redclf))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[] True True"


def test_a_broken_pipe_is_no_error(tmp_path):
    record = json.dumps(chat(*TWICE, id="x"))
    path = write(tmp_path / "many.jsonl", "\n".join([record] * 3000))
    for options in ("", "--json"):
        command = f"{sys.executable} -m redclf detect --detector heuristic {options} {path} | head -n 1"
        done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, cwd=ROOT)
        assert (done.returncode, done.stderr) == (0, "") and len(done.stdout.splitlines()) == 1


def test_an_ascii_terminal(tmp_path):
    steps = (call("a", "bücher"), result("a", "x"), call("b", "bücher"), result("b", "x"))
    path = write(tmp_path / "a.json", chat(*steps))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "100"}
    table = subprocess_run("detect", path, "--detector", "heuristic", env=environment)
    assert table.returncode == 0 and table.stderr == "" and "b?cher" in table.stdout
    lines = subprocess_run("detect", path, "--detector", "heuristic", "--json", env=environment)
    assert json.loads(lines.stdout)["predictions"][0]["tool"] == "bücher"


@pytest.mark.shipped_model
@needs_model
def test_the_shipped_model(run):
    code, out, err = run("detect", EXAMPLE, "--json")
    assert (code, err) == (0, "")
    steps = {tuple(p["redundant_step_idx"]) for p in json.loads(out)["predictions"]}
    assert (12, 13) in steps and (22, 23) in steps
    code, out, _ = run("detect", EXAMPLE)
    assert code == 0 and "renew_loan" in out


@pytest.mark.shipped_model
@needs_model
def test_python(run):
    from redclf import Detector, load

    predictions = Detector().detect(load(EXAMPLE)[0])
    assert predictions and all(0 <= p.confidence <= 1 and p.reason for p in predictions)


def test_models_show_the_out_of_fold_scores(run, tmp_path, monkeypatch):
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    scores = {"stepcls": {"accuracy": 0.875}, "stepdet": {"at_least_one": {"mean": 0.5}}, "localisation": {"ap": 0.75}}
    (folder / "metrics.json").write_text(json.dumps({"out_of_fold": {"benchmark": {"both": scores}}}))
    monkeypatch.setattr("redclf.models.model_folders", lambda: (tmp_path,))
    code, out, _ = run("models")
    assert code == 0
    for text in ("small", "StepCls 87.5%", "StepDet 50.0%", "loc. AP 75.0%"):
        assert text in out
