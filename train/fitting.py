"""One fit: the encoder on top of stacked relation scores, then calibration and threshold."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from redclf.benchmark.data import LabelledTrajectory
from redclf.detectors.model_folder import Calibration
from redclf.model.pair_encoder import PairEncoder, base_folder, load_base
from redclf.runtime.fusion import Fusion, text_alone
from train.copies import copies_of
from train.data import Target, build_targets, drawn, keep_share
from train.encoder import StateCache, is_trained, predict, train_encoder
from train.recipe import Recipe
from train.stacking import Scores
from train.tables import Table, build_copies, build_originals, digest_of

TOKENIZER = "tokenizer.json"
#: Held-out targets below which nothing is fitted on them.
FEWEST = 30


def load_tokenizer(base: str) -> Tokenizer:
    """Return the base encoder's tokenizer, without truncation or padding."""
    folder = base_folder("all-MiniLM-L6-v2" if base == "random-tiny" else base)
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def state_cache(recipe: Recipe, log: Callable[[str], None]) -> StateCache | None:
    """Return an empty cache of the frozen layers' states; None where no layer stays frozen."""
    if recipe.encoder.frozen_layers and recipe.training.tuning in ("top", "frozen"):
        module = load_base(recipe.base, recipe.encoder)
        return StateCache(module.cuda() if torch.cuda.is_available() else module, log=log)
    return None


@dataclass
class Workshop:
    """What all folds share: tables, copies, tokenizer and the frozen layers' states."""

    recipe: Recipe
    items: Sequence[LabelledTrajectory]
    copies: Sequence[LabelledTrajectory]
    tables: Mapping[str, Table]
    tokenizer: Tokenizer
    cache: StateCache | None
    log: Callable[[str], None]

    @classmethod
    def open(
        cls,
        recipe: Recipe,
        items: Sequence[LabelledTrajectory],
        log: Callable[[str], None],
        encoder: bool = True,
        originals: Sequence[Table] | None = None,
    ) -> Workshop:
        """Build tables of the trajectories and their copies.

        Parameters
        ----------
        encoder : bool
            Whether the encoder will be trained; without it no text is prepared.
        originals : sequence of Table, optional
            The trajectories' tables, where they are known.
        """
        plan = recipe.augmentation
        originals = originals or build_originals(items, recipe.weights)
        extra = build_copies(items, recipe.weights, plan, recipe.seed)
        log(f"{len(originals)} trajectories, {len(extra)} augmented copies")
        made = copies_of(items, plan, recipe.seed) if encoder else []
        cache = state_cache(recipe, log) if encoder else None
        tables = {table.id: table for table in (*originals, *extra)}
        return cls(recipe, items, made, tables, load_tokenizer(recipe.base), cache, log)

    def retuned(self, recipe: Recipe) -> Workshop:
        """Return one with the same tables, for a recipe that differs in its encoder alone."""
        return replace(self, recipe=recipe, cache=state_cache(recipe, self.log))

    @property
    def digest(self) -> str:
        """A hash of all tables."""
        return digest_of(self.tables.values())

    @property
    def originals(self) -> list[Table]:
        """The tables of the trajectories themselves."""
        return [table for table in self.tables.values() if table.origin == table.id]

    @property
    def extra(self) -> list[Table]:
        """The tables of the augmented copies."""
        return [table for table in self.tables.values() if table.origin != table.id]

    def targets(
        self,
        items: Sequence[LabelledTrajectory],
        scores: Mapping[str, Sequence[Scores]],
        select: Callable[[Table, int, float], bool],
    ) -> list[Target]:
        """Return the targets of some trajectories, with their pairs tokenised."""
        special = (int(self.tokenizer.token_to_id("[CLS]") or 0), int(self.tokenizer.token_to_id("[SEP]") or 0))

        def tokenize(text: str) -> list[int]:
            return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

        recipe = self.recipe
        return list(
            build_targets(items, self.tables, scores, tokenize, special, recipe.partners, recipe.partner_text, select)
        )


@dataclass
class Fit:
    """A trained encoder, the calibrations of relations and text alone, and how they join."""

    module: PairEncoder
    relations: Calibration
    text: Calibration
    fusion: Fusion

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return all of it but the encoder as plain data; both go by the threshold of relations.

        The text moves few targets, so the threshold is chosen on the many that relations score.
        """
        both = vars(self.fusion) | {"threshold": self.relations.threshold}
        return {"relations": vars(self.relations), "text": vars(self.text), "both": both}


def floor_logit(recipe: Recipe) -> float:
    """Return the log-odds below which the encoder does not read a target."""
    return math.log(recipe.floor / (1 - recipe.floor))


def held_out_groups(items: Sequence[LabelledTrajectory], share: float, seed: int) -> set[tuple[str, str]]:
    """Return the tasks kept for calibration, each domain in proportion."""
    by_domain: dict[str, list[tuple[str, str]]] = {}
    for group in sorted({item.group for item in items}):
        by_domain.setdefault(group[0], []).append(group)
    kept: set[tuple[str, str]] = set()
    for domain, groups in by_domain.items():
        random.Random(f"{seed}:{domain}").shuffle(groups)
        kept.update(groups[: max(1, round(share * len(groups)))])
    return kept


def fit_encoder(
    workshop: Workshop,
    train_items: Sequence[LabelledTrajectory],
    scores: Mapping[str, Sequence[Scores]],
    directory: Path,
) -> Fit:
    """Train and calibrate on some trajectories (and the copies made from them)."""
    recipe, log = workshop.recipe, workshop.log
    floor = floor_logit(recipe)
    kept = held_out_groups(train_items, recipe.held_out, recipe.seed)
    fitted = [item for item in train_items if item.group not in kept]
    held = [item for item in train_items if item.group in kept]
    origins = {item.trajectory.id for item in fitted}
    copies = [item for item in workshop.copies if workshop.tables[item.trajectory.id].origin in origins]

    def wanted(table: Table, place: int, logit: float) -> bool:
        return table.redundant[place] >= 0 and keep_share(table, place, logit, recipe.easy_share, floor)

    def injected(table: Table, place: int, logit: float) -> bool:
        base = recipe.weights.coding if table.domain == "coding" else 1.0
        certain = table.weight[place] > 1.5 * recipe.weights.context * base
        return bool(certain and drawn(table, place, recipe.copy_share))

    targets: list[Target] = []
    if not is_trained(directory):
        targets = workshop.targets(fitted, scores, wanted) + workshop.targets(copies, scores, injected)
    readable = workshop.targets(held, scores, lambda t, k, logit: t.redundant[k] >= 0 and logit > floor)
    log(f"{len(targets)} targets to train on, {len(readable)} held out for calibration")
    if workshop.cache is not None:
        workshop.cache.add([*targets, *readable])
    module = load_base(recipe.base, recipe.encoder)
    module = train_encoder(module, targets, recipe.training, directory, workshop.cache, readable, recipe.seed, log)
    outputs = predict(module, workshop.cache, readable)
    alone = [(text_alone(rows, t.chosen, t.cells.shape[1])[0], t) for rows, t in zip(outputs, readable, strict=True)]
    relations = relations_calibration(workshop, train_items, scores)
    fit = Fit(module, relations, calibrate(alone), fusion_of(recipe, relations))
    (directory / "calibration.json").write_text(json.dumps(fit.to_dict(), indent=1), encoding="utf-8")
    return fit


def relations_calibration(
    workshop: Workshop, items: Sequence[LabelledTrajectory], scores: Mapping[str, Sequence[Scores]]
) -> Calibration:
    """Calibrate relation scores, and choose the threshold, on stacked scores of the training part."""
    rows, trajectories = [], []
    for item in items:
        table = workshop.tables[item.trajectory.id]
        trip = []
        for place, (logit, cells) in enumerate(scores.get(table.id, ())):
            if table.redundant[place] < 0:
                continue
            rows.append((logit, int(table.redundant[place]), float(table.weight[place])))
            category, candidate = np.unravel_index(int(cells.argmax()), cells.shape)
            hit = bool(table.redundant[place] and category == table.category[place] and candidate == table.gold[place])
            trip.append((logit, float(np.exp(cells.max())), bool(table.redundant[place]), hit))
        trajectories.append((float(table.weight.max(initial=0.0)), trip))
    logits, labels, weights = (np.asarray(column) for column in zip(*rows, strict=True))
    scale, shift = platt(logits, labels, weights)
    threshold = choose_threshold(trajectories, scale, shift, workshop.recipe.recall)
    return Calibration(scale, shift, threshold)


def calibrate(scored: Sequence[tuple[float, Target]]) -> Calibration:
    """Fit scale and shift of redundancy on held-out targets."""
    if len(scored) < FEWEST:
        return Calibration()
    logits = np.asarray([logit for logit, _ in scored])
    labels = np.asarray([target.redundant for _, target in scored])
    weights = np.asarray([target.weight for _, target in scored])
    return Calibration(*platt(logits, labels, weights))


def fusion_of(recipe: Recipe, relations: Calibration) -> Fusion:
    """Return how relations and text join: redundancy by relations, the categories of both multiplied.

    The weight of the text is part of the recipe: fitted on the held-out tasks of one fold it came out near zero,
    although the fold's test part and domains of other tools gained from it. A dozen tasks are too few to fit it on.
    The encoder's residual is left out; it raised the cross-entropy of the cells on held-out tasks.
    """
    return Fusion((relations.scale, 0.0, 0.0, relations.shift), (1.0, 0.0, recipe.text))


def platt(logits: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return scale and shift of a logistic calibration (Platt), lightly held to 1 and 0."""
    from scipy.optimize import minimize

    def loss(x: np.ndarray) -> float:
        z = x[0] * logits + x[1]
        sign = np.where(labels > 0, 1.0, -1.0)
        return float((weights * np.logaddexp(0, -sign * z)).sum() + 2.0 * ((x[0] - 1) ** 2 + x[1] ** 2))

    found = minimize(loss, np.array([1.0, 0.0]), method="Nelder-Mead")
    return float(found.x[0]), float(found.x[1])


def choose_threshold(
    trajectories: Sequence[tuple[float, Sequence[tuple[float, float, bool, bool]]]],
    scale: float,
    shift: float,
    recall: float,
) -> float:
    """Return the threshold with the best mean P@K (at least one prediction) whose recall is at least `recall`."""
    best, chosen = -1.0, 0.5
    total = sum(weight * sum(t[2] for t in trip) for weight, trip in trajectories)
    probabilities = [
        (weight, [(1 / (1 + math.exp(-(scale * logit + shift))), share, gold, hit) for logit, share, gold, hit in trip])
        for weight, trip in trajectories
    ]
    for threshold in np.arange(0.2, 0.96, 0.025):
        found = value = count = 0.0
        for weight, trip in probabilities:
            ranked = sorted(trip, key=lambda t: -t[0] * t[1])
            taken = [t for t in ranked if t[0] >= threshold]
            found += weight * sum(t[2] for t in taken)
            if not any(t[2] for t in trip):
                continue
            taken = taken or ranked[:1]
            for k in (1, 5, 10):
                value += weight * float(np.mean([t[3] for t in taken[:k]])) / 3
            count += weight
        if total and found / total >= recall and count and value / count > best:
            best, chosen = value / count, float(threshold)
    return round(chosen, 3)
