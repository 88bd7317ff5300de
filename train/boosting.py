"""Gradient boosting on relations: LightGBM models that give one distribution a target, in two passes.

The first pass looks at each target by itself:

- `first_redundant`: P(redundant | target)
- `first_category`: P(category | target, redundant)

The second also sees what the first found in the rest of the trajectory (`redclf.relations.context`):

- `redundant`: P(redundant | target)
- `category`: P(category | target, redundant)
- `evidence`: P(candidate | target, category), a softmax over the target's candidates
- `given`: P(category | target, candidate), fitted on gold evidence

For the fit of the second pass, the first one's scores come from models that did not see the target's task.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import lightgbm as lgb
import numpy as np

from redclf.detectors.distribution import combine
from redclf.relations.context import CONTEXT_NAMES, context_rows
from redclf.relations.features import TARGET_NAMES
from redclf.relations.siblings import GROUP_NAMES
from redclf.taxonomy import CATEGORIES
from train.tables import Table

N_CATEGORIES = len(CATEGORIES)
#: Parts of the training tasks from which the first pass is cross-fitted.
PARTS = 4
#: Columns of a target that only the models of redundancy use.
_GROUP_COLUMNS = np.asarray([TARGET_NAMES.index(name) for name in GROUP_NAMES])


@dataclass(frozen=True)
class BoostingSettings:
    """Settings of the models, chosen once for all folds.

    `copy_candidates` bounds the candidates of an injected step: most are easy, and rows cost time.
    """

    learning_rate: float = 0.04
    leaves: int = 31
    category_leaves: int = 15
    evidence_leaves: int = 31
    rounds: int = 400
    category_rounds: int = 200
    evidence_rounds: int = 300
    first_rounds: int = 150
    first_category_rounds: int = 90
    feature_fraction: float = 0.25
    category_feature_fraction: float = 0.25
    given_feature_fraction: float = 0.1
    copy_candidates: int = 14
    threads: int = 2
    extra: dict[str, Any] = field(default_factory=dict)

    def parameters(self, seed: int, leaves: int | None = None, fraction: float | None = None) -> dict[str, Any]:
        """Return LightGBM's parameters."""
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": leaves or self.leaves,
            "min_data_in_leaf": 10,
            "lambda_l2": 1.0,
            "feature_fraction": fraction or self.feature_fraction,
            "bagging_fraction": 0.8,
            "bagging_freq": 1,
            "max_bin": 127,
            "verbose": -1,
            "num_threads": self.threads,
            "deterministic": True,
            "force_col_wise": True,
            "seed": seed,
            **self.extra,
        }


def pair_rows(targets: np.ndarray, pairs: np.ndarray, category: int) -> np.ndarray:
    """Return the evidence model's input for all candidates of a target and one category."""
    count = len(pairs)
    flags = np.zeros((count, N_CATEGORIES), dtype=np.float32)
    flags[:, category] = 1.0
    return np.concatenate([pairs, np.repeat(targets[None], count, axis=0), flags], axis=1)


def given_rows(targets: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the input of the model of the category given the evidence."""
    return np.concatenate([pairs, np.repeat(targets[None], len(pairs), axis=0)], axis=1)


def listwise_objective(groups: Sequence[int]) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Return a LightGBM objective: cross-entropy of a softmax over each group of rows."""
    sizes = np.asarray(groups)
    starts = np.cumsum(sizes) - sizes
    owner = np.repeat(np.arange(len(sizes)), sizes)

    def objective(scores: np.ndarray, data: lgb.Dataset) -> tuple[np.ndarray, np.ndarray]:
        labels, weights = data.get_label(), data.get_weight()
        if weights is None:  # LightGBM drops weights that are all 1
            weights = np.ones_like(scores)
        exp = np.exp(scores - np.maximum.reduceat(scores, starts)[owner])
        share = exp / np.add.reduceat(exp, starts)[owner]
        return (share - labels) * weights, np.maximum(share * (1 - share), 1e-3) * 2 * weights

    return objective


@dataclass
class FirstPass:
    """The models that look at each target by itself."""

    redundant: lgb.Booster
    category: lgb.Booster

    def context(self, table: Table) -> np.ndarray:
        """Return what this pass says about the other targets, shape (n_targets, len(CONTEXT_NAMES))."""
        if not len(table.targets):
            return np.zeros((0, len(CONTEXT_NAMES)), dtype=np.float32)
        logits, categories = _raw(self.redundant, table.targets), _raw(self.category, table.targets)
        return context_rows(logits, categories, [step[0] for step in table.steps], table.tools)


@dataclass
class Boosting:
    """The fitted models of both passes."""

    first: FirstPass
    redundant: lgb.Booster
    category: lgb.Booster
    evidence: lgb.Booster
    given: lgb.Booster

    def predict(self, table: Table, floor: float = -math.inf) -> list[tuple[float, np.ndarray]]:
        """Return, per target, the logit of redundancy and the log-probabilities of its cells.

        Parameters
        ----------
        table : Table
        floor : float
            Necessary targets whose logit is not above it get even cells: most of the time goes into cells.
        """
        if not len(table.targets):
            return []
        targets = np.concatenate([table.targets, self.first.context(table)], axis=1)
        logits = _raw(self.redundant, targets)
        category = _raw(self.category, targets)
        out = [
            (float(logit), np.full((N_CATEGORIES, len(pairs)), -math.log(N_CATEGORIES * len(pairs))))
            for logit, pairs in zip(logits, table.pairs, strict=True)
        ]
        read = [k for k in range(len(targets)) if logits[k] > floor or table.redundant[k] == 1]
        if not read:
            return out
        evidence = _raw(
            self.evidence,
            np.concatenate([pair_rows(targets[k], table.pairs[k], c) for k in read for c in range(N_CATEGORIES)]),
        )
        given = _raw(self.given, np.concatenate([given_rows(targets[k], table.pairs[k]) for k in read]))
        start = 0
        for k in read:
            count = len(table.pairs[k])
            scores = evidence[N_CATEGORIES * start : N_CATEGORIES * (start + count)].reshape(N_CATEGORIES, count)
            out[k] = (float(logits[k]), combine(category[k], scores, given[start : start + count].T))
            start += count
        return out


def _without_group(targets: np.ndarray) -> np.ndarray:
    """Return targets whose group columns are constant, so that no split is made on them."""
    out: np.ndarray = targets.copy()
    out[:, _GROUP_COLUMNS] = 0.0
    return out


def _raw(booster: lgb.Booster, rows: np.ndarray) -> np.ndarray:
    """Return raw scores, shape (n,) or (n, classes)."""
    return np.asarray(booster.predict(rows, raw_score=True))


def _fit_redundant(tables: Sequence[Table], settings: BoostingSettings, seed: int, rounds: int) -> lgb.Booster:
    keep = [table.redundant >= 0 for table in tables]
    x = np.concatenate([t.targets[k] for t, k in zip(tables, keep, strict=True)])
    y = np.concatenate([t.redundant[k] for t, k in zip(tables, keep, strict=True)])
    w = np.concatenate([t.weight[k] for t, k in zip(tables, keep, strict=True)])
    return lgb.train({**settings.parameters(seed), "objective": "binary"}, lgb.Dataset(x, y, weight=w), rounds)


def _labelled(tables: Sequence[Table]) -> list[tuple[Table, int]]:
    """Return the targets that enter the models of category and evidence."""
    return [(t, k) for t in tables for k in range(len(t.targets)) if t.pair_weight[k] > 0]


def _multiclass(settings: BoostingSettings, seed: int, fraction: float) -> dict[str, Any]:
    return {
        **settings.parameters(seed, settings.category_leaves, fraction),
        "objective": "multiclass",
        "num_class": N_CATEGORIES,
    }


def _fit_category(tables: Sequence[Table], settings: BoostingSettings, seed: int, rounds: int) -> lgb.Booster:
    rows = _labelled(tables)
    x = np.stack([t.targets[k] for t, k in rows])
    y = np.asarray([t.category[k] for t, k in rows])
    w = np.asarray([t.pair_weight[k] for t, k in rows])
    return lgb.train(
        _multiclass(settings, seed, settings.category_feature_fraction), lgb.Dataset(x, y, weight=w), rounds
    )


def _fit_given(tables: Sequence[Table], settings: BoostingSettings, seed: int) -> lgb.Booster:
    held = _with_gold(tables)
    x = np.stack([np.concatenate([t.pairs[k][t.gold[k]], t.targets[k]]) for t, k in held])
    y = np.asarray([t.category[k] for t, k in held])
    w = np.asarray([t.pair_weight[k] for t, k in held])
    return lgb.train(
        _multiclass(settings, seed, settings.given_feature_fraction),
        lgb.Dataset(x, y, weight=w),
        settings.category_rounds,
    )


def _fit_evidence(tables: Sequence[Table], settings: BoostingSettings, seed: int) -> lgb.Booster:
    held = _with_gold(tables)
    kept = [_sampled(t, k, settings.copy_candidates) for t, k in held]
    groups = [len(places) for places in kept]
    x = np.concatenate(
        [pair_rows(t.targets[k], t.pairs[k][places], t.category[k]) for (t, k), places in zip(held, kept, strict=True)]
    )
    labels = np.concatenate(
        [(places == t.gold[k]).astype(np.float32) for (t, k), places in zip(held, kept, strict=True)]
    )
    w = np.concatenate([np.full(n, t.pair_weight[k], np.float32) for (t, k), n in zip(held, groups, strict=True)])
    parameters = {
        **settings.parameters(seed, settings.evidence_leaves),
        "objective": listwise_objective(groups),
    }
    return lgb.train(parameters, lgb.Dataset(x, labels, weight=w), settings.evidence_rounds)


def _sampled(table: Table, place: int, count: int) -> np.ndarray:
    """Return the candidates that the evidence model is fitted on: all, or the gold one and a sample in a copy."""
    places = np.arange(len(table.pairs[place]))
    if table.id == table.origin or len(places) <= count:
        return places
    rng = np.random.default_rng(zlib.crc32(f"{table.id}:{place}".encode()))
    gold = places == table.gold[place]
    others = rng.choice(places[~gold], count - 1, replace=False)
    return np.sort(np.concatenate([others, places[gold]]))


def _with_gold(tables: Sequence[Table]) -> list[tuple[Table, int]]:
    """Return the labelled targets whose gold evidence is among the candidates."""
    return [(t, k) for t, k in _labelled(tables) if t.gold[k] is not None]


def _fit_first(tables: Sequence[Table], settings: BoostingSettings, seed: int) -> FirstPass:
    return FirstPass(
        _fit_redundant(tables, settings, seed, settings.first_rounds),
        _fit_category(tables, settings, seed, settings.first_category_rounds),
    )


def part_of(group: tuple[str, str]) -> int:
    """Return the part of the cross-fit to which a task belongs."""
    return zlib.crc32("\x1f".join(group).encode()) % PARTS


def _with_context(tables: Sequence[Table], settings: BoostingSettings, seed: int) -> list[Table]:
    """Return the tables with context columns, each from a first pass that did not see its task."""
    found: dict[str, np.ndarray] = {}
    for part in range(PARTS):
        inside = [table for table in tables if part_of(table.group) == part]
        outside = [table for table in tables if part_of(table.group) != part]
        if not inside:
            continue
        if not _labelled(outside):
            outside = list(tables)
        first = _fit_first(outside, settings, seed)
        found |= {table.id: first.context(table) for table in inside}
    return [replace(t, targets=np.concatenate([t.targets, found[t.id]], axis=1)) for t in tables]


def fit_boosting(tables: Sequence[Table], settings: BoostingSettings, seed: int = 0) -> Boosting:
    """Fit the models of both passes on tables (originals and copies alike)."""
    first = _fit_first(tables, settings, seed)
    wide = _with_context(tables, settings, seed)
    plain = [replace(t, targets=_without_group(t.targets)) for t in wide]

    return Boosting(
        first,
        redundant=_fit_redundant(wide, settings, seed, settings.rounds),
        category=_fit_category(wide, settings, seed, settings.category_rounds),
        evidence=_fit_evidence(plain, settings, seed),
        given=_fit_given(plain, settings, seed),
    )
