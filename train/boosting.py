"""Gradient boosting on relations: four LightGBM models that give one distribution a target.

- `redundant`: P(redundant | target)
- `category`: P(category | target, redundant)
- `evidence`: P(candidate | target, category), a softmax over the target's candidates
- `given`: P(category | target, candidate), fitted on gold evidence
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import lightgbm as lgb
import numpy as np

from redclf.detectors.distribution import combine
from redclf.taxonomy import CATEGORIES
from train.tables import Table

N_CATEGORIES = len(CATEGORIES)


@dataclass(frozen=True)
class BoostingSettings:
    """Settings of the four models, chosen once for all folds."""

    learning_rate: float = 0.04
    leaves: int = 31
    category_leaves: int = 15
    evidence_leaves: int = 31
    rounds: int = 400
    category_rounds: int = 200
    evidence_rounds: int = 300
    feature_fraction: float = 0.25
    threads: int = 2
    extra: dict[str, Any] = field(default_factory=dict)

    def parameters(self, seed: int, leaves: int | None = None) -> dict[str, Any]:
        """Return LightGBM's parameters."""
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": leaves or self.leaves,
            "min_data_in_leaf": 10,
            "lambda_l2": 1.0,
            "feature_fraction": self.feature_fraction,
            "bagging_fraction": 0.8,
            "bagging_freq": 1,
            "max_bin": 127,
            "verbose": -1,
            "num_threads": self.threads,
            "deterministic": True,
            "force_row_wise": True,
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
class Boosting:
    """The four fitted models."""

    redundant: lgb.Booster
    category: lgb.Booster
    evidence: lgb.Booster
    given: lgb.Booster

    def predict(self, table: Table) -> list[tuple[float, np.ndarray]]:
        """Return, per target, the logit of redundancy and the log-probabilities of its cells."""
        if not len(table.targets):
            return []
        logits = _raw(self.redundant, table.targets)
        category = _raw(self.category, table.targets)
        rows = [
            pair_rows(target, pairs, c)
            for target, pairs in zip(table.targets, table.pairs, strict=True)
            for c in range(N_CATEGORIES)
        ]
        evidence = _raw(self.evidence, np.concatenate(rows))
        given = _raw(
            self.given, np.concatenate([given_rows(t, p) for t, p in zip(table.targets, table.pairs, strict=True)])
        )
        out, start, pair_start = [], 0, 0
        for place, pairs in enumerate(table.pairs):
            count = len(pairs)
            scores = evidence[start : start + N_CATEGORIES * count].reshape(N_CATEGORIES, count)
            cells = combine(category[place], scores, given[pair_start : pair_start + count].T)
            out.append((float(logits[place]), cells))
            start += N_CATEGORIES * count
            pair_start += count
        return out


def _raw(booster: lgb.Booster, rows: np.ndarray) -> np.ndarray:
    """Return raw scores, shape (n,) or (n, classes)."""
    return np.asarray(booster.predict(rows, raw_score=True))


def fit_boosting(tables: Sequence[Table], settings: BoostingSettings, seed: int = 0) -> Boosting:
    """Fit the four models on tables (originals and copies alike)."""
    keep = [table.redundant >= 0 for table in tables]
    x = np.concatenate([t.targets[k] for t, k in zip(tables, keep, strict=True)])
    y = np.concatenate([t.redundant[k] for t, k in zip(tables, keep, strict=True)])
    w = np.concatenate([t.weight[k] for t, k in zip(tables, keep, strict=True)])
    redundant = lgb.train(
        {**settings.parameters(seed), "objective": "binary"}, lgb.Dataset(x, y, weight=w), settings.rounds
    )
    rows = [(t, k) for t in tables for k in range(len(t.targets)) if t.pair_weight[k] > 0]
    x = np.stack([t.targets[k] for t, k in rows])
    y = np.asarray([t.category[k] for t, k in rows])
    w = np.asarray([t.pair_weight[k] for t, k in rows])
    multi = {
        **settings.parameters(seed, settings.category_leaves),
        "objective": "multiclass",
        "num_class": N_CATEGORIES,
    }
    category = lgb.train(multi, lgb.Dataset(x, y, weight=w), settings.category_rounds)
    held = [(t, k) for t, k in rows if t.gold[k] is not None]
    x = np.stack([np.concatenate([t.pairs[k][t.gold[k]], t.targets[k]]) for t, k in held])
    y = np.asarray([t.category[k] for t, k in held])
    w = np.asarray([t.pair_weight[k] for t, k in held])
    given = lgb.train(multi, lgb.Dataset(x, y, weight=w), settings.category_rounds)
    groups = [len(t.pairs[k]) for t, k in held]
    x = np.concatenate([pair_rows(t.targets[k], t.pairs[k], t.category[k]) for t, k in held])
    labels = np.concatenate([np.eye(n, dtype=np.float32)[t.gold[k]] for (t, k), n in zip(held, groups, strict=True)])
    w = np.concatenate([np.full(n, t.pair_weight[k], np.float32) for (t, k), n in zip(held, groups, strict=True)])
    evidence = lgb.train(
        {**settings.parameters(seed, settings.evidence_leaves), "objective": listwise_objective(groups)},
        lgb.Dataset(x, labels, weight=w),
        settings.evidence_rounds,
    )
    return Boosting(redundant, category, evidence, given)
