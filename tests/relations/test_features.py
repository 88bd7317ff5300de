from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from traces import chain, parallel, said, step, trace, user
from work import work

from redclf.relations.candidates import Candidate
from redclf.relations.features import PAIR_NAMES, TARGET_NAMES, Relations, _running
from redclf.relations.views import TrajectoryView
from redclf.trajectory import Trajectory

ROOT = Path(__file__).resolve().parents[2]


def relate(trajectory: Trajectory, **more) -> Relations:
    return Relations(TrajectoryView(trajectory), **more)


def target(relations: Relations, place: int) -> dict[str, float]:
    return dict(zip(TARGET_NAMES, relations.target_features[place].tolist(), strict=True))


def pair(relations: Relations, place: int, evidence: tuple[int, ...]) -> dict[str, float]:
    at = [c.evidence for c in relations.candidates[place]].index(evidence)
    return dict(zip(PAIR_NAMES, relations.pair_features[place][at].tolist(), strict=True))


def equal(a: Relations, b: Relations) -> bool:
    return (
        a.target_features.tobytes() == b.target_features.tobytes()
        and a.candidates == b.candidates
        and all(x.tobytes() == y.tobytes() for x, y in zip(a.pair_features, b.pair_features, strict=True))
    )


BED = '{"id": "bed-1", "wing": "north-2", "keeper": "k_31"}'


@pytest.fixture(scope="module")
def run() -> Relations:
    return relate(
        trace(
            user("Water bed-1, please"),
            step("get_bed", "Error: the request timed out", {"bed": "bed-1"}),
            step("get_bed", BED, {"bed": "bed-1"}),
            step("get_keeper", '{"name": "k_31", "shift": "s_9"}', {"keeper": "k_31"}),
            step("get_bed", BED, {"bed": "bed-1"}),
            step("update_bed", '{"ok": "yes"}', {"bed": "bed-1", "by": "s_9"}),
            step("get_bed", BED, {"bed": "bed-1"}),
            said("Done: k_31 did bed-1"),
            user("Thanks"),
        )
    )


class TestValues:
    def test_shapes_and_names(self, run):
        assert run.target_features.shape == (6, len(TARGET_NAMES)) and run.target_features.dtype == np.float32
        assert all(p.shape == (len(c), len(PAIR_NAMES)) for p, c in zip(run.pair_features, run.candidates, strict=True))
        assert len(set(TARGET_NAMES)) == len(TARGET_NAMES) and len(set(PAIR_NAMES)) == len(PAIR_NAMES)

    def test_failure_with_its_retry(self, run):
        assert target(run, 0)["failure"] == 1.0 and target(run, 0)["same_call_after_n"] == 3
        retry = pair(run, 0, (3, 4))
        assert retry["same_args_is"] == 1 and retry["gap"] == 1 and retry["next_same_ok_rank"] == 0
        assert retry["other_failure"] == 0

    def test_repeat_without_change(self, run):
        values, first = target(run, 3), pair(run, 3, (3, 4))
        assert values["new_facts_f"] == 0 and values["cover_before_f"] == 1 and values["best_cover_gap"] == -2
        assert first["same_result_is"] == 1 and first["result_cover_f"] == 1 and first["writes_between_n"] == 0
        assert first["first_same_result_rank"] == 0

    def test_repeat_after_a_change_that_touches_it(self, run):
        first = pair(run, 5, (3, 4))
        assert first["writes_between_n"] == 1 and first["write_touches_is"] == 1
        assert target(run, 5)["writes_before_n"] == 1

    def test_use_of_what_a_step_brought(self, run):
        values = target(run, 2)
        assert values["use_args_n"] == 1 and values["use_write_n"] == 1 and values["use_first_gap"] == 2
        assert values["args_result_f"] == 1 and target(run, 1)["args_user_f"] == 1

    def test_what_was_asked(self, run):
        assert target(run, 1)["asked"] > 0 and target(run, 2)["asked"] == 0

    def test_message_and_policy_candidates(self, run):
        assert pair(run, 0, (0,))["first_user_is"] == 1 and pair(run, 0, (0,))["arg_ids_first_is"] == 1
        assert pair(run, 0, (2,))["own_is"] == 1
        assert pair(run, 0, (-1,))["kind"] == 3

    def test_parallel_calls(self):
        rule = "You may make only one tool call at a time."
        steps = (("a", {"n": "x1"}, "1"), ("b", {"n": "x2"}, "2"))
        bound = relate(trace(user("go"), parallel(*steps), policy=rule))
        free = relate(trace(user("go"), parallel(*steps)))
        assert target(bound, 0)["parallel_against_policy_is"] == 1 and target(bound, 1)["place_n"] == 1
        assert target(free, 0)["parallel_against_policy_is"] == 0 and target(free, 0)["group_n"] == 2
        assert pair(free, 0, (1, 3))["same_message_is"] == 1

    def test_steps_of_the_user_are_partners_only(self):
        found = relate(trace(user("go"), step("press", "on", requestor="user"), step("look", "on")))
        assert found.targets == [1] and pair(found, 0, (1, 2))["user_is"] == 1

    def test_running_bests(self):
        before, after = _running([1.0, 3.0, 2.0])
        np.testing.assert_array_equal(before, [np.nan, 1.0, 3.0])
        np.testing.assert_array_equal(after, [3.0, 2.0, np.nan])

    def test_mates_as_a_plain_search_finds_them(self):
        found = relate(chain(60, 2))
        steps = found.view.steps
        for place, ordinal in enumerate(found.targets):
            mates = [s.ordinal for s in steps if s.tool == steps[ordinal].tool and s.turn == steps[ordinal].turn]
            scores = [found.score[s] for s in mates]
            values = target(found, place)
            assert values["mates_n"] == len(mates) and values["mates_later_n"] == sum(s > ordinal for s in mates)
            assert values["mates_best_gap"] == mates[int(np.argmax(scores))] - ordinal
            earlier = [found.score[s] for s in mates if s < ordinal]
            np.testing.assert_equal(values["mates_best_before"], max(earlier, default=np.nan))
            group = [found.score[s.ordinal] for s in steps if s.call_index == steps[ordinal].call_index]
            assert values["group_best_diff"] == max(group) - found.score[ordinal]


class TestExtra:
    def test_extra_candidate_comes_last(self, run):
        extra = Candidate("joint", (1, 2), (3, 4, 5, 6))
        wider = relate(run.view.trajectory, extra={3: extra})
        assert wider.targets == run.targets
        for place, ordinal in enumerate(run.targets):
            more = int(ordinal == 3)
            assert (wider.candidates[place][-1] == extra) == bool(more)
            assert wider.pair_features[place].shape[0] == run.pair_features[place].shape[0] + more


class TestNoLeak:
    def test_metadata_and_ids_change_nothing(self, tiny_items):
        for item in tiny_items[::5]:
            original = item.trajectory
            names: dict[str | None, str] = {}

            def renamed(id, names=names):
                return names.setdefault(id, f"call-{len(names) * 7}") if id is not None else None

            messages = tuple(
                replace(
                    message,
                    tool_calls=tuple(replace(call, id=renamed(call.id)) for call in message.tool_calls),
                    tool_call_id=renamed(message.tool_call_id),
                    usage={"prompt_tokens": 7},
                )
                for message in original.messages
            )
            other = Trajectory(
                "another", messages, original.policy, domain="x", task_id="y", subset="z", reward=0.0, source="w",
                extra={"tasks": ["expected"], "error": True},
            )  # fmt: skip
            assert equal(relate(original), relate(other))

    def test_alone_and_among_others(self, tiny_items):
        before = relate(tiny_items[0].trajectory)
        for item in tiny_items[1:4]:
            relate(item.trajectory)
        assert equal(before, relate(tiny_items[0].trajectory))


DIGEST = """
import hashlib, sys
sys.path[:0] = [{root!r}, {helpers!r}]
from traces import chain
from redclf.benchmark.data import load_benchmark
from redclf.relations.features import Relations
from redclf.relations.views import TrajectoryView
digest = hashlib.sha256()
trajectories = [item.trajectory for item in load_benchmark({data!r})][:8] + [chain(130, 3)]
for trajectory in trajectories:
    found = Relations(TrajectoryView(trajectory))
    digest.update(found.target_features.tobytes())
    digest.update(repr(found.candidates).encode())
    for pairs in found.pair_features:
        digest.update(pairs.tobytes())
print(digest.hexdigest())
"""


def test_same_for_every_hash_seed(tiny_root):
    code = DIGEST.format(root=str(ROOT), helpers=str(ROOT / "tests" / "helpers"), data=str(tiny_root))
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "4242")
    }  # fmt: skip
    assert len(found) == 1 and len(found.pop().strip()) == hashlib.sha256().digest_size * 2


class TestRobust:
    def test_nothing_to_relate(self):
        for trajectory in (trace(), trace(user("hi")), trace(user("hi"), step("press", "on", requestor="user"))):
            found = relate(trajectory)
            assert found.targets == [] and found.target_features.shape == (0, len(TARGET_NAMES))

    def test_single_step(self):
        found = relate(trace(step("a", "b")))
        assert [c.kind for c in found.candidates[0]] == ["message", "policy"]

    @pytest.mark.parametrize("arguments", ["text", 7, None, [1, {"a": 2}], {"x": float("nan")}, {"x": "\ud800"}])
    def test_any_arguments(self, arguments):
        found = relate(trace(user("go"), step("a", "b1", arguments), step("a", "b1", arguments)))
        assert pair(found, 1, (1, 2))["same_args_is"] == 1

    @pytest.mark.parametrize("result", ["\ud800", "x" * 5_000_000, "[" * 100_000, "id_1 " * 1_000_000])
    def test_any_result(self, result):
        found = relate(trace(user("go"), step("a", result), step("a", result)))
        assert pair(found, 1, (1, 2))["same_result_is"] == 1

    def test_no_infinite_values(self):
        for trajectory in (chain(60, 3), trace(user(""), step("a", "")), trace(*[step("a", "")] * 3)):
            found = relate(trajectory)
            assert not np.isinf(found.target_features).any()
            assert not any(np.isinf(p).any() for p in found.pair_features)

    def test_many_parallel_calls_in_one_message(self):
        found = relate(chain(200, 200))
        assert len(found.targets) == 200 and found.view.steps[0].group == 200

    @pytest.mark.parametrize("per_message", [1, 100_000], ids=["chain", "parallel"])
    def test_work_grows_with_the_length_and_no_faster(self, per_message):
        counts = [work(lambda n=n: relate(chain(n, per_message))) for n in (400, 1600)]
        assert counts[1] < 5 * counts[0]

    @pytest.mark.slow
    def test_three_thousand_steps(self):
        assert len(relate(chain(3000)).targets) == 3000
