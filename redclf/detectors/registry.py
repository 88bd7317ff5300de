"""The detectors by name: what `--detector` takes."""

from __future__ import annotations

from pathlib import Path

from redclf.detectors.base import Detector
from redclf.errors import RedclfError

CROSS_ENCODER = "cross-encoder"
RELATIONS = "relations"
HEURISTIC = "heuristic"
MAJORITY = "majority"
LLM = "llm:"
JEV = "jev:"
CASCADE = "cascade:"

#: Names and one line each.
DETECTORS: dict[str, str] = {
    CROSS_ENCODER: "the trained cross-encoder, with the relations between steps (default)",
    RELATIONS: "gradient boosting on the relations alone, no text",
    HEURISTIC: "two rules, no learning: identical steps, and failures that a retry replaced",
    MAJORITY: "no rule at all: always the most frequent answer",
}
#: What further names begin with, and one line each.
PREFIXES: dict[str, str] = {
    LLM: "an LLM judge: llm:CONFIG.yaml or llm:MODEL@BASE_URL",
    JEV: "Jev: jev:CONFIG.yaml or jev:MODEL@BASE_URL",
    CASCADE: "the second judges what the first is unsure of: cascade:FIRST+SECOND or cascade:FIRST+SECOND~WIDTH",
}


def create_detector(
    name: str = CROSS_ENCODER,
    model: str | Path | None = None,
    data: Path | None = None,
    requests: Path | None = None,
    threads: int | None = None,
) -> Detector:
    """Return a detector.

    Parameters
    ----------
    name : str
        One of `DETECTORS`, one of `PREFIXES` and what follows it, or the path of a `.jsonl` file of recorded results,
        which is played back.
    model : str or Path, optional
        Folder or name of a model, for the detectors that have one; the shipped model by default.
    data : Path, optional
        Benchmark folder of the judged trajectories, for the judges' settings that need one.
    requests : Path, optional
        Folder of the request logs of detectors behind an API; `runs/requests` by default.
    threads : int, optional
        Threads of the encoder, where there is one.

    Raises
    ------
    RedclfError
        If there is no such detector, or its model, config or file can't be loaded.
    """
    # Imported here, so that one detector needs no other one's libraries.
    if name.startswith(CASCADE):
        return _cascade(name.removeprefix(CASCADE), model, data, requests)
    if name == CROSS_ENCODER:
        from redclf.detectors.cross_encoder import CrossEncoderDetector

        return CrossEncoderDetector(model, threads)
    if name == RELATIONS:
        from redclf.detectors.relations import RelationsDetector

        return RelationsDetector(model)
    is_file = name.endswith(".jsonl")
    is_endpoint = name.startswith((LLM, JEV))
    if not is_file and not is_endpoint and name not in DETECTORS:
        known = ", ".join([*DETECTORS, *(f"{prefix}..." for prefix in PREFIXES)])
        raise RedclfError(f"expected a detector among {known}, or a .jsonl file of results, got {name!r}")
    if model is not None:
        raise RedclfError(f"--model: detector {name} has no model; expected one of {CROSS_ENCODER}, {RELATIONS}")
    if is_endpoint:
        return _endpoint(name, data, requests)
    if is_file:
        from redclf.benchmark.results import ResultFileDetector

        return ResultFileDetector(name)
    if name == MAJORITY:
        from redclf.detectors.majority import MajorityDetector

        return MajorityDetector()
    from redclf.detectors.heuristic import HeuristicDetector

    return HeuristicDetector()


def _endpoint(name: str, data: Path | None, requests: Path | None) -> Detector:
    from redclf.detectors.endpoint import REQUESTS
    from redclf.llm.config import JevConfig, LLMConfig, load_config

    folder = REQUESTS if requests is None else requests
    if name.startswith(LLM):
        from redclf.detectors.llm import LLMDetector

        return LLMDetector(load_config(LLMConfig, name.removeprefix(LLM)), data, folder)
    from redclf.detectors.jev import JevDetector

    return JevDetector(load_config(JevConfig, name.removeprefix(JEV)), folder)


def _cascade(text: str, model: str | Path | None, data: Path | None, requests: Path | None) -> Detector:
    from redclf.detectors.cascade import WIDTH, CascadeDetector

    first, plus, rest = text.partition("+")
    second, _, width = rest.rpartition("~")
    try:
        number = float(width)
    except ValueError:
        # Also a path with a ~ in it.
        second, number = rest, WIDTH
    if not plus or not first or not second or not 0 <= number <= 1 or first.startswith(tuple(PREFIXES)):
        raise RedclfError(
            f"expected cascade:FIRST+SECOND~WIDTH, FIRST no judge behind an API, WIDTH from 0 to 1, got cascade:{text}"
        )
    return CascadeDetector(create_detector(first, model), create_detector(second, None, data, requests), number)
