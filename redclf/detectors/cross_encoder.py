"""The default detector: relations, and a cross-encoder that reads the pairs which they leave open."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

from redclf.detectors.distribution import DistributionDetector, FloatArray, TargetScores
from redclf.detectors.model_folder import ModelFolder
from redclf.errors import ModelError
from redclf.relations.features import Relations
from redclf.runtime.encoder import Encoder, OnnxEncoder
from redclf.runtime.relation_scorer import RelationScorer
from redclf.runtime.shortlist import shortlist
from redclf.serialize import Serializer

ONNX, TORCH = "onnx", "torch"

#: Shortlisted candidates of a target, and the encoder's outputs for them, shape (n_pairs, 10).
Reading = tuple[list[int], FloatArray]


class CrossEncoderDetector(DistributionDetector):
    """Finds redundant steps with a trained model folder; needs no torch.

    Parameters
    ----------
    model : str or Path, optional
        Folder or name of a model; the shipped one by default.
    threads : int, optional
        Threads of the encoder; scores do not depend on them.
    backend : {"onnx", "torch"}
        What runs the encoder. torch is slower to start, and for GPUs; its scores are those of the same weights in fp32.
    device : str, optional
        Of torch: "cpu", "cuda", "cuda:1", ...; a GPU where there is one by default.

    Examples
    --------
    >>> from redclf import Detector, load
    >>> detector = Detector()  # doctest: +SKIP
    >>> detector.detect(load("run.json")[0])  # doctest: +SKIP
    """

    name = "cross-encoder"

    def __init__(
        self,
        model: str | Path | None = None,
        threads: int | None = None,
        backend: str = ONNX,
        device: str | None = None,
    ) -> None:
        super().__init__()
        self.folder = ModelFolder.open(model)
        path, config = self.folder.path, self.folder.config
        self._scorer = RelationScorer(path / "relations")
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
        self._encoder = self._open(backend, device, threads)

    def _open(self, backend: str, device: str | None, threads: int | None) -> Encoder:
        path = self.folder.path / "encoder.onnx"
        if backend == ONNX:
            if device not in (None, "cpu"):
                raise ModelError(f"device {device}: expected cpu with the onnx backend; torch runs on others")
            return OnnxEncoder(path, threads)
        if backend != TORCH:
            raise ModelError(f"expected a backend among {ONNX}, {TORCH}, got {backend!r}")
        from redclf.runtime.torch_encoder import TorchEncoder

        shape = self.folder.config.get("encoder")
        heads = shape.get("attention_heads") if isinstance(shape, dict) else None
        if not isinstance(heads, int):
            raise ModelError(f"{self.folder.path}/config.json: expected encoder.attention_heads for the torch backend")
        return TorchEncoder(path, heads, device, threads)

    def _tokenize(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    @property
    def encoder(self) -> Encoder:
        """The backend that runs the encoder."""
        return self._encoder

    @property
    def partners(self) -> int:
        """Candidates of a step that the encoder reads."""
        return self._partners

    def serializer(self, relations: Relations) -> Serializer:
        """Return what turns a trajectory's pairs into token ids."""
        return Serializer(relations.view, self._tokenize, *self._special, partner_text=self._partner_text)

    def reader(self, relations: Relations) -> Callable[[int, FloatArray], Reading]:
        """Return what lets the encoder read a target: its place and its cells to shortlist and outputs.

        The pairs of a target are one batch, so that its scores depend on nothing else that is read.
        """
        serializer = self.serializer(relations)

        def read(place: int, cells: FloatArray) -> Reading:
            chosen = shortlist(cells, self._partners)
            step = relations.view.steps[relations.targets[place]]
            pairs = [serializer.pair(step, relations.candidates[place][at]) for at in chosen]
            return chosen, self._encoder.score(pairs)

        return read

    def score(self, relations: Relations) -> list[TargetScores]:
        """Return the distribution of every target; the encoder reads those that may be redundant.

        Where it has no say over redundancy, it reads a target only when its category or evidence is wanted.
        """
        logits, cells = self._scorer.open(relations)
        read = self.reader(relations)

        def joined(place: int) -> FloatArray:
            own = cells(place)
            chosen, outputs = read(place, own)
            return self._fusion.join(outputs, chosen, own)

        found = []
        for place, logit in enumerate(logits):
            if logit <= self._floor:
                found.append(TargetScores(self._plain.logit(logit), partial(cells, place)))
            elif self._fusion.reads_redundancy:
                own = cells(place)
                chosen, outputs = read(place, own)
                found.append(
                    TargetScores(self._fusion.log_odds(outputs, logit), self._fusion.join(outputs, chosen, own))
                )
            else:
                found.append(TargetScores(self._fusion.log_odds(None, logit), partial(joined, place)))
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
