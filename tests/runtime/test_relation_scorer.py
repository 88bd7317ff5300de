from __future__ import annotations

import numpy as np
import pytest
from traces import chain, step, trace, user

from redclf.errors import ModelError
from redclf.relations.context import CONTEXT_NAMES, context_rows
from redclf.relations.features import PAIR_NAMES, TARGET_NAMES, Relations
from redclf.relations.views import TrajectoryView
from redclf.runtime.relation_scorer import FILES, RelationScorer, feature_names


def relate(trajectory, **more):
    return Relations(TrajectoryView(trajectory), **more)


@pytest.fixture(scope="module")
def scorer(tiny_model):
    return RelationScorer(tiny_model / "relations")


def test_one_distribution_a_target(scorer, tiny_items):
    relations = relate(tiny_items[0].trajectory)
    found = scorer.score(relations)
    assert len(found) == len(relations.targets)
    for (logit, cells), candidates in zip(found, relations.candidates, strict=True):
        assert np.isfinite(logit) and cells.shape == (4, len(candidates))
        assert np.exp(cells).sum() == pytest.approx(1.0, abs=1e-5)


def test_nothing_to_score(scorer):
    assert scorer.score(relate(trace(user("hello")))) == []


def test_the_second_pass_gets_what_the_first_found(scorer, monkeypatch):
    asked = {}

    def spy(logits, categories, messages, tools):
        asked.update(messages=list(messages), tools=list(tools), shapes=(logits.shape, categories.shape))
        return context_rows(logits, categories, messages, tools)

    monkeypatch.setattr("redclf.runtime.relation_scorer.context_rows", spy)
    trajectory = chain(12)
    assert len(scorer.score(relate(trajectory))) == 12
    steps = trajectory.assistant_interactions
    assert asked["messages"] == [step.call_index for step in steps]
    assert asked["tools"] == [step.call.name for step in steps] and asked["shapes"] == ((12,), (12, 4))


def test_same_again_and_among_others(scorer, tiny_items):
    first = scorer.score(relate(tiny_items[0].trajectory))
    scorer.score(relate(tiny_items[1].trajectory))
    again = scorer.score(relate(tiny_items[0].trajectory))
    for (a, x), (b, y) in zip(first, again, strict=True):
        assert a == b
        np.testing.assert_array_equal(x, y)


def test_cells_are_the_same_whenever_they_are_wanted(scorer, tiny_items):
    relations = relate(tiny_items[2].trajectory)
    every = scorer.score(relations)
    logits, cells = scorer.open(relations)
    assert logits == [logit for logit, _ in every] and len(logits) > 2
    for place in reversed(range(len(logits))):
        np.testing.assert_array_equal(cells(place), every[place][1])


def test_missing_ensemble(tmp_path):
    with pytest.raises(ModelError, match=r"redundant\.onnx: expected an ONNX model"):
        RelationScorer(tmp_path)


def test_damaged_ensemble(tmp_path):
    for name in FILES:
        (tmp_path / f"{name}.onnx").write_bytes(b"no model")
    with pytest.raises(ModelError, match="can't be loaded"):
        RelationScorer(tmp_path)


def test_feature_names():
    assert feature_names() == {"target": list(TARGET_NAMES), "context": list(CONTEXT_NAMES), "pair": list(PAIR_NAMES)}


def test_odd_trajectories(scorer):
    for trajectory in (trace(step("f", "")), trace(user("x"), step("f", "\ud800", "text"))):
        assert len(scorer.score(relate(trajectory))) == 1
