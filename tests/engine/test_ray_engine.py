from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from deadly import NOTES, die_once_or_always
from local_ray import local_cluster

from redclf.engine.local import score_all
from redclf.engine.ray_engine import score_files
from redclf.engine.scorer import Scorer, ScorerSettings, key_of
from redclf.errors import RedclfError
from redclf.readers import iter_trajectories

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory):
    os.environ[NOTES] = str(tmp_path_factory.mktemp("deaths"))
    places = os.pathsep.join(map(str, (ROOT, ROOT / "tests" / "helpers")))
    with local_cluster(**{NOTES: os.environ[NOTES], "PYTHONPATH": places}):
        yield
    del os.environ[NOTES]


def message(role, content, **more):
    return {"role": role, "content": content, **more}


def chat(number, name=None):
    messages = [message("user", "go")]
    for _ in range(2):
        call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": json.dumps({"n": number})}}
        messages += [
            message("assistant", None, tool_calls=[call]),
            message("tool", f"found {number}", tool_call_id="c"),
        ]
    return {"id": name or f"run-{number}", "messages": messages}


@pytest.fixture
def files(tmp_path):
    made = []
    for shard in range(4):
        path = tmp_path / f"shard-{shard}.jsonl"
        lines = [json.dumps(chat(10 * shard + n)) for n in range(5)]
        if shard == 2:
            lines.insert(1, "{damaged")
        path.write_text("\n".join(lines))
        made.append(path)
    return made


def locally(files, settings):
    errors = []
    trajectories = (run for path in files for run in iter_trajectories(path, on_error=errors.append))
    return list(score_all(trajectories, Scorer(settings))), errors


@pytest.mark.parametrize("detector", ["heuristic", "cross-encoder"])
def test_same_results_in_the_same_order(files, tiny_model, detector):
    settings = ScorerSettings(detector, str(tiny_model) if detector == "cross-encoder" else None, threads=1)
    found = list(score_files(files, Scorer(settings), "auto", 2, {}))
    outcomes, errors = locally(files, settings)
    assert [item for item in found if not isinstance(item, RedclfError)] == outcomes
    assert [str(item) for item in found if isinstance(item, RedclfError)] == list(map(str, errors)) and len(errors) == 1
    names = [outcome.record["trajectory_id"] for outcome in outcomes]
    assert names == [f"run-{10 * shard + n}" for shard in range(4) for n in range(5)]


def test_a_worker_that_is_killed_loses_nothing(files):
    files[1].write_text("\n".join(json.dumps(chat(n, f"once-{n}" if n == 12 else None)) for n in range(10, 15)))
    settings = ScorerSettings("heuristic", render=die_once_or_always)
    found = list(score_files(files, Scorer(settings), "auto", 2, {}))
    assert len(found) == 21 and (Path(os.environ[NOTES]) / "once-12").exists()
    assert [item.drawing for item in found if not isinstance(item, RedclfError)][7] == "once-12"


def test_what_was_scored_before_is_left_out(files):
    first = next(iter_trajectories(files[0]))
    done = {key_of(first): [first.interactions[0].step]}
    found = list(score_files(files[:1], Scorer(ScorerSettings("heuristic")), "auto", 2, done))
    assert found[0].record is None and found[0].counts.redundant == 1 and found[1].record is not None
