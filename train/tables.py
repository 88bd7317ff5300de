"""Labelled trajectories as arrays: what the relations models are fitted on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from redclf.benchmark.data import LabelledTrajectory
from redclf.benchmark.predictions import evidence_key
from redclf.relations.features import PAIR_NAMES, TARGET_NAMES, Relations
from redclf.relations.views import TrajectoryView
from redclf.taxonomy import CATEGORIES
from train.copies import Augmentation, cut_copies, injected_copies

CATEGORY_INDEX = {category: place for place, category in enumerate(CATEGORIES)}


@dataclass
class Table:
    """The relations and labels of one trajectory.

    Parameters
    ----------
    id : str
        Of the trajectory; an augmented copy shares its original's `origin`.
    origin : str
    domain : str
    targets : ndarray of shape (n_targets, n_features)
    pairs : list of ndarray of shape (n_candidates, n_pair_features)
    evidence : list of list of tuple
        Evidence references of the candidates, per target.
    redundant : ndarray of shape (n_targets,)
        1 redundant, 0 necessary, -1 not to be used.
    category : ndarray of shape (n_targets,)
        Index into CATEGORIES, -1 where there is no gold step.
    gold : list of int or None
        Place of the gold evidence among the candidates, None where it is not among them.
    weight : ndarray of shape (n_targets,)
    pair_weight : ndarray of shape (n_targets,)
        0 where the target does not enter the category and evidence models.
    steps : list of tuple of int
    tools : list of str
    """

    id: str
    origin: str
    domain: str
    group: tuple[str, str]
    targets: np.ndarray
    pairs: list[np.ndarray]
    evidence: list[list[tuple[int, ...]]]
    redundant: np.ndarray
    category: np.ndarray
    gold: list[int | None]
    weight: np.ndarray
    pair_weight: np.ndarray
    steps: list[tuple[int, int]]
    tools: list[str]

    @cached_property
    def digest(self) -> str:
        """A hash of all that the models learn from and are asked about."""
        digest = hashlib.blake2b(digest_size=16)
        names = [self.id, self.origin, self.domain, self.gold, self.evidence, self.steps]
        digest.update(json.dumps(names).encode())
        for array in (self.targets, self.redundant, self.category, self.weight, self.pair_weight, *self.pairs):
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def digest_of(tables: Iterable[Table]) -> str:
    """Return one hash over some tables and the names of their features, whatever their order."""
    digest = hashlib.blake2b(json.dumps([TARGET_NAMES, PAIR_NAMES]).encode(), digest_size=16)
    for value in sorted(table.digest for table in tables):
        digest.update(value.encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Weights:
    """How much a label counts."""

    uncertain: float = 0.6
    coding: float = 0.5
    injected: float = 0.5
    context: float = 0.15
    cut: float = 0.3


def build_table(
    item: LabelledTrajectory,
    weights: Weights,
    origin: str | None = None,
    inserted: Collection[tuple[int, int]] | None = None,
    scale: float = 1.0,
    first: int = 0,
) -> Table:
    """Compute the relations of one labelled trajectory.

    Parameters
    ----------
    inserted : collection of step, optional
        For an augmented copy: its injected steps. Only they enter the category and evidence
        models; the copy's other steps count as context for redundancy.
    scale : float
        Weight of the whole trajectory.
    first : int
        Ordinal of the first step that is used: a cut copy is there for its last steps.
    """
    relations = Relations(TrajectoryView(item.trajectory))
    steps = [relations.view.steps[place] for place in relations.targets]
    gold_of = {step.step: step for step in item.gold}
    base = scale * (weights.coding if item.domain == "coding" else 1.0)
    redundant: list[int] = []
    category: list[int] = []
    gold: list[int | None] = []
    weight: list[float] = []
    pair_weight: list[float] = []
    for step, candidates in zip(steps, relations.candidates, strict=True):
        key = (step.call_index, step.result_index)
        label = gold_of.get(key)
        value = base
        if label is not None and label.certain is False:
            value *= weights.uncertain
        injected = inserted is not None and key in inserted
        if inserted is not None:
            value *= weights.injected if injected else weights.context
        if step.ordinal < first:
            value = 0.0
        unused = key in item.disputed or step.ordinal < first
        redundant.append(-1 if unused else int(label is not None))
        weight.append(0.0 if unused else value)
        if label is None:
            category.append(-1)
            gold.append(None)
            pair_weight.append(0.0)
            continue
        wanted = evidence_key(label.evidence)
        places = [i for i, c in enumerate(candidates) if evidence_key(c.evidence) == wanted]
        category.append(CATEGORY_INDEX[label.category])
        gold.append(places[0] if places else None)
        pair_weight.append(value if inserted is None or injected else 0.0)
    return Table(
        id=item.trajectory.id,
        origin=origin or item.trajectory.id,
        domain=item.domain,
        group=item.group,
        targets=relations.target_features,
        pairs=relations.pair_features,
        evidence=[[c.evidence for c in candidates] for candidates in relations.candidates],
        redundant=np.asarray(redundant),
        category=np.asarray(category),
        gold=gold,
        weight=np.asarray(weight, dtype=np.float32),
        pair_weight=np.asarray(pair_weight, dtype=np.float32),
        steps=[(step.call_index, step.result_index) for step in steps],
        tools=[step.tool for step in steps],
    )


def _originals(job: tuple[LabelledTrajectory, Weights]) -> Table:
    return build_table(*job)


def _copies(job: tuple[LabelledTrajectory, Weights, Augmentation, int]) -> list[Table]:
    item, weights, plan, seed = job
    origin = item.trajectory.id
    tables = [build_table(made, weights, origin, steps) for made, steps in injected_copies(item, plan, seed)]
    return tables + [
        build_table(made, weights, origin, scale=weights.cut, first=first)
        for made, first in cut_copies(item, plan, seed)
    ]


def build_originals(items: Sequence[LabelledTrajectory], weights: Weights, workers: int = 2) -> list[Table]:
    """Return the tables of trajectories."""
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(_originals, [(item, weights) for item in items], chunksize=8))


def build_copies(
    items: Sequence[LabelledTrajectory], weights: Weights, plan: Augmentation, seed: int = 0, workers: int = 2
) -> list[Table]:
    """Return the tables of the trajectories' augmented copies."""
    if not plan.copies and not plan.cuts:
        return []
    with ProcessPoolExecutor(workers) as pool:
        jobs = [(item, weights, plan, seed) for item in items]
        return [table for tables in pool.map(_copies, jobs, chunksize=8) for table in tables]


def select(tables: Iterable[Table], origins: set[str]) -> list[Table]:
    """Return the tables whose original trajectory is among `origins`."""
    return [table for table in tables if table.origin in origins]
