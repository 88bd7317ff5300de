"""Asks an endpoint: several requests at a time, with retries, and none that the request log already answers."""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

from redclf.errors import RedclfError
from redclf.llm.log import RequestLog

#: Seconds between retries at most, where the endpoint does not say.
_LONGEST_BACKOFF = 30.0
#: Seconds that an endpoint may ask to wait.
_LONGEST_WAIT = 600.0
#: Requests in a row that may stay without an answer before the run gives up.
_GIVE_UP = 20


class EndpointError(RedclfError):
    """An endpoint that can't be used: no key, no such model, or no answer at all."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Parameters
    ----------
    key : str
        Hash of endpoint and body: the same question has the same key.
    task : str
        `stepcls`, `evidenceret` or `stepdet`.
    trajectory_id : str
    body : mapping
        What is sent.
    """

    key: str
    task: str
    trajectory_id: str
    body: Mapping[str, Any]

    @classmethod
    def of(cls, base_url: str, task: str, trajectory_id: str, body: Mapping[str, Any]) -> Request:
        """Return the request with its key."""
        text = json.dumps([base_url, body], sort_keys=True, ensure_ascii=True)
        return cls(hashlib.sha256(text.encode()).hexdigest(), task, trajectory_id, body)


@dataclass(frozen=True, slots=True)
class Answer:
    """What an endpoint sent.

    Parameters
    ----------
    reply : Any
        A JSON value; None where the reply can't be read.
    note : str
        Why there is none.
    input_tokens, output_tokens : int or None
        As the endpoint reports them.
    """

    reply: Any
    note: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None


class Unanswered(Exception):  # noqa: N818
    """No answer came. Its text holds no key.

    Parameters
    ----------
    reason : str
    retry : bool
        Whether it may go better next time.
    wait : float or None
        Seconds that the endpoint asks to wait.
    fatal : bool
        Whether no other request would go better either.
    """

    def __init__(self, reason: str, retry: bool, wait: float | None = None, fatal: bool = False) -> None:
        super().__init__(reason)
        self.retry = retry
        self.wait = wait
        self.fatal = fatal


class Client(Protocol):
    """What the runner needs of an SDK."""

    def ask(self, request: Request) -> Answer:
        """Send one request, once.

        Raises
        ------
        Unanswered
        """


class Runner:
    """Answers requests from the log, and asks the endpoint for the others.

    Parameters
    ----------
    connect : callable
        Makes the client; called when there is something to send.
    log : RequestLog
    concurrency, retries : int
    backoff : float
        Seconds before the first retry.
    """

    def __init__(
        self, connect: Callable[[], Client], log: RequestLog, concurrency: int, retries: int, backoff: float
    ) -> None:
        self.log = log
        #: Attempts that had to be repeated.
        self.retried = 0
        #: Key of each request that stayed without an answer, and why. They are asked again by the next run.
        self.unanswered: dict[str, str] = {}
        self._connect = connect
        self._client: Client | None = None
        self._concurrency = concurrency
        self._retries = retries
        self._backoff = backoff
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._in_a_row = 0

    def ask(
        self,
        requests: Iterable[Request],
        progress: Callable[[Request], None] | None = None,
        failed: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Get an answer to each request, in whatever order they come.

        Parameters
        ----------
        requests : iterable of Request
            Taken as they are needed, so that not all bodies are in memory.
        progress : callable, optional
            Called with each one that is done, sent or not.
        failed : callable, optional
            Called with what ends the run, as soon as it does; taking the next request may last.

        Raises
        ------
        EndpointError
            If the endpoint can't be used. What was answered until then is in the log.
        """
        room = threading.Semaphore(2 * self._concurrency)
        errors: list[BaseException] = []
        under_way: set[str] = set()

        def work(request: Request) -> None:
            try:
                if self._stop.is_set():
                    return
                self._send(request)
                if progress is not None:
                    progress(request)
            except BaseException as error:
                errors.append(error)
                self._stop.set()
                if failed is not None:
                    failed(error)
            finally:
                room.release()

        self._stop.clear()
        self._in_a_row = 0
        with closing(self.log), ThreadPoolExecutor(self._concurrency) as pool:
            try:
                for request in requests:
                    if self._known(request) or request.key in under_way:
                        if progress is not None:
                            progress(request)
                        continue
                    if not under_way:
                        self._connect_once()
                        self.log.open()
                    if self._known(request):
                        if progress is not None:
                            progress(request)
                        continue
                    room.acquire()
                    if self._stop.is_set():
                        break
                    under_way.add(request.key)
                    pool.submit(work, request)
            except BaseException:
                # What is under way has been paid for: wait for it, send no more.
                self._stop.set()
                raise
        if errors:
            raise errors[0]

    def _known(self, request: Request) -> bool:
        return self.log.get(request.key) is not None or request.key in self.unanswered

    def _connect_once(self) -> None:
        if self._client is None:
            self._client = self._connect()

    def _send(self, request: Request) -> None:
        assert self._client is not None
        started, clock = time.time(), time.perf_counter()
        for attempt in range(self._retries + 1):
            try:
                answer = self._client.ask(request)
            except Unanswered as error:
                if error.fatal:
                    raise EndpointError(str(error)) from None
                if not error.retry or attempt == self._retries or self._pause(attempt, error.wait):
                    self._give_up(request, str(error))
                    return
                with self._lock:
                    self.retried += 1
                continue
            self._in_a_row = 0
            self.log.add(
                {
                    "key": request.key,
                    "task": request.task,
                    "trajectory_id": request.trajectory_id,
                    "reply": answer.reply,
                    "note": answer.note,
                    "input_tokens": answer.input_tokens,
                    "output_tokens": answer.output_tokens,
                    "attempts": attempt + 1,
                    "started": round(started, 3),
                    "seconds": round(time.perf_counter() - clock, 3),
                }
            )
            return

    def _pause(self, attempt: int, wait: float | None) -> bool:
        """Wait before a retry; return whether the run was stopped meanwhile."""
        if wait is None:
            longest = min(_LONGEST_BACKOFF, self._backoff * 2.0**attempt)
            wait = longest * random.uniform(0.75, 1.0)
        return self._stop.wait(min(wait, _LONGEST_WAIT))

    def _give_up(self, request: Request, reason: str) -> None:
        with self._lock:
            self.unanswered[request.key] = reason
            self._in_a_row += 1
            enough = self._in_a_row >= _GIVE_UP
        if enough:
            raise EndpointError(
                f"{_GIVE_UP} requests in a row stayed without an answer, the last one: {reason}; "
                f"what was answered is in {self.log.path}, run the command again to go on"
            )
