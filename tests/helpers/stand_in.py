"""A stand-in for the endpoints, over loopback, in their real wire formats: OpenAI chat completions and System One.

Its answers are made up. It breaks in every way that it is told to, and counts what it was asked.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from redclf.taxonomy import CATEGORIES

#: Faults after which a client has no answer: each hits the first attempt of a prompt.
TRANSIENT = ("429", "500", "timeout", "reset", "cut body")
#: Faults within an answer: each hits every attempt.
ODD = ("truncated", "fenced", "prose", "empty", "wrong types", "duplicates", "out of range", "huge", "no json")
#: Odd answers that hold nothing usable, whatever the task.
UNUSABLE = ("truncated", "empty", "wrong types", "no json")

_LISTED = re.compile(r"Interactions of the agent \([^)]*\): (\[.*\])")
_GIVEN = re.compile(r"The redundant step: (\[\d+, \d+\])$", re.MULTILINE)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients are killed here."""


class StandIn:
    """The server; use it as a context manager.

    Parameters
    ----------
    fault : callable, optional
        Digest of the prompt to the name of its fault, or None.
    hold_after : int, optional
        After so many answers all further requests are held until `release` is set.
    echo : bool
        Whether errors and answers quote the request's Authorization header.
    """

    def __init__(
        self,
        fault: Callable[[str], str | None] = lambda digest: None,
        hold_after: int | None = None,
        echo: bool = False,
        status: int | None = None,
    ) -> None:
        self.fault = fault
        self.hold_after = hold_after
        self.echo = echo
        self.status = status
        self.received: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.input_tokens = self.output_tokens = 0
        self.most_at_a_time = 0
        self._at_a_time = 0
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.release = threading.Event()
        self.held = 0
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def base_url(self) -> str:
        return f"{self.root}/v1"

    def __enter__(self) -> StandIn:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.release.set()
        self._server.shutdown()
        self._server.server_close()

    def enter(self) -> None:
        with self.lock:
            self._at_a_time += 1
            self.most_at_a_time = max(self.most_at_a_time, self._at_a_time)

    def leave(self) -> None:
        with self.lock:
            self._at_a_time -= 1

    def count_answer(self, digest: str) -> None:
        """Count an answer, once it may be given."""
        with self.lock:
            hold = self.hold_after is not None and self.answered.total() >= self.hold_after
            self.held += hold
            self.answered[digest] += not hold
        if hold:
            self.release.wait()
            with self.lock:
                self.answered[digest] += 1


def by_digest(faults: Sequence[str], share: int = 2) -> Callable[[str], str | None]:
    """Spread faults over prompts: one of `share` prompts gets one."""

    def fault(digest: str) -> str | None:
        number = int(digest[:8], 16)
        return None if number % share else faults[number // share % len(faults)]

    return fault


def digest_of(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def judge(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Made-up records that are in the right form for the task."""
    text = body["messages"][-1]["content"]
    number = int(digest_of(body)[:8], 16)
    category = CATEGORIES[number % 4]
    given = _GIVEN.findall(text)
    if given:
        step = json.loads(given[-1])
        record = {"redundant_step_idx": step, "redundant_step_type": category}
        return [record if "Its evidence" in text else {**record, "evidence_step_idx": [-1]}]
    steps = json.loads(_LISTED.findall(text)[-1])
    return [
        {
            "redundant_step_idx": step,
            "redundant_step_type": CATEGORIES[(number + place) % 4],
            "evidence_step_idx": steps[0] if place else [-1],
            "confidence": round(0.9 - place / 20, 2),
        }
        for place, step in enumerate(steps[:4])
    ]


def reply_text(body: dict[str, Any], fault: str | None) -> str:
    """The judge's text, with an odd fault in it."""
    records = judge(body)
    whole = json.dumps({"predictions": records})
    if fault == "truncated":
        return whole[: len(whole) * 2 // 3]
    if fault == "fenced":
        return f"```json\n{json.dumps(records, indent=1)}\n```"
    if fault == "prose":
        return f"Looking at [3, 4] and the {{policy}}, my answer is {whole}\nI hope this helps."
    if fault == "empty":
        return ""
    if fault == "wrong types":
        return json.dumps({"predictions": "none"})
    if fault == "duplicates":
        return json.dumps(records * 3)
    if fault == "out of range":
        wild = {**records[0], "redundant_step_idx": [99990, 99991], "evidence_step_idx": [10**30], "confidence": 1e999}
        return json.dumps({"predictions": [wild, *records]})
    if fault == "huge":
        return json.dumps({"thoughts": "x" * 2_000_000, "predictions": records})
    return whole


def _handler(server: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            server.enter()
            try:
                self._answer()
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
            finally:
                server.leave()

        def _answer(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            digest = digest_of(body)
            with server.lock:
                server.received[digest] += 1
                attempt = server.received[digest]
                server.bodies.append(body)
                server.headers.append({name.lower(): text for name, text in self.headers.items()})
            if server.status is not None:
                return self._send(server.status, {"error": {"message": self._words("refused")}})
            fault = server.fault(digest)
            if fault in TRANSIENT and attempt > 1:
                fault = None
            if fault is not None:
                with server.lock:
                    server.faults[fault] += 1
            if fault == "429":
                return self._send(429, {"error": {"message": self._words("slow down")}}, {"Retry-After": "0.05"})
            if fault == "500":
                return self._send(500, {"error": {"message": self._words("internal")}})
            if fault == "timeout":
                server.ended.wait(30.0)
                self.close_connection = True
                return None
            if fault == "reset":
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
                self.close_connection = True
                return None
            if fault == "cut body":
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "5000")
                self.end_headers()
                self.wfile.write(b'{"id": "cut", "choi')
                self.close_connection = True
                return None
            server.count_answer(digest)
            if fault == "no json":
                return self._send(200, "<html>busy</html>")
            time.sleep(0.002)
            value = self._chat(body, fault) if self.path.endswith("/chat/completions") else _system_one(body, fault)
            usage = value["usage"]
            with server.lock:
                server.input_tokens += usage.get("prompt_tokens", usage.get("input_tokens"))
                server.output_tokens += usage.get("completion_tokens", usage.get("output_tokens"))
            return self._send(200, value)

        def _words(self, text: str) -> str:
            return f"{text}: {self.headers['Authorization']}" if server.echo else text

        def _chat(self, body: dict[str, Any], fault: str | None) -> dict[str, Any]:
            text = reply_text(body, fault)
            if server.echo:
                text = f"{self._words('you sent')}\n{text}"
            message = {"role": "assistant", "content": text}
            return {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1,
                "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": _usage(body, "prompt_tokens", "completion_tokens"),
            }

        def _send(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
            data = (value if isinstance(value, str) else json.dumps(value)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, text in (headers or {}).items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(data)

    return Handler


def _usage(body: dict[str, Any], given: str, produced: str) -> dict[str, int]:
    return {given: len(json.dumps(body)) // 4, produced: 20}


def _system_one(body: dict[str, Any], fault: str | None) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for name, question in body["questions"].items():
        labels = list(question["criteria"])
        number = int(digest_of(question)[:8], 16)
        best = labels[number % len(labels)]
        rest = 0.3 / max(1, len(labels) - 1)
        answers[name] = {
            "type": "choice",
            "choice": best,
            "confidence": 0.7,
            "probabilities": {label: 0.7 if label == best else rest for label in labels},
        }
    first = next(iter(answers))
    if fault == "empty":
        answers = {}
    elif fault == "truncated":
        del answers[first]
    elif fault == "wrong types":
        answers[first]["choice"] = 7
    elif fault == "out of range":
        answers[first]["choice"] = "[99990, 99991]"
    elif fault == "huge":
        answers[first]["note"] = "x" * 2_000_000
    return {"model": body["model"], "usage": _usage(body, "input_tokens", "output_tokens"), "answers": answers}
