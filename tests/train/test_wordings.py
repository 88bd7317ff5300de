from __future__ import annotations

import random
import re
from collections import Counter

from redclf.failure import failure_kind
from train import wordings


def training_failures(count: int = 3000) -> set[str]:
    rng = random.Random(0)
    return {wordings.failure_text(rng) for _ in range(count)}


class TestFailures:
    def test_there_are_thousands(self):
        assert len(training_failures()) > 2000

    def test_held_out_is_not_trained_on(self):
        trained = training_failures()
        held = wordings.held_out_failures()
        assert len(held) > 60 and trained.isdisjoint(held)
        causes = [max(re.split(r"\{\w+\}", cause), key=len).lower() for cause in wordings.HELD_OUT_CAUSES]
        assert not any(cause in text.lower() for text in trained for cause in causes)

    def test_the_classifier_knows_most_of_them(self):
        kinds = Counter(failure_kind(text) for text in training_failures())
        assert kinds["transient"] > 0.8 * sum(kinds.values()) and kinds["unknown_tool"] == 0
        held = Counter(failure_kind(text) for text in wordings.held_out_failures())
        assert held["unknown_tool"] == 0


class TestRefusals:
    def test_no_refusal_is_transient(self):
        for texts in (wordings.REFUSED, wordings.BAD_FORM, wordings.NO_PAGE):
            for text in texts:
                assert failure_kind(text.format(what="id", value="A7", url="https://a.example/b")) != "transient"

    def test_empty_results_are_no_failures(self):
        assert all(failure_kind(text) is None for text in (*wordings.EMPTY, *wordings.RULED_OUT))

    def test_unknown_tools_are_never_transient(self):
        assert all(failure_kind(text.format(tool="get_x")) != "transient" for text in wordings.UNKNOWN_TOOL)
