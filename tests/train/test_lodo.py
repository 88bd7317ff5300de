from __future__ import annotations

import json
from pathlib import Path

import pytest

from redclf.benchmark.results import ResultFileDetector
from train import lodo
from train.stacking import Stack

CONFIG = Path(__file__).parents[2] / "configs" / "smoke.yaml"


def arguments(root, place, *more):
    return ["--config", str(CONFIG), "--data", str(root), "--output", str(place / "results"),
            "--runs", str(place / "runs"), "--relations-only", *more]  # fmt: skip


@pytest.fixture(scope="module")
def done(tiny_root, tmp_path_factory):
    place = tmp_path_factory.mktemp("lodo")
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        fit = Stack.fit
        patch.setattr(Stack, "fit", lambda self, without: seen.append((self, without)) or fit(self, without))
        assert lodo.main(arguments(tiny_root, place, "--domains", "harbour", "archive")) == 0
    return place, seen


def test_no_model_of_a_domain_saw_it_or_a_copy_of_it(done):
    fits = {"harbour": 0, "archive": 0}
    for stack, without in done[1]:
        domain = stack.directory.parent.name
        tables = stack._tables(without, inside=False)
        assert domain not in {table.domain for table in tables} and len({t.domain for t in tables}) == 3
        assert any(table.origin != table.id for table in tables)
        fits[domain] += 1
    assert fits == {"harbour": 4, "archive": 4}  # three inner folds, and all of them


def test_inner_folds_keep_to_the_split(tiny_root, done):
    from train.command import load_items

    _, folds = load_items([str(tiny_root)])
    for stack, _ in done[1]:
        inner = {name: fold for name, fold in stack.folds.items() if fold in set(folds.values())}
        assert inner and all(folds[name] == fold for name, fold in inner.items())


def test_every_domain_and_all_together_are_reported(done, tiny_items):
    numbers = json.loads((done[0] / "results" / "lodo-smoke.json").read_text())
    assert {"benchmark", "harbour", "archive"} <= numbers.keys() and "greenhouse" not in numbers
    pooled = numbers["benchmark"]["relations"]
    assert pooled["trajectories"] == 14 == sum(numbers[d]["relations"]["trajectories"] for d in ("harbour", "archive"))
    assert pooled["localisation"]["ece"] is not None and pooled["by_domain"].keys() == {"harbour", "archive"}
    text = (done[0] / "results" / "lodo-smoke.md").read_text()
    assert "## harbour" in text and "ECE" in text and "train.lodo" in text
    detector = ResultFileDetector(done[0] / "results" / "oof" / "smoke-lodo-relations-benchmark.jsonl")
    assert detector.ids == {item.id for item in tiny_items if item.domain in ("harbour", "archive")}


def test_a_second_run_fits_nothing(done, tiny_root, monkeypatch):
    before = json.loads((done[0] / "results" / "lodo-smoke.json").read_text())
    monkeypatch.setattr(Stack, "fit", lambda self, without: pytest.fail("fitted again"))
    assert lodo.main(arguments(tiny_root, done[0], "--domains", "harbour", "archive")) == 0
    assert json.loads((done[0] / "results" / "lodo-smoke.json").read_text())["benchmark"] == before["benchmark"]


def test_unknown_domain(tiny_root, tmp_path, capsys):
    assert lodo.main(arguments(tiny_root, tmp_path, "--domains", "harbor")) == 2
    assert "expected some of archive, greenhouse, harbour, observatory, got 'harbor'" in capsys.readouterr().err
