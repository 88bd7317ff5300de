"""Pairs of steps for the encoder, and the relation scores that go with them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from redclf.benchmark.data import LabelledTrajectory
from redclf.relations.features import Relations
from redclf.relations.views import TrajectoryView
from redclf.runtime.shortlist import shortlist
from redclf.serialize import Serializer
from train.stacking import Scores
from train.tables import Table


@dataclass
class Target:
    """One target step with its shortlisted pairs.

    Parameters
    ----------
    table : str
        Id of the trajectory (or augmented copy).
    place : int
        The target's place among the trajectory's targets.
    pairs : list of list of int
        Token ids of each pair.
    first : list of int
        Length of the first segment of each pair.
    chosen : list of int
        Places of the shortlisted candidates.
    logit : float
        Redundancy by relations.
    cells : ndarray of shape (4, n_candidates)
        Log-probabilities of the cells by relations.
    redundant, category : int
    gold : int or None
    weight : float
    """

    table: str
    place: int
    pairs: list[list[int]]
    first: list[int]
    chosen: list[int]
    logit: float
    cells: np.ndarray
    redundant: int
    category: int
    gold: int | None
    weight: float


def keep_share(table: Table, place: int, logit: float, share: float, floor: float) -> bool:
    """Decide, the same every time, whether an easy necessary target is trained on."""
    return table.redundant[place] == 1 or logit > floor or drawn(table, place, share)


def drawn(table: Table, place: int, share: float) -> bool:
    """Draw a share of all targets, the same ones every time."""
    digest = hashlib.sha256(f"{table.id}:{place}".encode()).digest()
    return digest[0] / 255 < share


def build_targets(
    items: Sequence[LabelledTrajectory],
    tables: Mapping[str, Table],
    scores: Mapping[str, Sequence[Scores]],
    tokenize: Callable[[str], list[int]],
    special: tuple[int, int],
    partners: int,
    partner_text: bool,
    select: Callable[[Table, int, float], bool],
) -> Iterable[Target]:
    """Yield the targets of trajectories whose tables and relation scores are given.

    Parameters
    ----------
    partners : int
        Candidates per target that the encoder reads.
    partner_text : bool
        Whether it reads the candidates' text, or their relation markers alone.
    select : callable
        Table, place and redundancy logit to whether the target is wanted.
    """
    for item in items:
        table = tables.get(item.trajectory.id)
        if table is None or not len(table.targets):
            continue
        wanted = [k for k, (logit, _) in enumerate(scores[table.id]) if select(table, k, logit)]
        if not wanted:
            continue
        view = TrajectoryView(item.trajectory)
        relations = Relations(view)
        serializer = Serializer(view, tokenize, *special, partner_text=partner_text)
        for place in wanted:
            logit, cells = scores[table.id][place]
            chosen = shortlist(cells, partners)
            step = view.steps[relations.targets[place]]
            made = [serializer.pair(step, relations.candidates[place][c]) for c in chosen]
            yield Target(
                table.id,
                place,
                [ids for ids, _ in made],
                [length for _, length in made],
                chosen,
                logit,
                cells,
                int(table.redundant[place]),
                int(table.category[place]),
                table.gold[place],
                float(table.weight[place]),
            )
