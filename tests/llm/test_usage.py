from __future__ import annotations

import pytest

from redclf.llm.prices import Price
from redclf.llm.usage import Usage, total


def record(started, seconds, given=100, produced=10):
    return {"started": started, "seconds": seconds, "input_tokens": given, "output_tokens": produced}


def test_totals():
    usage = total([record(0, 2), record(1, 2), record(100, 1), None], 2, Price(1.0, 10.0))
    # 0 to 3 and 100 to 101: overlaps count once, the pause between two runs not at all.
    assert usage == Usage(4, 2, 300, 30, 4.0, pytest.approx(0.0006))


def test_what_is_not_reported_is_not_made_up():
    assert total([record(0, 1, None, None)], 0, Price(1, 1)) == Usage(1, 0, None, None, 1, None)
    assert total([record(0, 1, None, 5), record(0, 1, 7, None)], 0, None) == Usage(2, 0, 7, 5, 1, None)
    assert total([], 0, Price(1, 1)).cost_usd == 0


def test_there_and_back():
    usage = Usage(1, 0, 3, 4, None, 0.5)
    assert Usage.from_dict(usage.to_dict()) == usage
    assert Usage.from_dict({"requests": "many", "failed": True}) == Usage()
