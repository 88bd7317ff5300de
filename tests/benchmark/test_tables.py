import io

from rich.console import Console
from scoring_helpers import Scripted, gold_step, make_item, prediction

from redclf.benchmark.evaluate import evaluate, paired_difference
from redclf.benchmark.tables import (
    breakdown_table,
    difference_table,
    overall_table,
    percent,
    render,
    to_markdown,
)
from redclf.hashing import trajectory_hash


def evaluation(trained=False):
    data = [make_item([gold_step((3, 4))], name=name) for name in ("a", "b|c")]
    known = frozenset({trajectory_hash(data[0].trajectory)}) if trained else frozenset()
    return evaluate(Scripted({"a": [prediction()]}, trained=known), data)


def test_percent():
    assert percent(0.12345) == "12.3"
    assert percent(1.0, [0.5, 1.0]) == "100.0 [50.0, 100.0]"
    assert percent(None) == "-"


def test_markdown_has_every_block():
    text = to_markdown(evaluation())
    for part in ("StepCls", "EvidenceRet", "P@10", "at least one", "Localisation", "Triples"):
        assert part in text
    for part in ("by domain", "by subset", "by category", "by messages"):
        assert part in text
    assert "50.0 [0.0, 100.0]" in text
    assert "IN-SAMPLE" not in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in lines)


def test_in_sample_is_said_in_every_table_of_a_detector():
    marked = evaluation(trained=True)
    assert to_markdown(marked).startswith("**IN-SAMPLE: scripted was trained on 1 of these 2")
    assert overall_table([marked]).rows[0][0] == "scripted (IN-SAMPLE)"
    assert "IN-SAMPLE" in breakdown_table(marked, "by_domain").title


def test_terminal():
    stream = io.StringIO()
    Console(file=stream, width=200).print(render(evaluation(trained=True)))
    assert "IN-SAMPLE" in stream.getvalue()
    assert "Localisation" in stream.getvalue()


def test_difference_table():
    first = evaluation()
    second = evaluate(Scripted(), [make_item([gold_step((3, 4))], name=n) for n in ("a", "b|c")])
    table = difference_table("one", "two", paired_difference(first, second))
    row = next(cells for cells in table.rows if cells[0] == "stepdet.p@1")
    assert row == ("stepdet.p@1", "50.0", "0.0", "50.0 [0.0, 100.0]", "no")
    assert "| stepdet.p@1 |" in table.markdown()
