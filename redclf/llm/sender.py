"""Requests are sent by a process of their own, so that one which was killed loses no reply that is under way.

`Sender` stands in the process that wants the answers; `python -m redclf.llm.sender` is the other one. It holds the key
and writes the request log. When the first one ends, however it ends, it waits for the replies to what it has been
given, writes them to the log, and ends, too. A new run waits until then.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from redclf.errors import RedclfError
from redclf.llm.config import EndpointConfig, JevConfig, LLMConfig
from redclf.llm.keys import Secret
from redclf.llm.log import RequestLog
from redclf.llm.runner import Client, EndpointError, Request, Runner

_LOGGER = logging.getLogger("redclf")
_LLM, _JEV = "llm", "jev"

_shared: dict[Path, Sender] = {}


class Sender:
    """Answers requests from the log, and has the others sent.

    Parameters
    ----------
    config : EndpointConfig
    folder : Path
        Of the request log.
    """

    def __init__(self, config: EndpointConfig, folder: Path) -> None:
        self.log = RequestLog(folder / config.log_name)
        #: Attempts that had to be repeated.
        self.retried = 0
        #: Key of each request that stayed without an answer, and why. They are asked again by the next run.
        self.unanswered: dict[str, str] = {}
        #: Whether only recorded replies count; `missing` then says how many there were none for.
        self.replay_only = False
        self.missing = 0
        self._config = config
        self._process: subprocess.Popen[str] | None = None
        self._waiting: set[str] = set()
        self._error: str | None = None
        self._ended = False
        self._changed = threading.Condition()
        self._progress: Callable[[], None] | None = None

    @classmethod
    def shared(cls, config: EndpointConfig, folder: Path) -> Sender:
        """Return the sender of a request log; detectors with the same one share it, and the first one's time-outs."""
        path = (folder / config.log_name).absolute()
        found = _shared.get(path)
        if found is None or found._failed:
            found = _shared[path] = cls(config, folder)
        return found

    def ask(self, requests: Iterable[Request], progress: Callable[[], None] | None = None) -> None:
        """Get an answer to each request, in whatever order they come.

        Parameters
        ----------
        requests : iterable of Request
            Taken as they are needed, so that not all bodies are in memory.
        progress : callable, optional
            Called after each one, sent or not.

        Raises
        ------
        EndpointError
            If the endpoint can't be used. What was answered until then is in the log.
        """
        self._progress = progress
        for request in requests:
            if self._known(request):
                if progress is not None:
                    progress()
            elif self.replay_only:
                self.missing += 1
            elif not self._send(request):
                break
        with self._changed:
            self._changed.wait_for(lambda: self._failed or not self._waiting)
        if self._failed:
            # What is under way still gets into the log.
            self.close()
        self.log.refresh()
        if self._failed:
            raise EndpointError(self._error or "the process that sends requests ended; run the command again to go on")

    def record(self, request: Request) -> dict[str, Any] | None:
        """Return the logged record of a request, asking for it if need be; None if no answer came."""
        if not self._known(request):
            self.ask([request])
        return self.log.get(request.key)

    def close(self) -> None:
        """Let the other process end, and wait until it has."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
            self._process.wait()

    @property
    def _failed(self) -> bool:
        return self._ended or self._error is not None

    def _known(self, request: Request) -> bool:
        return self.log.get(request.key) is not None or request.key in self.unanswered

    def _send(self, request: Request) -> bool:
        """Hand a request over; return whether the other process took it."""
        if self._process is None:
            self._start()
        assert self._process is not None and self._process.stdin is not None
        with self._changed:
            if self._failed:
                return False
            if request.key in self._waiting:
                return True
            self._waiting.add(request.key)
        try:
            self._process.stdin.write(json.dumps(asdict(request)) + "\n")
            self._process.stdin.flush()
        except OSError:
            return False
        return True

    def _start(self) -> None:
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH")) if part)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "redclf.llm.sender"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("REDCLF_DEBUG") else subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": path},
            # Out of reach of what is sent to the first one's terminal or group.
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        kind = _JEV if isinstance(self._config, JevConfig) else _LLM
        head = {"kind": kind, "config": asdict(self._config), "log": str(self.log.path.absolute())}
        self._process.stdin.write(json.dumps(head) + "\n")
        threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True).start()

    def _listen(self, stream: IO[str]) -> None:
        try:
            with stream:
                for line in stream:
                    self._hear(json.loads(line))
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _hear(self, said: dict[str, Any]) -> None:
        with self._changed:
            self._changed.notify_all()
            if "waiting" in said:
                _LOGGER.warning("waiting for the replies that another run has under way (%s)", self.log.path)
                return
            if "error" in said:
                self._error = self._error or said["error"]
                return
            self._waiting.discard(said["key"])
            self.retried = said["retried"]
            if said["unanswered"] is not None:
                self.unanswered[said["key"]] = said["unanswered"]
        if self._progress is not None:
            self._progress()


class _Gone(Exception):  # noqa: N818
    """The process that wanted the answers is not there any more."""


def main() -> None:
    """Send what comes on stdin, a request a line, and report on stdout, a line for each."""
    head = json.loads(sys.stdin.readline())
    lock = threading.Lock()
    # What a library prints must not get between the reports.
    reports, sys.stdout = sys.stdout, sys.stderr

    def report(**values: Any) -> None:
        # Nobody may be listening any more; what counts is the log.
        with lock, suppress(OSError):
            reports.write(json.dumps(values) + "\n")
            reports.flush()

    config: EndpointConfig = (JevConfig if head["kind"] == _JEV else LLMConfig)(**head["config"])
    runner = Runner(
        lambda: _connect(config),
        RequestLog(Path(head["log"]), lambda: report(waiting=True)),
        config.concurrency,
        config.retries,
        config.backoff,
    )

    def fail(error: BaseException) -> None:
        if isinstance(error, RedclfError):
            report(error=str(error))
        else:
            report(error=f"unexpected {type(error).__name__} in the process that sends requests")

    def done(request: Request) -> None:
        report(key=request.key, unanswered=runner.unanswered.get(request.key), retried=runner.retried)

    try:
        runner.ask(_requests(sys.stdin), done, fail)
    except _Gone:
        pass
    except Exception as error:
        fail(error)
    # Without a flush of stdout, which may have no reader any more.
    os._exit(0)


def _requests(stream: IO[str]) -> Iterator[Request]:
    # Not `for line in stream`, which would read ahead and wait.
    while line := stream.readline():
        if not line.endswith("\n"):
            break
        yield Request(**json.loads(line))
    raise _Gone


def _connect(config: EndpointConfig) -> Client:
    # The key is read when there is something to send: a run that is on file needs none.
    if isinstance(config, JevConfig):
        from redclf.llm.jev import KEY, JevClient

        return JevClient(config, Secret(config.key or KEY, required=bool(config.key)))
    from redclf.llm import client

    assert isinstance(config, LLMConfig)
    return client.OpenAIClient(config, Secret(config.key or client.KEY, required=bool(config.key)))


if __name__ == "__main__":
    main()
