from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from redclf.taxonomy import ABNORMAL, DUPLICATED, EXPLORATORY
from train import online
from train.stacking import Stack

CONFIG = Path(__file__).parents[2] / "configs" / "smoke.yaml"


def arguments(root, place, *more):
    return ["--config", str(CONFIG), "--data", str(root), "--output", str(place / "results"),
            "--runs", str(place / "runs"), "--workers", "1", "--folds", "1", *more]  # fmt: skip


@pytest.fixture(scope="module")
def done(tiny_root, tmp_path_factory):
    place = tmp_path_factory.mktemp("online")
    fits = []
    with pytest.MonkeyPatch.context() as patch:
        fit = Stack.fit
        patch.setattr(Stack, "fit", lambda self, without: fits.append((self, without)) or fit(self, without))
        assert online.main(arguments(tiny_root, place)) == 0
    return place, fits


@pytest.fixture(scope="module")
def records(done):
    (path,) = (done[0] / "runs" / "smoke-online").glob("answers-1-*.json")
    return json.loads(path.read_text())


def test_a_cut_view_holds_what_a_loop_has_and_no_more(tiny_items):
    for item in tiny_items[:8]:
        steps = item.trajectory.interactions
        ordinals = [step.ordinal for step in item.trajectory.assistant_interactions]
        asked = online.ask(item, ordinals, 2)
        for place, ordinal in enumerate(ordinals):
            end = steps[min(ordinal + 2, len(steps) - 1)].result_index
            assert max(max(evidence) for evidence in asked.table.evidence[place]) <= end
        whole = online.ask(item, ordinals, None)
        assert len(whole.table.evidence[0]) > len(asked.table.evidence[0])
        # The last but two steps see the whole run but for what was said after the last result.
        assert [len(p) for p in asked.table.pairs[:1]] != [len(p) for p in whole.table.pairs[:1]]


def test_hidden_evidence_is_not_asked_for(tiny_items):
    hidden = 0
    for item in tiny_items:
        ordinals = [item.trajectory.interaction_at(step.step).ordinal for step in item.gold]
        short, whole = online.ask(item, ordinals, 0), online.ask(item, ordinals, None)
        for step, near, far in zip(item.gold, short.given, whole.given, strict=True):
            assert far is not None and whole.table.evidence[far[0]][far[1]] == step.evidence
            assert (near is None) == (step.category in (ABNORMAL, EXPLORATORY))
            hidden += near is None
    assert hidden


def test_evidence_that_is_no_candidate_is_judged_in_a_row_of_its_own(tiny_items):
    from dataclasses import replace

    item = next(i for i in tiny_items if any(g.category == DUPLICATED for g in i.gold))
    label = next(g for g in item.gold if g.category == DUPLICATED)
    label = replace(label, evidence=(*label.evidence, label.evidence[0] + 2, label.evidence[1] + 2))
    item = replace(item, gold=(label,))
    ordinal = item.trajectory.interaction_at(label.step).ordinal
    asked = online.ask(item, [ordinal], 2)
    (given,) = asked.given
    assert given[0] == 1 and len(asked.table.pairs) == 2 and asked.table.evidence[1][given[1]] == label.evidence


def test_every_target_of_the_fold_is_asked_once(records, tiny_items, tiny_root):
    from train.command import load_items

    _, folds = load_items([str(tiny_root)])
    test = [item for item in tiny_items if folds[item.id] == 1]
    expected = {(item.id, step.step) for item in test for step in item.trajectory.assistant_interactions}
    assert {(r["id"], tuple(r["step"])) for r in records} == expected and len(records) == len(expected)
    assert all(set(record["rows"]) == set(online.ROWS) for record in records)


def test_nothing_of_the_fold_is_trained_on_and_only_one_model_has_cuts(done):
    kinds = set()
    for stack, without in done[1]:
        tables = stack._tables(without, inside=False)
        assert 1 in without and all(stack.folds[table.origin] != 1 for table in tables)
        kinds.add(any("#cut" in table.id for table in tables))
    assert kinds == {True, False}


def test_reported(done, records):
    found = json.loads((done[0] / "results" / "online-smoke.json").read_text())["benchmark"]
    assert found["targets"] == len(records) and found["gold"] == sum(r["gold"] is not None for r in records)
    assert 0 < found["gold with evidence inside the cut"] <= found["gold"]
    assert len(found["rows"]["online"]["AP"]["ci"]) == 2
    assert found["by_domain"].keys() == {"archive", "greenhouse", "harbour", "observatory"}
    text = (done[0] / "results" / "online-smoke.md").read_text()
    assert "online - whole run" in text and "train.online" in text


def test_a_second_run_asks_nothing(done, tiny_root, monkeypatch):
    monkeypatch.setattr(online, "run_fold", lambda *a: pytest.fail("asked again"))
    assert online.main(arguments(tiny_root, done[0])) == 0


def test_drawn_steps_stand_for_all(tiny_items):
    item = tiny_items[0]
    every, drawn = online.choose_targets(item, None, 0), online.choose_targets(item, 2, 0)
    gold = {item.trajectory.interaction_at(step.step).ordinal for step in item.gold}
    assert {ordinal for ordinal, _ in drawn} >= gold and len(drawn) == len(gold) + 2
    assert sum(w for _, w in drawn) == pytest.approx(len(every)) and all(w == 1.0 for _, w in every)


def answers(weights=(1.0, 1.0, 1.0, 2.0)):
    rows = [
        {"p": 0.9, "alarm": True, "category": True, "stepcls": True, "evidence": True},
        {"p": 0.8, "alarm": True},
        {"p": 0.7, "alarm": False, "category": True, "stepcls": False, "evidence": False},
        {"p": 0.1, "alarm": False},
    ]
    records = [
        {"id": f"t{i}", "weight": w, "gold": "x" if "category" in r else None, "seen": i == 0,
         "rows": dict.fromkeys(online.ROWS, r)}
        for i, (r, w) in enumerate(zip(rows, weights, strict=True))
    ]  # fmt: skip
    return online.Answers(records, {f"t{i}": ("d", str(i)) for i in range(4)})


def test_figures_by_hand():
    found = {name: float(value) for name, value in answers().figures("online").items()}
    assert found == pytest.approx(
        {"AP": (1 + 2 / 3) / 2, "precision": 0.5, "recall": 0.5, "category": 1.0, "StepCls": 1.0, "EvidenceRet": 1.0}
    )
    heavier = answers((1.0, 3.0, 1.0, 1.0)).figures("online")
    assert float(heavier["precision"]) == 0.25 and float(heavier["AP"]) == pytest.approx((1 + 2 / 5) / 2)


def test_replicates_draw_tasks():
    draws = np.array([[1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 0, 2]], dtype=float)
    found = answers().figures("online", draws)
    assert found["recall"][:2] == pytest.approx([0.5, 0.0]) and np.isnan(found["recall"][2])
    assert found["AP"][1] == pytest.approx(0.5)


def test_mistakes(tiny_root, tmp_path, capsys):
    assert online.main(arguments(tiny_root, tmp_path, "--limit", "0")) == 2
    assert "--limit: expected a positive number, got 0" in capsys.readouterr().err
