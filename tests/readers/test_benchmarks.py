"""The release layout, tau2-bench and tau-bench."""

from __future__ import annotations

import pytest

from redclf.errors import TraceError
from redclf.readers import iter_trajectories, load
from redclf.readers.redundancybench import read_simulations

from .samples import chat, release, tau2, tau_run

HUMAN = "human_annotation/lamps/final_traces.json"
AUTOMATED = "automated_annotation/lamps/final_traces.json"


def test_human_release(write):
    (trajectory,) = load(write(release(), HUMAN))
    assert trajectory.id == "human_annotation:lamps:7"
    assert (trajectory.subset, trajectory.domain) == ("human_annotation", "lamps")
    assert (trajectory.task_id, trajectory.policy) == ("7", "Be kind.")
    assert [item.step for item in trajectory.interactions] == [(2, 3), (4, 5)]
    assert [item.step for item in trajectory.assistant_interactions] == [(2, 3)]
    assert trajectory.messages[5].requestor == "user"
    assert trajectory.messages[2].usage == {"prompt_tokens": 900, "completion_tokens": 20}


def test_automated_release(write):
    path = write(release(trajectory_id="m:lamps:2", source_id="m", sim_index=2), AUTOMATED)
    (trajectory,) = read_simulations(path)
    assert (trajectory.id, trajectory.subset) == ("m:lamps:2", "automated_annotation")


def test_release_holds_nothing_that_gives_the_labels_away(write):
    (trajectory,) = load(write(release(synthetic=[1], trajectory_id="a"), HUMAN))
    assert "secret" not in repr(trajectory)
    assert "synthetic" not in repr(trajectory)
    assert "error" not in repr(trajectory.messages)


def test_release_file_elsewhere_has_no_domain(write):
    (trajectory,) = load(write(release(), "copy.json"))
    assert (trajectory.id, trajectory.subset, trajectory.domain) == ("7", None, None)


def test_release_path_may_be_relative(write, monkeypatch):
    monkeypatch.chdir(write(release(), HUMAN).parent)
    (trajectory,) = load("final_traces.json")
    assert trajectory.domain == "lamps"


def test_release_refuses_a_repeated_trajectory(write):
    value = release()
    value["simulations"] *= 2
    with pytest.raises(TraceError, match="record 1: expected unique trajectories"):
        load(write(value, HUMAN))


def test_release_keeps_system_messages(write):
    (trajectory,) = load(write(release(messages=chat(), policy=None), HUMAN))
    assert trajectory.policy == "Lend books only to members."
    assert len(trajectory.messages) == 7


def test_read_simulations_reports_and_goes_on(write):
    value = release()
    value["simulations"] += [5, {"task_id": "8", "messages": []}]
    errors: list[TraceError] = []
    assert len(list(read_simulations(write(value, HUMAN), errors.append))) == 1
    assert [error.where for error in errors] == ["record 1", "record 2"]


def test_tau2(write):
    (trajectory,) = load(write(tau2()))
    assert (trajectory.id, trajectory.task_id, trajectory.reward) == ("run-1", "7", 1.0)
    assert trajectory.extra == {"trial": "0", "termination_reason": "user_stop"}
    assert len(trajectory.interactions) == 2
    assert "secret" not in repr(trajectory)


def test_tau2_policy_and_domain_from_info(write):
    value = tau2(policy=None, reward_info=None)
    value["info"] = {"environment_info": {"domain_name": "lamps", "policy": "Shared."}}
    (trajectory,) = load(write(value))
    assert (trajectory.policy, trajectory.domain) == ("Shared.", "lamps")
    assert trajectory.reward is None


@pytest.mark.parametrize("reward", ["1", [], float("nan"), float("inf"), 10**400])
def test_tau2_bad_reward(write, reward):
    with pytest.raises(TraceError, match="record 0: reward: expected a finite number"):
        load(write(tau2(reward_info={"reward": reward})))


def test_tau_bench(write):
    runs = [tau_run(), tau_run(trial=2), tau_run(trial=2), tau_run(trial=None)]
    trajectories = load(write(runs))
    assert [item.id for item in trajectories] == ["3:1", "3:2", "3:2#2", "3"]
    assert trajectories[0].policy == "Lend books only to members."
    assert trajectories[0].failed
    assert [item.step for item in trajectories[0].interactions] == [(2, 4), (2, 3)]
    assert "secret" not in repr(trajectories)


def test_tau_bench_bad_run(write):
    errors: list[TraceError] = []
    runs = [tau_run(), tau_run(task_id=None), tau_run(traj="x"), 4, tau_run(trial=9)]
    good = list(iter_trajectories(write(runs), on_error=errors.append))
    assert [item.id for item in good] == ["3:1", "3:9"]
    assert [error.where for error in errors] == ["record 1", "record 2", "record 3"]


@pytest.mark.parametrize("name", ["redundancybench", "tau2"])
@pytest.mark.parametrize("value", [[], {}, {"simulations": 3}, {"simulations": []}, 5])
def test_forced_format_on_another_layout(write, name, value):
    with pytest.raises(TraceError, match="list `simulations`"):
        load(write(value), name)
