from __future__ import annotations

import pytest

from redclf.benchmark.published import load_published

PUBLISHED = load_published()
WHOLE = [name for name, count in PUBLISHED.trajectories.items() for _ in range(count)]


def test_rows_are_marked_and_have_their_source():
    for table in (PUBLISHED.overall_table(), PUBLISHED.domain_table(), PUBLISHED.cost_table()):
        assert all(cells[0].endswith("(published)") for cells in table.rows)
        assert "arXiv 2605.29893" in table.title
    overall = {cells[0]: cells[1:] for cells in PUBLISHED.overall_table().rows}
    assert overall["Claude-Opus-5 (published)"] == ("84.39", "75.09", "74.69", "69.53", "69.53", "71.25")
    assert overall["Jev (published)"] == ("79.41", "-", "-", "-", "-", "-")


@pytest.mark.parametrize("row", PUBLISHED.overall, ids=lambda row: row["detector"])
def test_means_are_those_of_the_columns(row):
    if "mean" in row:
        assert row["mean"] == pytest.approx((row["p@1"] + row["p@5"] + row["p@10"]) / 3, abs=0.011)


@pytest.mark.parametrize(
    ("domains", "words"),
    [
        (["airline"] * 149, ["airline 149 of 203", "other trajectories", "nothing here is better or worse"]),
        (["airline"] * 203 + ["retail"] * 452, ["rows on airline and retail", "and no others", "only DeepSeek"]),
        (WHOLE, ["All rows may be compared"]),
    ],
)
def test_what_may_be_compared(domains, words):
    note = PUBLISHED.note(domains)
    assert all(word in note for word in words)
