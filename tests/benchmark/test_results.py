import json
import math

import pytest
from scoring_helpers import (
    RawScripted,
    Scripted,
    gold_step,
    make_item,
    make_trajectory,
    prediction,
    record,
)

from redclf.benchmark.results import (
    ResultFileDetector,
    read_results,
    result_record,
    write_results,
)
from redclf.detectors.base import Retrieval
from redclf.errors import TraceError
from redclf.taxonomy import DUPLICATED


def scripted():
    return Scripted(
        {"t": [prediction(confidence=1 / 3)]},
        classes={(3, 4): DUPLICATED},
        retrievals={(3, 4): Retrieval(DUPLICATED, (1, 2), 0.7)},
        scores={(1, 2): 0.1, (3, 4): 1 / 3, (5, 6): 0.0, (7, 8): 0.2},
    )


def test_result_files_play_back(tmp_path):
    item = make_item([gold_step((3, 4))])
    path = tmp_path / "oof" / "run.jsonl"
    write_results(path, {"command": "x", "seed": 1}, [result_record(scripted(), item)])
    assert [p.name for p in path.parent.iterdir()] == ["run.jsonl"]
    played = ResultFileDetector(path)
    assert played.name == "run"
    assert played.header == {"command": "x", "seed": 1}
    assert played.ids == {"t"}
    assert played.detect(item.trajectory)[0].confidence == 1 / 3
    assert played.detect(item.trajectory, threshold=0.5) == []
    assert played.classify(item.trajectory, (3, 4), (1, 2)) == {DUPLICATED: 1.0}
    assert played.classify(item.trajectory, (5, 6), (1, 2)) == {}
    assert played.category(item.trajectory, (3, 4)) == {DUPLICATED: 1.0}
    assert played.retrieve(item.trajectory, (3, 4)) == Retrieval(DUPLICATED, (1, 2), 0.7)
    assert played.redundancy(item.trajectory)[3, 4] == 1 / 3
    assert played.trained_on() == frozenset()


def test_result_files_keep_the_best_candidate_below_the_threshold(tmp_path):
    item = make_item([gold_step((3, 4))])
    quiet = Scripted(best={"t": [prediction(confidence=0.2)]})
    write_results(tmp_path / "a.jsonl", {}, [result_record(quiet, item)])
    played = ResultFileDetector(tmp_path / "a.jsonl")
    assert played.detect(item.trajectory) == []
    assert played.detect(item.trajectory, threshold=0.0, top_k=1)[0].step == (3, 4)


def test_result_files_keep_malformed_records_and_failures(tmp_path):
    raw = RawScripted({"t": [record(confidence=math.nan), "prose"], "u": None})
    lines = [result_record(raw, make_item(name="t")), result_record(raw, make_item(name="u"))]
    write_results(tmp_path / "a.jsonl", {}, lines)
    played = ResultFileDetector(tmp_path / "a.jsonl")
    assert played.detect_records(make_trajectory(name="t")) == [record(confidence=None), "prose"]
    assert played.detect_records(make_trajectory(name="u")) is None
    assert played.detect(make_trajectory(name="t")) == []


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.jsonl"
    write_results(path, {}, [{"trajectory_id": "t"}])

    def broken():
        yield {"trajectory_id": "u"}
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_results(path, {}, broken())
    assert set(read_results(path)[1]) == {"t"}
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a line per trajectory"),
        ("{", "line 1: expected JSON"),
        ("[1]", "line 1: expected an object"),
        ('{"trajectory_id": 3}', "trajectory_id: expected a name"),
        ('{"trajectory_id": "t"}\n{"trajectory_id": "t"}', "line 2: trajectory 't' occurs twice"),
        ('{"trajectory_id": "t", "predictions": 3}', "predictions: expected a list"),
        ('{"trajectory_id": "t", "stepcls": [3]}', "stepcls: expected a list of objects"),
        ('{"trajectory_id": "t", "redundancy": {"a": 1}}', "redundancy: expected"),
        ('{"trajectory_id": "t", "redundancy": {"1,2": 7}}', "redundancy: expected"),
    ],
)
def test_result_file_errors_name_the_line(tmp_path, text, message):
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(TraceError, match=message) as caught:
        ResultFileDetector(path)
    assert str(caught.value).startswith(str(path))


def test_a_result_file_is_for_its_own_trajectories(tmp_path):
    path = tmp_path / "a.jsonl"
    write_results(path, {}, [result_record(scripted(), make_item())])
    played = ResultFileDetector(path)
    with pytest.raises(TraceError, match="no record of trajectory 'other'"):
        played.detect(make_trajectory(name="other"))
    with pytest.raises(TraceError, match="other content"):
        played.detect(make_trajectory(steps=3))


def test_lines_are_strict_json(tmp_path):
    write_results(tmp_path / "a.jsonl", {}, [{"trajectory_id": "t", "x": [math.inf, float("nan")]}])
    last = (tmp_path / "a.jsonl").read_text().splitlines()[-1]
    assert json.loads(last)["x"] == [None, None]
