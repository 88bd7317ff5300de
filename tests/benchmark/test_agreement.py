from __future__ import annotations

import json

import pytest

from redclf.benchmark.agreement import Agreement, Label, agree, load_annotation
from redclf.cli import main
from redclf.errors import TraceError
from redclf.taxonomy import ABNORMAL, CATEGORIES, DUPLICATED, EXPLORATORY, INCORRECT


def record(name, *labels):
    """An annotation: (step, category, evidence)."""
    columns = zip(*labels, strict=True) if labels else ([], [], [])
    steps, categories, evidences = (list(map(list, c)) if n != 1 else list(c) for n, c in enumerate(columns))
    return {"trajectory_id": name, "redundant_step_idx": steps, "redundant_step_type": categories,
            "evidence_step_idx": evidences}  # fmt: skip


def write(path, *records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(records))
    return path


REFERENCE = [
    record("a", ((1, 2), DUPLICATED, (3, 4)), ((5, 6), INCORRECT, (-1,)), ((7, 8), EXPLORATORY, (9, 10))),
    record("b", ((1, 2), ABNORMAL, (3, 4))),
    record("c"),
    record("d", ((1, 2), DUPLICATED, (0,)), ((3, 4), DUPLICATED, (0,))),
]
OTHER = [
    # One of three is wrong in type, one is missed; joint evidence in another order, one step too many.
    record("a", ((2, 1), DUPLICATED, (3, 4)), ((5, 6), EXPLORATORY, (-1,)), ((11, 12), ABNORMAL, (-1,))),
    record("b", ((1, 2), ABNORMAL, (5, 6))),
    record("c"),
]


def figures(reference, other):
    def as_annotation(records):
        found = {}
        for r in records:
            rows = zip(r["redundant_step_idx"], r["redundant_step_type"], r["evidence_step_idx"], strict=True)
            found["", r["trajectory_id"]] = tuple(Label(tuple(sorted(s)), c, tuple(e)) for s, c, e in rows)
        return found

    return agree(as_annotation(reference), as_annotation(other))[""].to_dict()


def test_by_hand():
    found = figures(REFERENCE, OTHER)
    # Covered a, b, c: the reference has 4 steps there, the other 4, of which 3 are the same.
    assert found["precision"] == found["recall_idx"] == found["f1"] == 3 / 4
    assert found["recall_idx_type"] == 2 / 4 and found["type_accuracy"] == 2 / 3
    assert found["evidence_agreement"] == 2 / 3 and found["triplet_recall"] == 1 / 4
    assert found["partial_credit"] == pytest.approx((1 / 3 + 1) / 2)
    assert found["end_to_end_recall"] == 3 / 6 and found["coverage"] == 3 / 4 and found["identical"] == 1 / 3


def test_a_step_counts_once():
    twice = record("a", ((1, 2), DUPLICATED, (3, 4)), ((1, 2), INCORRECT, (-1,)))
    once = record("a", ((1, 2), INCORRECT, (-1,)))
    found = figures([twice], [once])
    assert (found["recall_idx"], found["precision"], found["type_accuracy"], found["evidence_agreement"]) == (
        0.5,
        1,
        1,
        1,
    )
    found = figures([once], [twice])
    assert (found["recall_idx"], found["precision"], found["type_accuracy"]) == (1, 0.5, 1)


def test_an_annotation_agrees_with_itself():
    found = figures(REFERENCE, REFERENCE)
    assert {found[k] for k in found if not isinstance(found[k], dict)} == {1.0}


def test_over_nothing():
    found = figures([record("a")], [record("a")])
    assert found["precision"] is None and found["partial_credit"] is None and found["identical"] == 1


def test_published_counts_give_the_published_type_accuracy():
    # Table 9 of the paper: 172 steps that both name, of which the types of 163 agree.
    table = {DUPLICATED: (74, 0, 1, 0), ABNORMAL: (0, 28, 0, 0), INCORRECT: (0, 0, 11, 8), EXPLORATORY: (0, 0, 0, 50)}
    columns = (DUPLICATED, ABNORMAL, INCORRECT, EXPLORATORY)
    total = Agreement()
    for category, row in table.items():
        for other, number in zip(columns, row, strict=True):
            for _ in range(number):
                total.add([Label((1, 2), category, (-1,))], [Label((1, 2), other, (-1,))])
    assert round(100 * total.to_dict()["type_accuracy"], 1) == 94.8
    assert [total.confusion[INCORRECT, other] for other in columns] == [0, 0, 11, 8]


def test_files_and_folders(tmp_path):
    one, two = write(tmp_path / "a" / "annotation.json", *REFERENCE), write(tmp_path / "b.json", *OTHER)
    assert agree(load_annotation(one), load_annotation(two))[""].to_dict() == figures(REFERENCE, OTHER)
    assert load_annotation(tmp_path / "a") == load_annotation(one)
    for name, records in (("garden", REFERENCE), ("harbour", REFERENCE[:2])):
        write(tmp_path / "ref" / "human_annotation" / name / "annotation.json", *records)
        write(tmp_path / "oth" / "mine" / name / "annotation.json", *OTHER)
    parts = agree(load_annotation(tmp_path / "ref"), load_annotation(tmp_path / "oth"))
    assert parts.keys() == {"", "garden", "harbour"} and parts["garden"].to_dict() == figures(REFERENCE, OTHER)
    assert parts[""].reference == parts["garden"].reference + parts["harbour"].reference


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("no JSON", "expected JSON"), ("{}", "expected a list"), ("[3]", "record 0: expected an object"),
        ('[{"task_id": true}]', "expected a trajectory_id or task_id"),
        ('[{"task_id": 1}]', "expected the lists"),
        (json.dumps([record("a", ((1, 2, 3), DUPLICATED, (1,)))]), r"redundant_step_idx\[0\]"),
        (json.dumps([record("a", ((1, 2), "Odd Step", (1,)))]), r"redundant_step_type\[0\]"),
        (json.dumps([record("a", ((1, 2), DUPLICATED, (1, 2, 3)))]), r"evidence_step_idx\[0\]"),
        (json.dumps([record("a"), record("a")]), "annotated twice"),
        (json.dumps([{**record("a"), "redundant_step_type": [DUPLICATED]}]), "as many entries"),
    ],
)  # fmt: skip
def test_bad_annotations(tmp_path, text, complaint):
    path = tmp_path / "annotation.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=complaint) as error:
        load_annotation(path)
    assert "annotation.json" in str(error.value)


def test_no_annotation(tmp_path):
    with pytest.raises(TraceError, match="found none"):
        load_annotation(tmp_path)
    with pytest.raises(TraceError, match="found none"):
        load_annotation(tmp_path / "none.json")


def test_command(tmp_path, capsys):
    one, two = write(tmp_path / "a.json", *REFERENCE), write(tmp_path / "b.json", *OTHER, record("z"))
    target = tmp_path / "out.json"
    with pytest.raises(SystemExit) as stop:
        main(["agreement", str(one), str(two), "--json", str(target)])
    out, err = capsys.readouterr()
    assert not stop.value.code and "75.0" in out and "1 trajectories that the reference does not have" in err
    found = json.loads(target.read_text())
    wanted = {"precision", "recall_idx", "recall_idx_type", "partial_credit", "type_accuracy", "evidence_agreement"}
    assert wanted | {"end_to_end_recall"} <= found.keys() and found["precision"] == 0.75
    assert sum(map(sum, found["confusion"])) == 3 and found["categories"] == list(CATEGORIES)
    with pytest.raises(SystemExit) as stop:
        main(["agreement", str(one), str(write(tmp_path / "c.json", record("z")))])
    assert stop.value.code == 2 and "found none of 4" in capsys.readouterr().err
