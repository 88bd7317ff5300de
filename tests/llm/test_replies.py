from __future__ import annotations

import json

import pytest
from scoring_helpers import make_trajectory, record

from redclf.detectors.base import Retrieval
from redclf.llm.replies import parse_records, read_category, read_retrieval
from redclf.taxonomy import DUPLICATED, INCORRECT

RECORDS = [record()]
WHOLE = json.dumps({"predictions": RECORDS})


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        f"\n {WHOLE}\n",
        json.dumps(RECORDS),
        json.dumps(RECORDS[0]),
        f"```json\n{WHOLE}\n```",
        f"```\n{json.dumps(RECORDS, indent=2)}\n```",
        f"First a thought.\n```json\r\n{WHOLE}\n```\nThat is all.",
        f"```python\nx = 1\n```\n```json\n{WHOLE}\n```",
        f"The steps [3, 4] and {{others}} lead to {WHOLE}. I hope this helps.",
        f"So: {json.dumps(RECORDS)} (one step)",
        f"So: {json.dumps(RECORDS[0])}",
        json.dumps({"thoughts": "x" * 100_000, "predictions": RECORDS}),
    ],
)
def test_json_is_found_bare_fenced_and_within_prose(text):
    assert parse_records(text) == RECORDS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "null",
        "7",
        '"predictions"',
        WHOLE[:-20],
        json.dumps({"predictions": RECORDS * 3})[:-30],
        f"```json\n{json.dumps(RECORDS * 3, indent=1)[:-30]}",
        f"My answer is {json.dumps(RECORDS * 3)[:-30]}",
        '{"predictions": "none"}',
        '{"predictions": null}',
        '{"answer": []}',
        "There is nothing redundant here, see [3, 4].",
        "[" * 200_000,
        '{"a":' * 100_000,
        "```json\n{\n```",
        "9" * 6000,
    ],
)
def test_what_holds_no_records_fails(text):
    assert parse_records(text) is None


@pytest.mark.parametrize("text", ["[]", '{"predictions": []}', "```json\n[]\n```"])
def test_nothing_redundant_is_an_answer(text):
    assert parse_records(text) == []


@pytest.mark.parametrize(
    ("records", "category"),
    [
        ([record()], DUPLICATED),
        ([{"redundant_step_type": INCORRECT}], INCORRECT),
        ([record(step=(1, 2), category=INCORRECT), record()], DUPLICATED),
        ([record(category="Nonsense"), record()], DUPLICATED),
        ([record(), record(category=INCORRECT)], DUPLICATED),
        ([record(category="duplicated")], None),
        ([record(category=["Duplicated Step"])], None),
        ([record(step="3,4")], None),
        (["Duplicated Step", 7, None], None),
        ([], None),
    ],
)
def test_category_of_the_first_usable_record_about_the_step(records, category):
    assert read_category(records, (3, 4)) == category


@pytest.mark.parametrize(
    ("records", "found"),
    [
        ([record()], Retrieval(DUPLICATED, (1, 2), 0.9)),
        ([record(confidence="high")], Retrieval(DUPLICATED, (1, 2), 1.0)),
        ([record(evidence=[99, 100]), record(evidence=[-1])], Retrieval(DUPLICATED, (-1,), 0.9)),
        ([record(evidence=[True, 2])], None),
        ([record(evidence=[1.0, 2])], None),
        ([record(step=(5, 6))], None),
    ],
)
def test_retrieval(records, found):
    assert read_retrieval(records, make_trajectory(), (3, 4)) == found
