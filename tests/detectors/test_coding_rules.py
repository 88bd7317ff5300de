"""What the shipped model says of a coding agent's steps, by the rules of docs/formats.md."""

from __future__ import annotations

import pytest
from traces import said, step, trace, user

from redclf.detectors.cross_encoder import CrossEncoderDetector
from redclf.taxonomy import DUPLICATED

pytestmark = pytest.mark.shipped_model

FILE = "\n".join(f"{n}\tdef area_{n}(width, height): return width * height + {n}" for n in range(1, 40))


def shell(command: str, result: str) -> list:
    return step("bash", result, {"command": command})


VIEW = shell("cat shapes.py", FILE)
EDIT = shell("sed -i '7s/height + 7/height/' shapes.py", "")
CHANGED = shell("cat shapes.py", FILE.replace("height + 7", "height"))
LIST = shell("ls", "shapes.py\ntest_shapes.py")
PASSED = shell("python -m pytest -q", "3 passed")
FAILED = shell("python -m pytest -q", "E assert 13 == 6\n1 failed, 2 passed")


@pytest.fixture(scope="module")
def found():
    detector = CrossEncoderDetector()

    def run(*parts):
        asked = user("The function area_7 in shapes.py returns too much. Please fix it.")
        trajectory = trace(asked, *parts, said("Fixed area_7 in shapes.py."))
        return {prediction.step: prediction for prediction in detector.detect(trajectory)}

    return run


def test_the_same_view_again_is_a_duplicate(found):
    predictions = found(LIST, VIEW, VIEW, EDIT, PASSED)
    assert predictions[5, 6].category == DUPLICATED and predictions[5, 6].evidence == (3, 4)


def test_a_view_after_an_edit_is_none(found):
    assert found(LIST, VIEW, EDIT, CHANGED, PASSED) == {}


def test_the_same_command_after_an_edit_is_none(found):
    assert (9, 10) not in found(VIEW, PASSED, EDIT, CHANGED, PASSED)


@pytest.mark.xfail(strict=True, reason="the model takes a failing test run for a mistake: 0.84 Incorrect")
def test_a_failing_test_run_is_information(found):
    assert (3, 4) not in found(VIEW, FAILED, EDIT, PASSED)
