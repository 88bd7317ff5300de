from __future__ import annotations

import json
from dataclasses import replace

import pytest

from redclf.benchmark.data import load_splits
from redclf.llm.config import ConfigError
from redclf.llm.context import ExemplarPool, load_plans
from redclf.llm.replies import CATEGORY
from redclf.taxonomy import CATEGORIES


def test_exemplars_come_from_other_folds_and_tasks(tiny_root, tiny_items):
    folds = load_splits(tiny_root)
    pool = ExemplarPool.load(tiny_root, own_data=True)
    groups = {item.id: item.group for item in tiny_items}
    for item in tiny_items:
        picked = pool.pick(item.trajectory, 4)
        names = [example.trajectory.id for example in picked]
        assert len(set(names)) == 4
        assert all(folds[name] != folds[item.id] and groups[name] != item.group for name in names)
        assert [example.records[example.shown][CATEGORY] for example in picked] == list(CATEGORIES)
    assert [e.trajectory.id for e in pool.pick(item.trajectory, 4)] == names


def test_exemplars_of_other_data_leave_out_the_judged_task_and_content(tiny_items):
    pool = ExemplarPool(tiny_items, None)
    judged = tiny_items[0].trajectory
    copy = replace(judged, id="a copy", task_id="another")
    shown = {example.trajectory.id for example in pool.pick(copy, 20)}
    assert judged.id not in shown


def test_without_a_fold_or_enough_others(tiny_root, tiny_items):
    pool = ExemplarPool.load(tiny_root, own_data=True)
    with pytest.raises(ConfigError, match="expected a fold"):
        pool.pick(replace(tiny_items[0].trajectory, id="unknown"), 4)
    with pytest.raises(ConfigError, match="expected 400 exemplars"):
        pool.pick(tiny_items[0].trajectory, 400)


def test_plans(tmp_path):
    folder = tmp_path / "automated_annotation" / "dock"
    folder.mkdir(parents=True)
    (folder / "annotation.json").write_text("[]")
    actions = [{"name": "move", "arguments": {"crate": 7}, "info": None}, {"name": "look", "requestor": "user"}]
    tasks = [{"id": 5, "evaluation_criteria": {"actions": actions}}, {"id": "6"}, "odd", {"evaluation_criteria": None}]
    (folder / "final_traces.json").write_text(json.dumps({"tasks": tasks, "simulations": []}))
    assert load_plans(tmp_path) == {
        ("automated_annotation", "dock", "5"): [
            {"by": "agent", "tool": "move", "arguments": {"crate": 7}},
            {"by": "user", "tool": "look", "arguments": None},
        ]
    }
