"""Out-of-fold relation scores: what the encoder is trained on top of.

A target's relation scores must come from models that never saw its fold, or the encoder would learn
to trust them too much. For outer fold k, fold j of its training part is scored by a model fitted
without j and k. Models without {j, k} serve both, so five folds take fifteen fits.
"""

from __future__ import annotations

import hashlib
import json
import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from train.boosting import Boosting, BoostingSettings, fit_boosting
from train.tables import Table, digest_of

#: Relation scores of one target: logit of redundancy, log-probabilities of its cells.
Scores = tuple[float, np.ndarray]


def save_scores(path: Path, scores: Mapping[str, Sequence[Scores]]) -> None:
    """Write the scores of many tables to one npz file, atomically."""
    ids, logits, cells, sizes = [], [], [], []
    for key, targets in scores.items():
        for logit, cell in targets:
            ids.append(key)
            logits.append(logit)
            sizes.append(cell.shape[1])
            cells.append(cell.T.astype(np.float32))
    part = path.with_suffix(".part.npz")
    np.savez(
        part,
        ids=np.asarray(ids),
        logits=np.asarray(logits, dtype=np.float32),
        sizes=np.asarray(sizes),
        cells=np.concatenate(cells) if cells else np.zeros((0, 4), np.float32),
    )
    part.replace(path)


def load_scores(path: Path) -> dict[str, list[Scores]]:
    """Read what `save_scores` wrote."""
    with np.load(path) as data:
        ends = np.cumsum(data["sizes"])
        cells, sizes = data["cells"], data["sizes"]
        out: dict[str, list[Scores]] = {}
        for key, logit, end, size in zip(data["ids"], data["logits"], ends, sizes, strict=True):
            out.setdefault(str(key), []).append((float(logit), cells[end - size : end].T))
        return out


#: Log-odds of redundancy up to which the cells of a copy's necessary steps are left even.
EASY = -2.0


@dataclass
class Stack:
    """Fits relations models without chosen folds, and keeps them and their scores on disk.

    What is kept goes by a hash of the tables, settings and seed, so that nothing stale is ever read.

    Parameters
    ----------
    originals, copies : list of Table
        Trajectories and their augmented copies.
    folds : mapping
        Trajectory id to fold.
    settings : BoostingSettings
    directory : Path
        Where models and scores are kept; a run that was killed goes on from them.
    """

    originals: Sequence[Table]
    copies: Sequence[Table]
    folds: Mapping[str, int]
    settings: BoostingSettings
    directory: Path
    seed: int = 0
    log: Callable[[str], None] = print

    def _tables(self, folds: frozenset[int], inside: bool) -> list[Table]:
        """Return the tables of some folds, or of all others."""
        return [t for t in (*self.originals, *self.copies) if (self.folds[t.origin] in folds) == inside]

    def _digest(self, *groups: Sequence[Table]) -> str:
        settings = asdict(self.settings)
        del settings["threads"]  # it decides how fast, not what
        text = json.dumps([settings, self.seed, [digest_of(tables) for tables in groups]], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def _path(self, kind: str, without: frozenset[int], digest: str, suffix: str) -> Path:
        self.directory.mkdir(parents=True, exist_ok=True)
        names = "-".join(map(str, sorted(without))) or "none"
        return self.directory / f"{kind}-without-{names}-{digest}{suffix}"

    def fit(self, without: frozenset[int]) -> Boosting:
        """Fit the models on all folds but some."""
        return fit_boosting(self._tables(without, inside=False), self.settings, self.seed)

    def model(self, without: frozenset[int]) -> Boosting:
        """Return the models fitted on all folds but some, from disk where an earlier run left them."""
        path = self._path("model", without, self._digest(self._tables(without, inside=False)), ".pkl")
        if path.exists():
            with path.open("rb") as stream:
                model: Boosting = pickle.load(stream)
            return model
        self.log(f"fitting relations without folds {sorted(without)}" if without else "fitting relations on all folds")
        model = self.fit(without)
        part = path.with_suffix(".part")
        with part.open("wb") as stream:
            pickle.dump(model, stream)
        part.replace(path)
        return model

    def scores(self, without: frozenset[int]) -> dict[str, list[Scores]]:
        """Return the scores of the left-out folds' tables, from models fitted without them."""
        asked = self._tables(without, inside=True)
        path = self._path("scores", without, self._digest(self._tables(without, inside=False), asked), ".npz")
        if not path.exists():
            model = self.model(without)
            # A copy is only ever trained on, so the cells of its easy steps are never read.
            save_scores(path, {t.id: model.predict(t, EASY if t.id != t.origin else -math.inf) for t in asked})
        return load_scores(path)

    def stacked(self, outer: int | None) -> dict[str, list[Scores]]:
        """Return scores for training: every fold's from models that saw neither it nor `outer`.

        With an outer fold its own scores are there too, from models fitted on all other folds.
        """
        out: dict[str, list[Scores]] = {}
        origin = {t.id: t.origin for t in (*self.originals, *self.copies)}
        for fold in sorted(set(self.folds.values())):
            if fold == outer:
                found = self.scores(frozenset({fold}))
            else:
                found = self.scores(frozenset({fold} if outer is None else {fold, outer}))
            out.update({key: value for key, value in found.items() if self.folds[origin[key]] == fold})
        return out
