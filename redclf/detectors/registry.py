"""The detectors by name: what `--detector` takes."""

from __future__ import annotations

from pathlib import Path

from redclf.detectors.base import Detector
from redclf.errors import RedclfError

CROSS_ENCODER = "cross-encoder"
RELATIONS = "relations"
HEURISTIC = "heuristic"

#: Names and one line each.
DETECTORS: dict[str, str] = {
    CROSS_ENCODER: "the trained cross-encoder, with the relations between steps (default)",
    RELATIONS: "gradient boosting on the relations alone, no text",
    HEURISTIC: "two rules, no learning: identical steps, and failures that a retry replaced",
}


def create_detector(name: str = CROSS_ENCODER, model: str | Path | None = None, threads: int | None = None) -> Detector:
    """Return a detector.

    Parameters
    ----------
    name : str
        One of `DETECTORS`, or the path of a `.jsonl` file of recorded results, which is played back.
    model : str or Path, optional
        Folder or name of a model, for the detectors that have one; the shipped model by default.
    threads : int, optional
        Threads of the encoder, where there is one.

    Raises
    ------
    RedclfError
        If there is no such detector, or its model or file can't be loaded.
    """
    # Imported here, so that one detector needs no other one's libraries.
    if name == CROSS_ENCODER:
        from redclf.detectors.cross_encoder import CrossEncoderDetector

        return CrossEncoderDetector(model, threads)
    if name == RELATIONS:
        from redclf.detectors.relations import RelationsDetector

        return RelationsDetector(model)
    is_file = name.endswith(".jsonl")
    if not is_file and name != HEURISTIC:
        known = ", ".join(DETECTORS)
        raise RedclfError(f"expected a detector among {known}, or a .jsonl file of results, got {name!r}")
    if model is not None:
        raise RedclfError(f"--model: detector {name} has no model; expected one of {CROSS_ENCODER}, {RELATIONS}")
    if is_file:
        from redclf.benchmark.results import ResultFileDetector

        return ResultFileDetector(name)
    from redclf.detectors.heuristic import HeuristicDetector

    return HeuristicDetector()
