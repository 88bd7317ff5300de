"""Scoring on a Ray cluster: files are mapped over a pool of actors, each with the detector loaded once.

The results are those of the local engine, to the byte and in the same order. Ray starts actors that die
again and repeats their work. A file is the unit of work, so a large one should be split into shards.
"""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from redclf.engine.scorer import Done, Outcome, Scorer, ScorerSettings, key_of, scored_before
from redclf.errors import RedclfError
from redclf.readers import iter_trajectories

#: How often an actor that died is started again, and a file tried again.
_TRIES = 3
#: An outcome, or an error of reading.
Item = Outcome | RedclfError


class _Actor:
    def __init__(self, settings: ScorerSettings, format: str, done: Done, folder: str) -> None:
        os.chdir(folder)  # so that paths, which results name, are the same everywhere
        self._scorer = Scorer(settings)
        self._format = format
        self._done = done

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        items: list[Item] = []
        for trajectory in iter_trajectories(Path(row["path"]), self._format, items.append):
            before = self._done.get(key_of(trajectory))
            items.append(self._scorer(trajectory) if before is None else scored_before(trajectory, before))
        return {"items": pickle.dumps(items)}


def score_files(files: Sequence[Path], scorer: Scorer, format: str, workers: int, done: Done) -> Iterator[Item]:
    """Yield the outcomes and errors of all files, in the order of the files and of the records in them.

    Parameters
    ----------
    files : sequence of Path
        On storage that every node sees.
    scorer : Scorer
        Whose settings each actor loads its own from.
    format : str
    workers : int
        Actors, of one CPU each.
    done : mapping
        Keys of trajectories that an earlier run has scored, to the steps that it found.

    Raises
    ------
    RedclfError
        If Ray is not installed, or a file's actor died again and again.
    """
    try:
        import ray
        import ray.data
    except ImportError:
        raise RedclfError("--engine ray: expected the package ray, found none (pip install 'redclf[ray]')") from None
    if not files:
        return
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
    own = not ray.is_initialized()
    if own:
        ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    rows = ray.data.from_items([{"path": str(path)} for path in files], override_num_blocks=len(files))
    scored = rows.map(
        _Actor,  # type: ignore[arg-type]  # Ray takes classes, too
        fn_constructor_args=(scorer.settings, format, done, str(Path.cwd())),
        compute=ray.data.ActorPoolStrategy(size=min(workers, len(files))),
        num_cpus=1,
        ray_remote_args_fn=lambda: {"max_restarts": _TRIES, "max_task_retries": _TRIES},
    )
    try:
        for row in scored.iter_rows():
            yield from pickle.loads(row["items"])
    except ray.exceptions.RayError as error:
        last = str(error).strip().rsplit("\n", 1)[-1]
        raise RedclfError(f"--engine ray: a file could not be scored in {_TRIES + 1} tries: {last}") from None
    finally:
        if own:
            ray.shutdown()
