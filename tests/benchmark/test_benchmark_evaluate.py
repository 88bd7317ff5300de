import json

import pytest
from scoring_helpers import (
    RawScripted,
    Scripted,
    gold_step,
    make_item,
    prediction,
    record,
)

from redclf.benchmark.evaluate import (
    HEADLINE,
    check_out_of_sample,
    evaluate,
    length_bucket,
    paired_difference,
)
from redclf.benchmark.results import ResultFileDetector, result_record, write_results
from redclf.detectors.base import Retrieval
from redclf.errors import InSampleError
from redclf.hashing import trajectory_hash
from redclf.taxonomy import DUPLICATED, EXPLORATORY, INCORRECT


def items():
    return [
        make_item([gold_step((3, 4)), gold_step((7, 8), EXPLORATORY, (5,))], name="a"),
        make_item([gold_step((3, 4), INCORRECT, (-1,))], name="b", domain="bank"),
        make_item([], name="c"),
    ]


def detector():
    return Scripted(
        {"a": [prediction()], "c": [prediction(), prediction((5, 6))]},
        best={"b": [prediction((3, 4), INCORRECT, (-1,), 0.1)]},
        classes={(3, 4): DUPLICATED, (7, 8): EXPLORATORY},
        retrievals={
            (3, 4): Retrieval(DUPLICATED, (1, 2), 0.9),
            (7, 8): Retrieval(EXPLORATORY, (1, 2), 0.9),
        },
    )


def test_scores_by_hand():
    seen = []
    result = evaluate(detector(), items(), lambda done, total: seen.append((done, total)))
    scores = result.to_dict()
    assert seen == [(1, 3), (2, 3), (3, 3)]
    # StepCls: a both right, b's (3, 4) called Duplicated.
    assert scores["stepcls"]["accuracy"] == pytest.approx(2 / 3)
    assert scores["stepcls"]["n"] == 3
    assert scores["category"]["accuracy"] == pytest.approx(2 / 3)
    assert scores["evidenceret"]["accuracy"] == pytest.approx(1 / 3)
    # a hits with its only prediction, b has none, c is left out.
    assert scores["stepdet"]["n"] == 2
    assert scores["stepdet"]["p@1"] == scores["stepdet"]["mean"] == 0.5
    assert scores["stepdet"]["at_least_one"]["p@1"] == 1.0
    local = scores["localisation"]
    assert local["precision"] == pytest.approx(1 / 3)
    assert local["recall"] == pytest.approx(1 / 3)
    assert local["n"] == 3
    assert local["interactions"] == 12
    assert local["false_alarms_per_clean_trajectory"] == 2
    # Three predicted steps tie at 0.9 (one right), the other nine follow (two right).
    assert local["ap"] == pytest.approx((1 * 1 / 3 + 2 * 3 / 12) / 3)
    assert local["ece"] is None
    assert scores["triple"]["recall"] == pytest.approx(1 / 3)
    assert set(scores["by_domain"]) == {"shop", "bank"}
    assert scores["by_domain"]["bank"]["stepdet"]["p@1"] == 0
    assert scores["by_domain"]["bank"]["stepcls"]["ci"] == {"accuracy": None}
    assert set(scores["by_length"]) == {"8-30"}
    by_category = scores["by_category"]
    assert by_category[DUPLICATED]["stepdet"]["p@1"] == 1
    assert by_category[EXPLORATORY]["localisation"]["recall"] == 0
    assert by_category[INCORRECT]["stepcls"]["n"] == 1
    json.dumps(scores, allow_nan=False)


def test_intervals_hold_the_estimate_and_are_repeatable():
    many = [make_item([gold_step((3, 4))], name=f"t{i}", task=f"k{i // 2}") for i in range(40)]
    half = Scripted({f"t{i}": [prediction()] for i in range(0, 40, 2)})
    first, second = (evaluate(half, many).to_dict() for _ in range(2))
    assert first == second
    block = first["stepdet"]
    low, high = block["ci"]["p@1"]
    # One of each task's two is found, so that tasks do not differ at all.
    assert low == block["p@1"] == high == 0.5
    low, high = first["localisation"]["ci"]["ap"]
    assert low <= first["localisation"]["ap"] <= high


def test_disputed_steps_are_ignored_everywhere():
    item = make_item([gold_step((3, 4))], disputed=[(5, 6)])
    noisy = Scripted({"t": [prediction((5, 6), confidence=0.99), prediction((3, 4))]})
    scores = evaluate(noisy, [item]).to_dict()
    assert scores["stepdet"]["p@1"] == 1
    assert scores["localisation"]["precision"] == scores["localisation"]["ap"] == 1
    assert scores["localisation"]["interactions"] == 3
    clean = evaluate(noisy, [make_item([], disputed=[(5, 6), (3, 4)])]).to_dict()
    assert clean["localisation"]["false_alarms_per_clean_trajectory"] == 0
    both = evaluate(noisy, [make_item([gold_step((3, 4))], disputed=[(3, 4)])]).to_dict()
    assert both["stepcls"]["n"] == 0


def test_at_least_one_steps_over_disputed_candidates():
    item = make_item([gold_step((3, 4))], disputed=[(5, 6)])
    quiet = Scripted(best={"t": [prediction((5, 6)), prediction((3, 4), confidence=0.1)]})
    scores = evaluate(quiet, [item]).to_dict()
    assert scores["stepdet"]["p@1"] == 0
    assert scores["stepdet"]["at_least_one"]["p@1"] == 1


def test_failed_replies_stay_in_the_denominator():
    raw = RawScripted({"a": [record()], "b": None})
    result = evaluate(raw, [make_item([gold_step((3, 4))], name=name) for name in "ab"])
    assert result.failed == 1
    assert result.metric("stepdet.p@1") == 0.5
    assert result.to_dict()["stepdet"]["n"] == 2


def test_redundancy_scores_give_ap_and_calibration():
    item = make_item([gold_step((3, 4))])
    scored = Scripted(scores={(1, 2): 0.0, (3, 4): 1.0, (5, 6): 0.0, (7, 8): 0.0})
    local = evaluate(scored, [item]).to_dict()["localisation"]
    assert (local["ap"], local["ece"]) == (1, 0)


def test_a_result_file_scores_as_its_detector(tmp_path):
    whole = [*items(), make_item([gold_step((5, 6))], name="d", disputed=[(3, 4)])]
    path = tmp_path / "scripted.jsonl"
    write_results(path, {}, (result_record(detector(), item) for item in whole))
    assert evaluate(ResultFileDetector(path), whole).to_dict() == (evaluate(detector(), whole).to_dict())


def test_in_sample_is_refused_and_marked():
    data = items()
    trained = Scripted(trained=frozenset({trajectory_hash(data[0].trajectory)}))
    with pytest.raises(InSampleError, match=r"1 of these 3 .*IN-SAMPLE.*--allow-train"):
        check_out_of_sample(trained, data)
    assert check_out_of_sample(trained, data, allow_train=True) == 1
    assert check_out_of_sample(trained, data[1:]) == 0
    assert evaluate(trained, data).to_dict()["in_sample"] == 1


def test_paired_difference():
    many = [make_item([gold_step((3, 4))], name=f"t{i}") for i in range(30)]
    good = evaluate(Scripted({f"t{i}": [prediction()] for i in range(30)}), many)
    half = evaluate(Scripted({f"t{i}": [prediction()] for i in range(15)}), many[::-1])
    result = paired_difference(good, half)
    assert set(result) == set(HEADLINE)
    entry = result["stepdet.p@1"]
    assert (entry["a"], entry["b"], entry["difference"]) == (1, 0.5, 0.5)
    assert 0 < entry["ci"][0] < 0.5 < entry["ci"][1] < 1
    same = paired_difference(half, half)["localisation.ap"]
    assert same["difference"] == 0
    assert same["ci"] == [0, 0]
    with pytest.raises(ValueError, match="same trajectories"):
        paired_difference(good, evaluate(Scripted(), many[1:]))


def test_nothing_to_score():
    scores = evaluate(Scripted(), []).to_dict()
    assert scores["stepcls"] == {"accuracy": None, "ci": {"accuracy": None}, "n": 0}
    assert scores["by_domain"] == {}


@pytest.mark.parametrize(
    ("messages", "name"),
    [
        (7, "under 8"),
        (8, "8-30"),
        (30, "8-30"),
        (31, "31-53"),
        (53, "31-53"),
        (54, "54-76"),
        (77, "77-99"),
        (100, "100-122"),
        (122, "100-122"),
        (123, "over 122"),
    ],
)
def test_length_buckets(messages, name):
    assert length_bucket(messages) == name
