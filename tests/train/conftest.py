from __future__ import annotations

import numpy as np
import pytest

from train.boosting import BoostingSettings
from train.data import Target
from train.tables import Weights, build_table


@pytest.fixture(scope="session")
def tiny_tables(tiny_items):
    return [build_table(item, Weights()) for item in tiny_items]


@pytest.fixture(scope="session")
def few_trees() -> BoostingSettings:
    return BoostingSettings(rounds=8, category_rounds=6, evidence_rounds=6, leaves=7, evidence_leaves=7, threads=1)


@pytest.fixture
def targets() -> list[Target]:
    """Made-up targets: redundant ones have another word in their pairs."""
    rng = np.random.default_rng(0)
    made = []
    for place in range(48):
        redundant = place % 2
        pairs = [[101, 2000 + 500 * redundant, *map(int, rng.integers(3000, 3100, 6)), 102] for _ in range(2)]
        cells = np.full((4, 5), -np.log(20.0))
        gold = (place % 3) if redundant else None
        made.append(
            Target(
                f"t{place}", 0, pairs, [3, 3], [0, 1], 0.0, cells, redundant, place % 4 if redundant else -1, gold, 1.0
            )
        )
    return made
