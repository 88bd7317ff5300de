from __future__ import annotations

import multiprocessing
from dataclasses import replace

import pytest
from deadly import NOTES, die_once_or_always
from traces import chain, step, trace, user

from redclf.engine.local import score_all
from redclf.engine.scorer import Counts, Scorer, ScorerSettings, key_of, scored_before
from redclf.errors import ModelError, RedclfError

HEURISTIC = ScorerSettings("heuristic")


def runs(count):
    return [replace(chain(3 + n % 5), id=f"run-{n}") for n in range(count)]


@pytest.fixture
def deaths(tmp_path, monkeypatch):
    monkeypatch.setenv(NOTES, str(tmp_path))
    return replace(HEURISTIC, render=die_once_or_always)


def test_processes_give_what_one_process_gives(tiny_model, tiny_items):
    trajectories = [item.trajectory for item in tiny_items]
    settings = ScorerSettings("cross-encoder", str(tiny_model), threshold=0.0)
    one = list(score_all(trajectories, Scorer(settings)))
    assert len(one) == len(trajectories) and any(outcome.record["predictions"] for outcome in one)
    assert list(score_all(trajectories, Scorer(settings), workers=2)) == one


def test_a_process_that_dies_loses_nothing(deaths):
    trajectories = runs(12)
    trajectories[1] = replace(trajectories[1], id="once-1")
    trajectories[7] = replace(trajectories[7], id="once-7")
    found = list(score_all(trajectories, Scorer(deaths), workers=2))
    assert [outcome.record["trajectory_id"] for outcome in found] == [run.id for run in trajectories]
    assert not any(outcome.error for outcome in found)


def test_a_trajectory_that_always_kills_is_reported_and_the_others_are_scored(deaths):
    trajectories = [replace(run, source=f"file, line {n}") for n, run in enumerate(runs(9))]
    trajectories[4] = replace(trajectories[4], id="always")
    found = list(score_all(trajectories, Scorer(deaths), workers=2))
    assert [outcome.record is None for outcome in found] == [n == 4 for n in range(9)]
    assert "file, line 4: the process that scored it died" in str(found[4].error)


def test_reading_is_not_far_ahead():
    read = []

    def reading():
        for run in runs(100):
            read.append(run.id)
            yield run

    outcomes = score_all(reading(), Scorer(HEURISTIC), workers=2)
    next(outcomes)
    assert len(read) < 10
    outcomes.close()
    assert len(read) < 10 and not multiprocessing.active_children()


@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_scored_before_is_counted_and_not_scored(workers):
    trajectories = runs(6)
    done = {key_of(trajectories[n]): [trajectories[n].interactions[0].step] for n in (0, 3)}
    found = list(score_all(trajectories, Scorer(HEURISTIC), workers, done))
    assert [outcome.record is None for outcome in found] == [n in (0, 3) for n in range(6)]
    assert found[3] == scored_before(trajectories[3], done[key_of(trajectories[3])])
    assert found[3].counts.redundant == 1 and found[3].counts.redundant_tokens > 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_model_that_is_not_there(workers, tmp_path):
    with pytest.raises(ModelError):
        next(score_all(runs(1), Scorer(ScorerSettings("cross-encoder", str(tmp_path))), workers))
    with pytest.raises(RedclfError, match="expected a detector"):
        next(score_all(runs(1), Scorer(ScorerSettings("other")), workers))


def test_counts():
    run = trace(user("hi"), step("f", "abc" * 100), step("g", "x"))
    counts = Counts.of(run, [(1, 2), (1, 2)])
    assert (counts.steps, counts.redundant) == (2, 1) and 0 < counts.redundant_tokens < counts.tokens


def test_arguments_nested_too_deep_are_one_error():
    deep: dict = {}
    inner = deep
    for _ in range(5_000):
        inner["a"] = inner = {}
    trajectories = [trace(user("go"), step("f", "x", deep), name="deep"), chain(3)]
    first, second = score_all(trajectories, Scorer(HEURISTIC))
    assert "deep: unexpected RecursionError" in str(first.error) and second.record is not None


@pytest.mark.parametrize("workers", [1, 2])
def test_a_mistake_of_the_program_is_an_outcome(workers, tiny_model):
    bad = replace(chain(3), messages=("no message",), id="odd")
    (found,) = score_all([bad], Scorer(HEURISTIC), workers)
    assert found.record is None and "odd: unexpected" in str(found.error)
