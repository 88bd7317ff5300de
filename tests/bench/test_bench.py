from __future__ import annotations

import json

import pytest

from redclf.bench import run
from redclf.bench.data import synthetic, write_lines
from redclf.bench.encoder import CountingDetector, operations
from redclf.bench.machine import describe, fp32_rate, install_bytes, int8_rate, median_seconds
from redclf.benchmark.data import spread
from redclf.cli import main
from redclf.commands.bench import rows
from redclf.readers import load


@pytest.fixture(scope="module")
def figures(tiny_model, tiny_items):
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "LENGTHS", (4, 8, 16))
        settings = run.BenchSettings(str(tiny_model), limit=3, pairs=6, starts=1, workers=2)
        found = run.bench([item.trajectory for item in tiny_items], tiny_items, settings, said.append)
    return found, said


def test_every_figure_is_there_and_can_be_written(figures):
    found, said = figures
    assert json.loads(json.dumps(found, allow_nan=False)) == found and len(said) >= 5
    latency = found["latency"]
    assert found["throughput"] > 0 and 0 < latency["median"] <= latency["p95"]
    assert found["throughput_workers"]["throughput"] > 0 and found["throughput_workers"]["start_seconds"] > 0
    assert found["cold"]["seconds"]["best"] > 0 and 20 < found["cold"]["megabytes_one"] < 2_000
    assert [row["steps"] for row in found["growth"]["rows"]] == [4, 8, 16]
    tasks = found["all_tasks"]
    assert tasks["trajectories"] == 3 and tasks["steps"] > 0
    assert tasks["minutes_of_the_benchmark"] == pytest.approx(tasks["seconds"] * 1920 / 3 / 60)


def test_ratios_are_of_times_and_counts_of_the_same_run(figures):
    encoder = figures[0]["encoder"]
    times, ratios = encoder["seconds_a_pair"], encoder["ratios"]
    assert encoder["pairs_in_all"] > encoder["pairs_read"] > 0
    assert ratios["pruned against all pairs"] == encoder["pairs_in_all"] / encoder["pairs_read"]
    assert ratios["int8 against fp32 torch, both in batches of 16"] == pytest.approx(
        times["fp32 torch, batches of 16"] / times["int8, batches of 16"]
    )
    assert ratios["int8 pruned against naive fp32 torch over all pairs"] == pytest.approx(
        times["fp32 torch, one by one"] / times["int8, as detect does"] * ratios["pruned against all pairs"]
    )
    limit = encoder["limit"]
    least = limit["int8_operations"] / limit["int8_rate"] + limit["fp32_operations"] / limit["fp32_rate"]
    assert limit["seconds"] == pytest.approx(least) and limit["hidden"] == 32


def test_every_figure_is_shown(figures):
    shown = dict(rows({**figures[0], "data": "d"}))
    assert len(shown) >= 14 and all(shown.values())


def test_operations_by_hand():
    # One layer, hidden size 2, three tokens. In int8 8 h^2 = 32 a token, in fp32 4 h^2 + 2 L h = 28.
    assert operations(3, 1, 2) == (2 * 3 * 32, 2 * 3 * 28)
    assert operations(3, 5, 2) == (5 * 192, 5 * 168)


def test_growth_exponent():
    assert run._exponent([(n, 3.0 * n**2) for n in (20, 50, 100)]) == pytest.approx(2)
    assert run._exponent([(20, 0), (50, 1), (100, 2)]) is None


def test_made_runs():
    one = synthetic(40)
    assert one == synthetic(40) and one != synthetic(40, 1)
    assert len(one.assistant_interactions) == 40 and not one.pairing.unanswered_calls


def test_made_runs_survive_being_written(tmp_path):
    trajectories = [synthetic(9, n) for n in range(3)]
    write_lines(trajectories, tmp_path / "runs.jsonl")
    found = load(tmp_path / "runs.jsonl")
    assert [[m.content for m in r.messages] for r in found] == [[m.content for m in r.messages] for r in trajectories]


def test_spread():
    assert spread(range(10), 3) == [0, 3, 6] and spread(range(2), 9) == [0, 1]


def test_the_counting_detector_says_the_same(tiny_model, tiny_items):
    from redclf.detectors.cross_encoder import CrossEncoderDetector

    counting = CountingDetector(tiny_model)
    found = counting.detect(tiny_items[0].trajectory, threshold=0.0)
    assert found == CrossEncoderDetector(tiny_model).detect(tiny_items[0].trajectory, threshold=0.0)
    assert counting.pairs and len(counting.every_pair(tiny_items[0].trajectory)) > len(counting.pairs)


def test_machine():
    found = describe()
    assert found["cores"] >= 1 and found["versions"]["numpy"]
    assert fp32_rate(1) > 0 and int8_rate(1) > 0 and median_seconds(lambda: None, 3) >= 0
    assert install_bytes("rich") > install_bytes("pygments") > 100_000 and install_bytes("no-such-package") is None


def test_command(tiny_model, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(run, "LENGTHS", (4, 8, 16))
    target = tmp_path / "bench.json"
    arguments = ["bench", "--model", str(tiny_model), "--limit", "2", "--pairs", "4", "--starts", "1", "--workers", "1"]
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--json", str(target)])
    out = capsys.readouterr().out
    assert not stop.value.code and "trajectories/s" in out and "made trajectories" in out
    found = json.loads(target.read_text())
    assert found["trajectories"] == 2 and "all_tasks" not in found and "throughput_workers" not in found


@pytest.mark.parametrize("more", [["--limit", "0"], ["--pairs", "-1"], ["--data", "none"], ["--model", "none"]])
def test_wrong_options(more, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["bench", *more])
    err = capsys.readouterr().err
    assert stop.value.code == 2 and "expected" in err and err.count("\n") == 1
