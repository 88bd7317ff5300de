"""Scoring on one machine, in this process or in several. Results keep the order of the trajectories."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

from redclf.engine.scorer import Done, Outcome, Scorer, ScorerSettings, key_of, scored_before
from redclf.errors import RedclfError
from redclf.trajectory import Trajectory

#: Trajectories that are under way for each process: enough to keep it busy, few enough to bound memory.
_AHEAD = 3


def score_all(
    trajectories: Iterable[Trajectory], scorer: Scorer, workers: int = 1, done: Done | None = None
) -> Iterator[Outcome]:
    """Yield the outcome of every trajectory, in order, as soon as it and those before it are there.

    Parameters
    ----------
    trajectories : iterable of Trajectory
        Read as scoring goes on, not ahead of it by more than a few.
    scorer : Scorer
        Scores in this process; further ones load their own from its settings.
    workers : int
        Processes; 1 scores in this one.
    done : mapping, optional
        Keys of trajectories that an earlier run has scored, to the steps that it found.
    """
    settings = scorer.settings
    before = {} if done is None else done
    if workers == 1:
        for trajectory in trajectories:
            found = before.get(key_of(trajectory))
            yield scorer(trajectory) if found is None else scored_before(trajectory, found)
        return
    with _Pool(replace(settings, threads=settings.threads or 1), workers) as pool:
        for trajectory in trajectories:
            found = before.get(key_of(trajectory))
            if found is None:
                pool.add(trajectory)
            else:
                pool.waiting.append((trajectory, _known(scored_before(trajectory, found))))
            if pool.is_full:
                yield pool.take()
        while pool.waiting:
            yield pool.take()


class _Pool:
    """Processes with a loaded detector each; one that dies is replaced, and its work done again."""

    def __init__(self, settings: ScorerSettings, workers: int) -> None:
        self._settings = settings
        self._workers = workers
        self._executor = self._start()
        self.waiting: deque[tuple[Trajectory, Future[Outcome]]] = deque()

    def _start(self) -> ProcessPoolExecutor:
        # A fork would copy the threads' locks of the libraries that are loaded here.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._workers, context, initializer=_load, initargs=(self._settings,))

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *details: object) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)

    @property
    def is_full(self) -> bool:
        """Whether one must be taken before the next is added."""
        return len(self.waiting) >= _AHEAD * self._workers

    def add(self, trajectory: Trajectory) -> None:
        """Hand a trajectory to the processes."""
        self.waiting.append((trajectory, self._submit(trajectory)))

    def _submit(self, trajectory: Trajectory) -> Future[Outcome]:
        try:
            return self._executor.submit(_score, trajectory)
        except BrokenProcessPool as error:
            broken: Future[Outcome] = Future()
            broken.set_exception(error)
            return broken

    def take(self) -> Outcome:
        """Return the oldest one's outcome, and wait for it."""
        trajectory, future = self.waiting.popleft()
        try:
            return future.result()
        except BrokenProcessPool:
            # Any of those under way may have brought the process down; each now gets a try by itself.
            outcome = self._alone(trajectory)
            self.waiting = deque(
                (other, self._submit(other) if not pending.done() or pending.exception() else pending)
                for other, pending in self.waiting
            )
            return outcome

    def _alone(self, trajectory: Trajectory) -> Outcome:
        self._restart()
        try:
            return self._submit(trajectory).result()
        except BrokenProcessPool:
            self._restart()
            where = trajectory.source or trajectory.id
            text = f"{where}: the process that scored it died, and died again when it scored nothing else"
            return Outcome(where, error=RedclfError(text))

    def _restart(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._executor = self._start()


def _known(outcome: Outcome) -> Future[Outcome]:
    future: Future[Outcome] = Future()
    future.set_result(outcome)
    return future


_scorer: Scorer | None = None


def _load(settings: ScorerSettings) -> None:
    global _scorer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops its children
    _scorer = Scorer(settings)


def _score(trajectory: Trajectory) -> Outcome:
    assert _scorer is not None
    return _scorer(trajectory)
