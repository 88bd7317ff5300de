"""Out-of-fold relation scores: what the encoder is trained on top of.

A target's relation scores must come from models that never saw its fold, or the encoder would learn
to trust them too much. For outer fold k, fold j of its training part is scored by a model fitted
without j and k. Models without {j, k} serve both, so five folds take fifteen fits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from train.boosting import Boosting, BoostingSettings, fit_boosting
from train.tables import Table

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


@dataclass
class Stack:
    """Fits relations models without chosen folds, and keeps their scores on disk.

    Parameters
    ----------
    originals, copies : list of Table
        Trajectories and their augmented copies.
    folds : mapping
        Trajectory id to fold.
    settings : BoostingSettings
    directory : Path
        Where the scores are kept; a run that was killed goes on from them.
    """

    originals: Sequence[Table]
    copies: Sequence[Table]
    folds: Mapping[str, int]
    settings: BoostingSettings
    directory: Path
    seed: int = 0
    log: Callable[[str], None] = print

    def fit(self, without: frozenset[int]) -> Boosting:
        """Fit the models on all folds but some."""
        tables = [t for t in (*self.originals, *self.copies) if self.folds[t.origin] not in without]
        return fit_boosting(tables, self.settings, self.seed)

    def scores(self, without: frozenset[int]) -> dict[str, list[Scores]]:
        """Return the scores of the left-out folds' tables, from models fitted without them."""
        self.directory.mkdir(parents=True, exist_ok=True)
        signature = json.dumps(
            [asdict(self.settings), self.seed, len(self.originals), len(self.copies)], sort_keys=True
        )
        digest = hashlib.sha256(signature.encode()).hexdigest()[:8]
        path = self.directory / f"relations-without-{'-'.join(map(str, sorted(without)))}-{digest}.npz"
        if not path.exists():
            self.log(f"fitting relations without folds {sorted(without)}")
            model = self.fit(without)
            tables = [t for t in (*self.originals, *self.copies) if self.folds[t.origin] in without]
            save_scores(path, {t.id: model.predict(t) for t in tables})
        return load_scores(path)

    def stacked(self, outer: int | None) -> dict[str, list[Scores]]:
        """Return scores for training: every fold's from models that saw neither it nor `outer`.

        With an outer fold its own scores are there too, from models fitted on all other folds.
        """
        out: dict[str, list[Scores]] = {}
        for fold in sorted(set(self.folds.values())):
            if fold == outer:
                found = self.scores(frozenset({fold}))
            else:
                found = self.scores(frozenset({fold} if outer is None else {fold, outer}))
            origin = {t.id: t.origin for t in (*self.originals, *self.copies)}
            out.update({key: value for key, value in found.items() if self.folds[origin[key]] == fold})
        return out
