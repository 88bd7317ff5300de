"""`redclf summary`, `redclf gate`, and the helper for tests of agents."""

from __future__ import annotations

import csv
import json
from xml.etree import ElementTree

import pytest
from traces import said, step, trace, user

from redclf.accounting import account, load_prices
from redclf.cli import main
from redclf.detectors.heuristic import HeuristicDetector
from redclf.errors import RedclfError
from redclf.gate import parse_limit
from redclf.summary import summarise
from redclf.testing import assert_efficient

RUN = trace(
    user("go"), step("look", "a bed", {"n": 1}), step("look", "a bed", {"n": 1}), step("list", "1 2"),
    step("look", "Error: timed out", {"n": 2}), step("look", "dry", {"n": 2}), said("done"),
)  # fmt: skip


def call(number, name, arguments):
    return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


@pytest.fixture
def runs(tmp_path):
    pair = [
        {"role": "assistant", "content": None, "tool_calls": [call(0, "look", {"n": 1})]},
        {"role": "tool", "tool_call_id": "c0", "content": "a <bed> & more"},
    ]
    for name, times in (("one", 3), ("two", 1)):
        messages = [{"role": "user", "content": "go"}, *pair * times, {"role": "assistant", "content": "done"}]
        (tmp_path / f"{name}.json").write_text(json.dumps(messages))
    return tmp_path


@pytest.fixture
def redclf(capfd):
    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([*map(str, arguments), "--detector", "heuristic"])
        return (stop.value.code or 0, *capfd.readouterr())

    return run


def test_figures_by_hand():
    found = summarise([(RUN, HeuristicDetector().detect(RUN))], load_prices(), "gpt-4o").to_dict()
    costs = account(RUN)
    repeat, failed = costs.steps[3, 4], costs.steps[7, 8]
    assert found["total"]["redundant"] == 2 and found["total"]["steps"] == 5 and found["total"]["share"] == 0.4
    assert found["total"]["tokens"] == repeat.total + failed.total
    assert found["by_category"]["Duplicated Step"]["tokens"] == repeat.total
    assert found["by_tool"]["look"]["redundant"] == 2 and found["by_tool"]["look"]["steps"] == 4
    assert found["by_tool"]["list"]["redundant"] == 0 and set(found["by_model"]) == {"gpt-4o"}
    price = load_prices().of("gpt-4o")
    wanted = sum(costs.step_dollars(place, price, cache=False) for place in ((3, 4), (7, 8)))
    assert found["total"]["dollars"] == pytest.approx(wanted)
    assert found["total"]["dollars_cached"] < found["total"]["dollars"]


def test_an_unknown_price_is_not_zero():
    found = summarise([(RUN, HeuristicDetector().detect(RUN))], load_prices()).to_dict()
    assert found["total"]["dollars"] is None and found["by_category"]["Duplicated Step"]["dollars"] is None


def test_summary(redclf, runs, tmp_path):
    code, out, err = redclf("summary", runs, "--json", tmp_path / "s.out", "--csv", tmp_path / "s.csv")
    assert code == 0 and err == "" and "by tool" in out and "2 of 4 steps redundant (50%)" in out and "unknown" in out
    found = json.loads((tmp_path / "s.out").read_text())
    assert found["trajectories"] == 2 and len(found["by_file"]) == 2 and found["tokens_are"] == ["estimated"]
    rows = list(csv.DictReader((tmp_path / "s.csv").open()))
    assert rows[0]["by"] == "total" and rows[0]["redundant"] == "2" and rows[0]["dollars"] == ""
    assert "$" in redclf("summary", runs / "one.json", "--priced-as", "gpt-4o")[1]


@pytest.mark.parametrize(
    ("limits", "code"),
    [(["--max-count", "2"], 0), (["--max-count", "1"], 1), (["--max-share", "0.5"], 0), (["--max-share", "0.49"], 1),
     (["--max-count", "duplicated=1"], 1), (["--max-count", "Abnormal=0"], 0), (["--max-tokens", "1"], 1),
     (["--max-count", "5", "--max-share", "duplicated=0.1"], 1)],
)  # fmt: skip
def test_gate(redclf, runs, tmp_path, limits, code):
    got, out, _ = redclf("gate", runs, *limits, "--junit", tmp_path / "j.xml", "--markdown", tmp_path / "m.md")
    assert got == code and ("broken" in out) == bool(code)
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert int(suite.get("failures")) == code and int(suite.get("tests")) == len(limits) // 2
    text = (tmp_path / "m.md").read_text()
    assert ("**broken**" in text) == bool(code) and "2 of 4 steps redundant" in text
    if code:
        assert "step [3, 4]: look" in suite.find("testcase/failure").text and "step [3, 4]: look" in out


def test_gate_against_a_baseline(redclf, runs, tmp_path):
    base = tmp_path / "base.out"
    assert redclf("gate", runs / "two.json", "--write-baseline", base)[0] == 0
    assert redclf("gate", runs / "two.json", "--baseline", base)[0] == 0
    code, out, _ = redclf("gate", runs, "--baseline", base)
    assert code == 1 and "baseline" in out and "Duplicated" in out
    assert redclf("gate", runs, "--baseline", base, "--tolerance", "0.5")[0] == 0


@pytest.mark.parametrize(
    "more",
    [[], ["--max-share", "2"], ["--max-count", "x"], ["--max-count", "odd=1"], ["--baseline", "none"],
     ["--max-tokens", "-1"],
     ["--max-count", "1", "--tolerance", "7"], ["--max-count", "1", "--threshold", "7"]],
)  # fmt: skip
def test_gate_mistakes(redclf, runs, more):
    code, _, err = redclf("gate", runs, *more)
    assert code == 2 and "expected" in err and err.count("\n") == 1


def test_what_cannot_be_read_does_not_pass(redclf, runs):
    (runs / "bad.json").write_text("{")
    code, _, err = redclf("gate", runs, "--max-count", "99")
    assert code == 2 and "can't be checked" in err
    assert redclf("gate", runs / "none.json", "--max-count", "1")[0] == 2


def test_limits():
    assert parse_limit("count", "Duplicated Step=3").category == "Duplicated Step"
    with pytest.raises(RedclfError, match="expected one of incorrect, abnormal"):
        parse_limit("count", "strange=3")


def test_assert_efficient():
    judge = HeuristicDetector()
    with pytest.raises(AssertionError) as error:
        assert_efficient(RUN, detector=judge)
    text = str(error.value)
    assert "2 of 5 steps are redundant, at most 0 allowed" in text and '[3, 4] look({"n": 1}): Duplicated' in text
    assert_efficient(RUN, max_count=2, detector=judge)
    assert_efficient(RUN, max_share=0.4, detector=judge)
    assert_efficient(RUN, categories=["Exploratory Step"], detector=judge)
    with pytest.raises(AssertionError, match="1 of 5"):
        assert_efficient(RUN, categories=["Abnormal Step"], detector=judge)
