import json
from collections import Counter
from pathlib import Path

import pytest

from redclf.benchmark.data import (
    ANNOTATION,
    SPLITS,
    TRACES,
    load_benchmark,
    load_splits,
)
from redclf.errors import TraceError
from redclf.taxonomy import ABNORMAL, DUPLICATED, EXPLORATORY, INCORRECT

SHARED = Path(__file__).parents[2] / ".." / "shared"


def messages(requestor="assistant"):
    result = [{"role": "user", "content": "hello"}]
    for number in range(3):
        by = requestor if number == 2 else "assistant"
        call = {"id": f"c{number}", "name": "look", "arguments": {"n": number}, "requestor": by}
        result.append({"role": by, "content": None, "tool_calls": [call]})
        answer = {"role": "tool", "id": f"c{number}", "content": "x", "requestor": by}
        result.append(answer)
    return result


def annotation(**changes):
    return {
        "trajectory_id": "a1",
        "task_id": "7",
        "redundant_step_idx": [[3, 4]],
        "redundant_step_type": ["Duplicated Step"],
        "evidence_step_idx": [[1, 2]],
        "confidence": ["0"],
        "consensus_count": 2,
    } | changes


def write(root, records, simulations=None, subset="automated_annotation", domain="shop"):
    folder = root / subset / domain
    folder.mkdir(parents=True, exist_ok=True)
    if simulations is None:
        simulations = [{"trajectory_id": "a1", "task_id": "7", "messages": messages()}]
    (folder / TRACES).write_text(json.dumps({"tasks": [], "simulations": simulations}))
    (folder / ANNOTATION).write_text(json.dumps(records))
    return root


def test_load(tmp_path):
    (item,) = load_benchmark(write(tmp_path, [annotation(disputed_step_idx=[[5, 6]])]))
    assert item.id == item.trajectory.id == "a1"
    assert (item.subset, item.domain) == ("automated_annotation", "shop")
    assert item.group == ("shop", "7")
    assert item.disputed == {(5, 6)}
    (gold,) = item.gold
    assert (gold.step, gold.category, gold.evidence) == ((3, 4), DUPLICATED, (1, 2))
    assert (gold.certain, gold.synthetic) == (False, None)


def test_human_annotations_join_by_task(tmp_path):
    record = annotation(synthetic=[True], confidence=["1"])
    del record["trajectory_id"]
    simulations = [{"task_id": "7", "messages": messages()}]
    write(tmp_path, [record], simulations, "human_annotation")
    (item,) = load_benchmark(tmp_path)
    assert item.id == "human_annotation:shop:7"
    assert item.gold[0].synthetic is True
    assert item.gold[0].certain is True


def test_no_gold_and_consensus_lists(tmp_path):
    record = annotation(redundant_step_idx=[], redundant_step_type=[], evidence_step_idx=[], consensus_count=[])
    del record["confidence"]
    (item,) = load_benchmark(write(tmp_path, [record]))
    assert item.gold == ()


def test_every_form_of_evidence(tmp_path):
    forms = [[1, 2], [1, 2, 5, 6], [0], [-1]]
    for form in forms:
        (item,) = load_benchmark(write(tmp_path, [annotation(evidence_step_idx=[form])]))
        assert list(item.gold[0].evidence) == form


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"redundant_step_idx": [[3, 6]]}, r"redundant_step_idx\[0\]: expected an interaction"),
        ({"redundant_step_idx": [[3, 99]]}, "7 messages"),
        ({"redundant_step_idx": [[3]]}, r"expected \[call, result\]"),
        ({"redundant_step_idx": [[True, 2]]}, r"expected \[call, result\]"),
        ({"redundant_step_idx": None}, "redundant_step_idx: expected a list, got nothing"),
        ({"evidence_step_idx": [[7]]}, r"evidence_step_idx\[0\]"),
        ({"evidence_step_idx": [[-2]]}, r"evidence_step_idx\[0\]"),
        ({"evidence_step_idx": [[1, 2, 3]]}, r"evidence_step_idx\[0\]"),
        ({"evidence_step_idx": [[2, 1]]}, r"evidence_step_idx\[0\]"),
        ({"evidence_step_idx": [[]]}, r"evidence_step_idx\[0\]"),
        ({"evidence_step_idx": [3]}, r"evidence_step_idx\[0\]"),
        ({"evidence_step_idx": []}, "evidence_step_idx: expected 1 entries"),
        ({"redundant_step_type": ["Odd"]}, r"redundant_step_type\[0\]: expected one of"),
        ({"redundant_step_type": []}, "redundant_step_type: expected 1 entries"),
        ({"confidence": ["7"]}, r"confidence\[0\]"),
        ({"confidence": []}, "confidence: expected 1 entries"),
        ({"disputed_step_idx": [[0, 1]]}, r"disputed_step_idx\[0\]"),
        ({"trajectory_id": "zz"}, "no such trajectory"),
        ({"trajectory_id": None}, "trajectory_id: expected a name"),
    ],
)
def test_label_errors_name_file_record_and_field(tmp_path, changes, message):
    write(tmp_path, [annotation(**changes)])
    with pytest.raises(TraceError, match=message) as caught:
        load_benchmark(tmp_path)
    assert ANNOTATION in str(caught.value)
    assert "record 0" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_users_step_cannot_be_redundant(tmp_path):
    simulations = [{"trajectory_id": "a1", "task_id": "7", "messages": messages("user")}]
    write(tmp_path, [annotation(evidence_step_idx=[[5, 6]])], simulations)
    assert load_benchmark(tmp_path)[0].gold[0].evidence == (5, 6)
    write(tmp_path, [annotation(redundant_step_idx=[[5, 6]])], simulations)
    with pytest.raises(TraceError, match="interaction of the assistant"):
        load_benchmark(tmp_path)


def test_ids_are_unique(tmp_path):
    write(tmp_path, [annotation(), annotation()])
    with pytest.raises(TraceError, match="annotated twice"):
        load_benchmark(tmp_path)
    write(tmp_path, [annotation()])
    write(tmp_path, [annotation()], domain="bank")
    with pytest.raises(TraceError, match="'a1' is also in"):
        load_benchmark(tmp_path)


def test_traces_without_annotation_are_left_out_aloud(tmp_path):
    simulations = [{"trajectory_id": name, "task_id": "7", "messages": messages()} for name in ("a1", "a2")]
    write(tmp_path, [annotation()], simulations)
    with pytest.warns(UserWarning, match="1 traces without an annotation"):
        assert len(load_benchmark(tmp_path)) == 1


@pytest.mark.parametrize("text", ["", "{", "{}", "[3]"])
def test_files_that_hold_something_else(tmp_path, text):
    write(tmp_path, [annotation()])
    (tmp_path / "automated_annotation" / "shop" / ANNOTATION).write_text(text)
    with pytest.raises(TraceError, match=ANNOTATION):
        load_benchmark(tmp_path)


def test_missing_and_filtered(tmp_path):
    with pytest.raises(TraceError, match="found none"):
        load_benchmark(tmp_path / "nowhere")
    with pytest.raises(TraceError, match="<subset>/<domain>"):
        load_benchmark(tmp_path)
    write(tmp_path, [annotation()])
    with pytest.raises(TraceError, match=r"expected \*/bank .* automated_annotation/shop"):
        load_benchmark(tmp_path, domain="bank")
    assert len(load_benchmark(tmp_path, "automated_annotation", "shop")) == 1
    (tmp_path / "automated_annotation" / "shop" / TRACES).unlink()
    with pytest.raises(TraceError, match=TRACES):
        load_benchmark(tmp_path)


def test_splits(tmp_path):
    with pytest.raises(TraceError, match=SPLITS):
        load_splits(tmp_path)
    (tmp_path / SPLITS).write_text('{"folds": {"a1": 3}}')
    assert load_splits(tmp_path) == {"a1": 3}
    for text in ('{"folds": {"a1": "3"}}', '{"folds": []}', '{"folds": {"a1": -1}}', "[]"):
        (tmp_path / SPLITS).write_text(text)
        with pytest.raises(TraceError, match="fold"):
            load_splits(tmp_path)


needs_data = pytest.mark.skipif(
    not (SHARED / "redundancybench").is_dir(), reason="the benchmark's data is not beside the clone"
)


@needs_data
def test_the_visible_part_has_the_published_counts():
    items = load_benchmark(SHARED / "redundancybench")
    order = (DUPLICATED, ABNORMAL, INCORRECT, EXPLORATORY)
    counted = {}
    for subset, domain in {(item.subset, item.domain) for item in items}:
        part = [item for item in items if (item.subset, item.domain) == (subset, domain)]
        of = Counter(gold.category for item in part for gold in item.gold)
        counted[subset, domain] = (len(part), of.total(), *(of[name] for name in order))
    assert counted == {
        ("human_annotation", "airline"): (28, 98, 26, 13, 28, 31),
        ("human_annotation", "retail"): (26, 67, 21, 13, 18, 15),
        ("human_annotation", "telecom"): (92, 348, 107, 43, 43, 155),
        ("automated_annotation", "airline"): (121, 300, 33, 0, 89, 178),
        ("automated_annotation", "retail"): (306, 575, 28, 0, 150, 397),
    }
    folds = load_splits(SHARED / "redundancybench")
    assert set(folds) == {item.id for item in items}
    of_group = {}
    for item in items:
        assert of_group.setdefault(item.group, folds[item.id]) == folds[item.id]


@needs_data
@pytest.mark.parametrize(("name", "runs", "steps", "domains"), [("wild", 135, 146, 8), ("coding", 160, 1223, 1)])
def test_other_folders_in_the_layout(name, runs, steps, domains):
    if not (SHARED / name).is_dir():
        pytest.skip(f"{name} is not beside the clone")
    items = load_benchmark(SHARED / name)
    assert len(items) == runs
    assert sum(len(item.gold) for item in items) == steps
    assert len({item.domain for item in items}) == domains
