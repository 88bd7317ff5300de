from __future__ import annotations

import numpy as np

from redclf.runtime.shortlist import shortlist


def test_most_probable_first_over_all_categories():
    cells = np.log(np.array([[0.1, 0.3, 0.05], [0.25, 0.0001, 0.05], [0.1, 0.01, 0.05], [0.05, 0.01, 0.0299]]))
    assert shortlist(cells, 2) == [0, 1]
    assert shortlist(cells, 9) == [0, 1, 2]


def test_ties_keep_their_order():
    assert shortlist(np.full((4, 5), -3.0), 3) == [0, 1, 2]


def test_nothing_to_choose():
    assert shortlist(np.zeros((4, 3)), 0) == []
