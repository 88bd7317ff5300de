"""The default detector: relations, and a cross-encoder that reads the pairs which they leave open."""

from __future__ import annotations

import math
from pathlib import Path

from redclf.detectors.distribution import DistributionDetector, FloatArray, TargetScores
from redclf.detectors.model_folder import ModelFolder
from redclf.errors import ModelError
from redclf.relations.features import Relations
from redclf.runtime.encoder import OnnxEncoder
from redclf.runtime.relation_scorer import RelationScorer
from redclf.runtime.shortlist import shortlist
from redclf.serialize import Serializer

#: Shortlisted candidates of a target, and the encoder's outputs for them, shape (n_pairs, 10).
Reading = tuple[list[int], FloatArray]


class CrossEncoderDetector(DistributionDetector):
    """Finds redundant steps with a trained model folder; needs no torch.

    Parameters
    ----------
    model : str or Path, optional
        Folder or name of a model; the shipped one by default.
    threads : int, optional
        Threads of ONNX Runtime.

    Examples
    --------
    >>> from redclf import Detector, load
    >>> detector = Detector()  # doctest: +SKIP
    >>> detector.detect(load("run.json")[0])  # doctest: +SKIP
    """

    name = "cross-encoder"

    def __init__(self, model: str | Path | None = None, threads: int | None = None) -> None:
        super().__init__()
        self.folder = ModelFolder.open(model)
        path, config = self.folder.path, self.folder.config
        self._scorer = RelationScorer(path / "relations", threads)
        self._plain = self.folder.calibration()
        self._fusion, self.threshold = self.folder.fusion()
        try:
            self._partners = int(config["partners"])
            floor = float(config["floor"])
        except (KeyError, TypeError, ValueError):
            raise ModelError(f"{path}/config.json: expected partners and floor") from None
        self._floor = math.log(floor / (1 - floor))
        self._partner_text = bool(config.get("partner_text", True))
        self._tokenizer = _load_tokenizer(path / "tokenizer.json")
        self._special = (self._tokenizer.token_to_id("[CLS]"), self._tokenizer.token_to_id("[SEP]"))
        self._encoder = OnnxEncoder(path / "encoder.onnx", threads)

    def _tokenize(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def read(self, relations: Relations) -> tuple[list[tuple[float, FloatArray]], dict[int, Reading]]:
        """Let the encoder read the targets that relations leave open.

        Returns
        -------
        scored : list of tuple
            Logit and cells of every target by relations, not calibrated.
        read : dict
            Place of a target to the shortlisted candidates and the encoder's outputs for them.
        """
        scored = self._scorer.score(relations)
        serializer = Serializer(relations.view, self._tokenize, *self._special, partner_text=self._partner_text)
        pairs: list[tuple[list[int], int]] = []
        chosen: dict[int, list[int]] = {}
        for place, (logit, cells) in enumerate(scored):
            if logit <= self._floor:
                continue
            chosen[place] = shortlist(cells, self._partners)
            step = relations.view.steps[relations.targets[place]]
            pairs += [serializer.pair(step, relations.candidates[place][at]) for at in chosen[place]]
        outputs = self._encoder.score(pairs)
        read: dict[int, Reading] = {}
        start = 0
        for place, places in chosen.items():
            read[place] = (places, outputs[start : start + len(places)])
            start += len(places)
        return scored, read

    def score(self, relations: Relations) -> list[TargetScores]:
        """Return the distribution of every target; the encoder reads those that may be redundant."""
        scored, read = self.read(relations)
        found = []
        for place, (logit, cells) in enumerate(scored):
            if place not in read:
                found.append(TargetScores(self._plain.logit(logit), cells))
                continue
            chosen, rows = read[place]
            found.append(TargetScores(self._fusion.log_odds(rows, logit), self._fusion.join(rows, chosen, cells)))
        return found

    def trained_on(self) -> frozenset[str]:
        """Return the hashes of the training trajectories."""
        return self.folder.trained_on()


def _load_tokenizer(path: Path):  # type: ignore[no-untyped-def]
    from tokenizers import Tokenizer

    if not path.is_file():
        raise ModelError(f"{path}: expected a tokenizer, found none")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises a bare Exception
        raise ModelError(f"{path}: can't be loaded: {error}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
