from __future__ import annotations

from pathlib import Path

import pytest

from train.boosting import BoostingSettings
from train.recipe import Recipe, claim, load_recipe

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_config_reads(path):
    assert load_recipe(path).name


def write(tmp_path, text):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    return path


def test_defaults_and_overrides(tmp_path):
    path = write(tmp_path, "name: x\ntraining:\n  epochs: 2\n")
    recipe = load_recipe(
        path,
        [
            "seed=7",
            "training.learning_rate=1.0e-4",
            "boosting.leaves=9",
            "weights.cut=1",
            "augmentation.without=[repeat]",
        ],
    )
    assert (recipe.name, recipe.seed, recipe.training.epochs, recipe.boosting.leaves) == ("x", 7, 2.0, 9)
    assert recipe.training.learning_rate == 1e-4 and recipe.weights.cut == 1.0
    assert recipe.partners == Recipe().partners and recipe.augmentation.without == ("repeat",)


def test_empty_file_is_the_default(tmp_path):
    assert load_recipe(write(tmp_path, "")) == Recipe()


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("nmae: x", [], "nmae: expected one of name, seed"),
        ("training: {lr: 1}", [], r"training\.lr: expected one of"),
        ("seed: a", [], "seed: expected int, got 'a'"),
        ("training: 3", [], "training: expected a mapping"),
        ("- 1", [], "expected a mapping"),
        ("floor: true", [], "floor: expected float"),
        ("augmentation: {without: repeat}", [], r"without: expected tuple, got 'repeat'"),
        ("", ["seed"], "--set seed: expected key=value"),
    ],
)
def test_mistakes(tmp_path, text, overrides, message):
    with pytest.raises(ValueError, match=message):
        load_recipe(write(tmp_path, text), overrides)


def test_to_dict_reads_back(tmp_path):
    import yaml

    recipe = load_recipe(CONFIGS[0])
    assert load_recipe(write(tmp_path, yaml.safe_dump(recipe.to_dict()))) == recipe


def test_a_folder_with_another_recipes_work_is_refused(tmp_path):
    claim(tmp_path, Recipe(name="one"))
    claim(tmp_path, Recipe(name="one"))
    with pytest.raises(ValueError, match="another"):
        claim(tmp_path, Recipe(name="one", seed=5))
    with pytest.raises(ValueError, match="tables"):
        claim(tmp_path, Recipe(name="one"), "other tables")


def test_threads_are_nothing_to_a_recipe(tmp_path):
    claim(tmp_path, Recipe(boosting=BoostingSettings(threads=1)))
    claim(tmp_path, Recipe(boosting=BoostingSettings(threads=8)))
