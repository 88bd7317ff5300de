"""The encoder by itself: its operations, and what int8, pruning and batches are worth."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from redclf.bench.machine import fp32_rate, int8_rate
from redclf.benchmark.data import spread
from redclf.detectors.cross_encoder import CrossEncoderDetector
from redclf.errors import ModelError
from redclf.relations.features import Relations
from redclf.relations.views import TrajectoryView
from redclf.runtime.encoder import Encoder, OnnxEncoder, Pair
from redclf.trajectory import Trajectory

_ROUNDS = 3


def operations(tokens: int, layers: int, hidden: int) -> tuple[int, int]:
    """Return the operations of one pair in the encoder's products: those done in int8, and those in fp32.

    A layer does 4 h^2 multiplications a token in attention's projections, 4 h^2 in the first product of the
    feed-forward part (both int8), 4 h^2 in its second one, and 2 L h in attention itself (both fp32); each with an
    addition, so twice as many operations. h is the hidden size, L the number of tokens.
    """
    int8 = 2 * tokens * 8 * hidden**2
    fp32 = 2 * tokens * (4 * hidden**2 + 2 * tokens * hidden)
    return layers * int8, layers * fp32


class CountingDetector(CrossEncoderDetector):
    """The detector, noting the pairs that its encoder reads."""

    def __init__(self, model: str | Path | None = None) -> None:
        super().__init__(model)
        self.pairs: list[Pair] = []
        score = self._encoder.score

        class Noting:
            def score(_, pairs: Sequence[Pair]) -> Any:  # noqa: N805
                self.pairs.extend(pairs)
                return score(pairs)

        self._encoder = Noting()

    def every_pair(self, trajectory: Trajectory) -> list[Pair]:
        """Return the pairs of all steps with all their candidates: what an encoder without relations would read."""
        relations = Relations(TrajectoryView(trajectory))
        serializer = self.serializer(relations)
        steps = [relations.view.steps[ordinal] for ordinal in relations.targets]
        return [
            serializer.pair(step, candidate)
            for step, candidates in zip(steps, relations.candidates, strict=True)
            for candidate in candidates
        ]


def measure(
    model: str | Path | None, trajectories: Sequence[Trajectory], pairs: int, log: Callable[[str], None]
) -> dict[str, Any]:
    """Return ratios and the arithmetic limit, all from this run.

    Parameters
    ----------
    model : str or Path or None
    trajectories : sequence of Trajectory
        Whose pairs are counted.
    pairs : int
        How many of them are timed.
    log : callable
        Told of what is left out.
    """
    detector = CountingDetector(model)
    every = 0
    for trajectory in trajectories:
        detector.detect(trajectory)
        every += len(detector.every_pair(trajectory))
    read = detector.pairs
    if not read:
        return {"pairs_read": 0, "pairs_in_all": every}
    sample = spread(read, pairs)
    path = detector.folder.path / "encoder.onnx"
    backends: dict[str, Encoder] = {
        "int8, as detect does": OnnxEncoder(path, batch=detector.partners),
        "int8, one by one": OnnxEncoder(path, batch=1),
        "int8, batches of 16": OnnxEncoder(path, batch=16),
    }
    try:
        torch = CrossEncoderDetector(model, backend="torch", device="cpu")
        backends["fp32 torch, one by one"] = _OneByOne(torch)
        backends["fp32 torch, batches of 16"] = torch.encoder
    except ModelError as error:
        log(f"torch left out: {error}")
    times = _interleaved(backends, sample)
    own = times["int8, as detect does"]
    tokens = sum(len(ids) for ids, _ in sample)
    found: dict[str, Any] = {
        "pairs_read": len(read),
        "pairs_in_all": every,
        "pairs_timed": len(sample),
        "tokens_timed": tokens,
        "seconds_a_pair": {name: value / len(sample) for name, value in times.items()},
        "ratios": {
            "pruned against all pairs": every / len(read),
            "batches of 16 against one by one": times["int8, one by one"] / times["int8, batches of 16"],
        },
    }
    if "fp32 torch, batches of 16" in times:
        same = times["int8, batches of 16"]
        found["ratios"]["int8 against fp32 torch, both in batches of 16"] = times["fp32 torch, batches of 16"] / same
        naive = times["fp32 torch, one by one"] * every / len(read)
        found["ratios"]["int8 pruned against naive fp32 torch over all pairs"] = naive / own
    found["limit"] = _limit(detector, sample, own)
    return found


class _OneByOne:
    """A torch encoder with batches of one."""

    def __init__(self, detector: CrossEncoderDetector) -> None:
        self._encoder = detector.encoder

    def score(self, pairs: Sequence[Pair]) -> Any:
        """Score each pair by itself."""
        return [self._encoder.score([pair]) for pair in pairs]


def _interleaved(backends: Mapping[str, Encoder], pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the median seconds of each backend over rounds in which all take turns."""
    times: dict[str, list[float]] = {name: [] for name in backends}
    for backend in backends.values():
        backend.score(pairs[:4])
    for _ in range(_ROUNDS):
        for name, backend in backends.items():
            started = time.perf_counter()
            backend.score(pairs)
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in times.items()}


def _limit(detector: CrossEncoderDetector, pairs: Sequence[Pair], seconds: float) -> dict[str, Any]:
    """Return how long the products alone would take at the machine's rates, and how near the encoder is."""
    encoder = detector.folder.config.get("encoder", {})
    layers, hidden = int(encoder.get("layers", 0)), int(encoder.get("hidden", 0))
    if not layers or not hidden:
        return {}
    both = [operations(len(ids), layers, hidden) for ids, _ in pairs]
    int8, fp32 = (sum(column) for column in zip(*both, strict=True))
    rates = {"int8": int8_rate(), "fp32": fp32_rate()}
    found: dict[str, Any] = {
        "layers": layers,
        "hidden": hidden,
        "int8_operations": int8,
        "fp32_operations": fp32,
        "int8_rate": rates["int8"],
        "fp32_rate": rates["fp32"],
    }
    if rates["int8"] and rates["fp32"]:
        least = int8 / rates["int8"] + fp32 / rates["fp32"]
        found |= {"seconds": least, "share_of_the_limit": least / seconds}
    return found
