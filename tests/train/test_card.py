from __future__ import annotations

import json
import shutil

import pytest
from tiny_benchmark import write_benchmark

from train import card, unseen


@pytest.fixture
def folder(tiny_model, tmp_path):
    copy = tmp_path / "model"
    shutil.copytree(tiny_model, copy, ignore=shutil.ignore_patterns("work"))
    return copy


@pytest.fixture
def result(folder, tmp_path):
    root = write_benchmark(tmp_path / "other", seed=9)
    arguments = ["--model", str(folder), "--test", str(root), "--domains", "harbour", "--output", str(tmp_path)]
    assert unseen.main([*arguments, "--name", "few", "--relations-only"]) == 0
    return tmp_path / "unseen-few.json"


def test_a_card_gets_what_was_measured_since(folder, result):
    before = (folder / "README.md").read_text()
    assert card.main([str(folder), "--unseen", str(result)]) == 0
    after = (folder / "README.md").read_text()
    assert after.startswith(before.rstrip()) and "## Unseen domains" in after
    found = json.loads(result.read_text())["all"]["relations"]
    assert f"| harbour | relations | {100 * found['stepcls']['accuracy']:.1f} |" in after
    assert json.loads((folder / "metrics.json").read_text())["unseen"][0]["all"]["relations"] == found


def test_another_models_results_are_refused(folder, result, capsys):
    found = json.loads(result.read_text())
    found["about"]["model"]["training"]["commit"] = "another"
    result.write_text(json.dumps(found))
    assert card.main([str(folder), "--unseen", str(result)]) == 2
    assert "another model's" in capsys.readouterr().err


def test_out_of_fold_figures_of_another_recipe_are_refused(folder, tmp_path, capsys):
    recipe = json.loads((folder / "config.json").read_text())["recipe"]
    path = tmp_path / "crossval.json"
    path.write_text(json.dumps({"about": {"recipe": {**recipe, "seed": 7}}}))
    assert card.main([str(folder), "--metrics", str(path)]) == 2
    assert "another's" in capsys.readouterr().err
    path.write_text(json.dumps({"about": {"recipe": recipe}}))
    assert card.main([str(folder), "--metrics", str(path)]) == 0
