from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from traces import said, step, trace, user

from redclf.benchmark.data import LabelledTrajectory
from train import ablate, crossval, rows
from train.augment import FAMILIES, INJECTION_NAMES
from train.recipe import load_recipe
from train.stacking import Stack

CONFIG = Path(__file__).parents[2] / "configs" / "smoke.yaml"
NAMES = ["without-repeats", "without-augmentation", "without-retry-text", "without-policy"]


def arguments(root, place, *more):
    return ["--config", str(CONFIG), "--data", str(root), "--output", str(place / "results"),
            "--runs", str(place / "runs"), *more]  # fmt: skip


@pytest.fixture(scope="module")
def done(tiny_root, tmp_path_factory):
    place = tmp_path_factory.mktemp("ablate")
    fits = []
    with pytest.MonkeyPatch.context() as patch:
        fit = Stack.fit
        patch.setattr(Stack, "fit", lambda self, without: fits.append((self, without)) or fit(self, without))
        assert ablate.main(arguments(tiny_root, place, "--relations-only", "--fold", "1", "--only", *NAMES)) == 0
    return place, fits


def test_each_is_compared_with_the_full_recipe(done):
    numbers = json.loads((done[0] / "results" / "ablate-smoke.json").read_text())
    found = numbers["benchmark"]["relations"]
    assert set(found) == {"full", *NAMES} and numbers["about"]["fold"] == 1
    assert found["full"]["trajectories"] == 8
    for name in NAMES:
        entry = found[name]["localisation.ap"]
        assert entry["b"] == found["full"]["localisation"]["ap"] and len(entry["ci"]) == 2
    # The small benchmark has no such sentence, so the test changes nothing.
    assert all(entry["difference"] in (0, None) for entry in found["without-retry-text"].values())
    changed = {name for name in NAMES if any(entry["difference"] for entry in found[name].values())}
    assert changed >= {"without-repeats", "without-policy"}
    text = (done[0] / "results" / "ablate-smoke.md").read_text()
    assert "no repeat, repeat_parallel" in text and "train.ablate" in text


def test_what_is_changed_is_what_is_trained_on(done):
    fitted = dict.fromkeys(("copies", "none", "policy"), 0)
    for stack, without in done[1]:
        assert 1 in without
        tables = stack._tables(without, inside=False)
        copies = any(table.origin != table.id for table in tables)
        fitted["copies" if copies else "none"] += 1
    # Full, without repeats and without policy have copies; changed test runs need no fit of their own.
    assert (fitted["copies"], fitted["none"]) == (9, 3)


def test_it_takes_up_cross_validation(tiny_root, done, monkeypatch):
    more = ["--relations-only", "--folds", "1"]
    monkeypatch.setattr(Stack, "fit", lambda self, without: pytest.fail("fitted again"))
    assert crossval.main(arguments(tiny_root, done[0], *more)) == 0


def test_changed_test_runs_are_scored_by_the_full_recipes_encoder(tiny_root, tmp_path, monkeypatch):
    seen = []
    fit = rows.fit_encoder
    monkeypatch.setattr(rows, "fit_encoder", lambda w, t, s, place: seen.append((place, w)) or fit(w, t, s, place))
    more = ["--only", "without-retry-text", "single-steps", "--set", "augmentation.copies=0", "--set",
            "training.epochs=0.1"]  # fmt: skip
    assert ablate.main(arguments(tiny_root, tmp_path, *more)) == 0
    whole = tmp_path / "runs" / "smoke" / "fold-0"
    own = tmp_path / "runs" / "smoke" / "ablate" / "single-steps" / "fold-0"
    assert [place for place, _ in seen] == [whole, whole, own]
    assert not seen[2][1].recipe.partner_text and seen[2][1].tables is seen[0][1].tables
    found = json.loads((tmp_path / "results" / "ablate-smoke.json").read_text())["benchmark"]
    assert "single-steps" in found["both"] and "single-steps" not in found["relations"]


def test_partner_text_can_be_left_out(tiny_items):
    from redclf.relations.features import Relations
    from redclf.relations.views import TrajectoryView
    from redclf.serialize import Serializer

    view = TrajectoryView(tiny_items[0].trajectory)
    relations = Relations(view)
    target = view.steps[relations.targets[0]]
    candidate = next(c for c in relations.candidates[0] if c.kind == "step")
    whole, without = (
        Serializer(view, lambda text: [len(word) for word in text.split()], 101, 102, partner_text=partner).pair(
            target, candidate
        )
        for partner in (True, False)
    )
    assert without[1] == whole[1] and without[0] == [*whole[0][: whole[1]], 102] and len(whole[0]) > len(without[0])


def test_every_ablation_is_a_recipe_of_its_own():
    base = load_recipe(CONFIG)
    made = {a.name: load_recipe(CONFIG, a.overrides) for a in ablate.ABLATIONS}
    assert {f"without-{family}" for family in FAMILIES} <= made.keys()
    for ablation in ablate.ABLATIONS:
        assert (made[ablation.name] != base) == bool(ablation.overrides)
        if ablation.encoder:
            assert made[ablation.name].augmentation == base.augmentation
            assert made[ablation.name].boosting == base.boosting


def test_retry_sentence_is_taken_out_beside_a_call_only():
    retry = step("get_berth", "ok")
    retry[0] = replace(retry[0], content="\u518d\u8bd5\u4e00\u6b21")
    kept = step("get_berth", "\u7ed3\u679c")
    kept[0] = replace(kept[0], content="Once more.")
    run = trace(user("\u4f60\u597d"), retry, kept, said("\u5b8c\u6210"))
    item = LabelledTrajectory(run, (), frozenset(), "s", "d", ("d", "t"))
    found = ablate.without_retry_text(item).trajectory.messages
    assert found[1].content == "" and found[1].tool_calls == retry[0].tool_calls
    assert [m for i, m in enumerate(found) if i != 1] == [m for i, m in enumerate(run.messages) if i != 1]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--only", "layer-6"], "--only: expected some of without-repeats"),
        (["--only", "lora", "--relations-only"], "--only lora: is about the encoder"),
        (["--fold", "7"], r"--fold: expected one of [0, 1, 2], got 7"),
    ],
)
def test_mistakes(more, message, tiny_root, tmp_path, capsys):
    assert ablate.main(arguments(tiny_root, tmp_path, *more)) == 2
    assert message in capsys.readouterr().err


def test_the_families_hold_every_injection_once():
    assert sorted(name for names in FAMILIES.values() for name in names) == sorted(INJECTION_NAMES)
