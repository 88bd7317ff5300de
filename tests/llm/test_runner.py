"""The runner with clients that are made up: what is asked again, what is not, and what a log keeps."""

from __future__ import annotations

import json
import threading

import pytest

from redclf.errors import TraceError
from redclf.llm.http import retry_after
from redclf.llm.log import RequestLog
from redclf.llm.runner import Answer, EndpointError, Request, Runner, Unanswered


def request(number):
    return Request.of("http://x", "stepdet", f"t{number}", {"n": number})


class Client:
    """Fails as often as it is told, then answers with the request's number."""

    def __init__(self, failures=0, **kind):
        self.failures = failures
        self.kind = {"retry": True, **kind}
        self.asked = []
        self.lock = threading.Lock()

    def ask(self, request):
        with self.lock:
            number = request.body["n"]
            self.asked.append(number)
            if self.asked.count(number) <= self.failures:
                raise Unanswered("no luck", **self.kind)
        return Answer({"n": number}, "", 10, 2)


def answer(runner, number):
    """Ask, and return what is on file then."""
    runner.ask([request(number)])
    return runner.log.get(request(number).key)


def runner(path, client, **settings):
    return Runner(lambda: client, RequestLog(path), **{"concurrency": 4, "retries": 3, "backoff": 0.0, **settings})


def test_each_request_is_sent_once_and_kept(tmp_path):
    client, path = Client(), tmp_path / "deep" / "log.jsonl"
    first = runner(path, client)
    done = []
    first.ask([request(n) for n in (1, 2, 3, 2, 1)], done.append)
    assert sorted(client.asked) == [1, 2, 3] and len(done) == 5
    again = runner(path, Client())
    again.ask([request(n) for n in (1, 2, 3, 4)])
    assert again._client.asked == [4]
    assert again.log.get(request(2).key)["reply"] == {"n": 2}


def test_a_run_that_is_on_file_needs_no_client(tmp_path):
    runner(tmp_path / "log", Client()).ask([request(1)])

    def no_key():
        raise AssertionError("connected")

    late = Runner(no_key, RequestLog(tmp_path / "log"), 4, 3, 0.0)
    late.ask([request(1)])
    assert late.log.get(request(1).key)["reply"] == {"n": 1}


def test_failures_are_repeated_up_to_the_limit_and_counted(tmp_path):
    client = Client(failures=3)
    patient = runner(tmp_path / "a", client)
    patient.ask([request(1)])
    assert (client.asked, patient.retried, patient.unanswered) == ([1] * 4, 3, {})
    assert answer(patient, 1)["attempts"] == 4
    client = Client(failures=4)
    patient = runner(tmp_path / "b", client)
    assert answer(patient, 1) is None and answer(patient, 1) is None
    assert len(client.asked) == 4 and list(patient.unanswered.values()) == ["no luck"]


def test_what_had_no_answer_is_asked_again_by_the_next_run(tmp_path):
    assert answer(runner(tmp_path / "log", Client(failures=9)), 1) is None
    assert answer(runner(tmp_path / "log", Client()), 1)["reply"] == {"n": 1}


def test_what_would_fail_again_is_not_repeated(tmp_path):
    client = Client(failures=1, retry=False)
    assert answer(runner(tmp_path / "log", client), 1) is None
    assert client.asked == [1]


def test_a_useless_endpoint_ends_the_run(tmp_path):
    client = Client(failures=1, retry=False, fatal=True)
    with pytest.raises(EndpointError, match="no luck"):
        runner(tmp_path / "a", client, concurrency=1).ask(request(n) for n in range(100))
    assert len(client.asked) <= 3
    client = Client(failures=9)
    with pytest.raises(EndpointError, match=r"20 requests in a row .* run the command again"):
        runner(tmp_path / "b", client, retries=0).ask(request(n) for n in range(100))
    assert len(client.asked) < 40


def test_no_more_at_a_time_than_allowed(tmp_path):
    together, most = [0], [0]
    lock = threading.Lock()
    both = threading.Barrier(3, timeout=20)

    class Slow(Client):
        def ask(self, request):
            with lock:
                together[0] += 1
                most[0] = max(most[0], together[0])
            both.wait()
            with lock:
                together[0] -= 1
            return Answer(1)

    runner(tmp_path / "log", Slow(), concurrency=3).ask(request(n) for n in range(12))
    assert most == [3]


def test_the_wait_that_is_asked_for_goes_before_the_backoff(tmp_path, monkeypatch):
    waits = []
    patient = runner(tmp_path / "log", Client(failures=1, wait=7.5), backoff=1.0)
    monkeypatch.setattr(patient._stop, "wait", lambda seconds: waits.append(seconds) or False)
    patient.ask([request(1)])
    other = runner(tmp_path / "other", Client(failures=3), backoff=1.0)
    monkeypatch.setattr(other._stop, "wait", lambda seconds: waits.append(seconds) or False)
    other.ask([request(1)])
    assert waits[0] == 7.5
    assert [low <= wait <= 4 / 3 * low for wait, low in zip(waits[1:], (0.75, 1.5, 3), strict=True)] == [True] * 3


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("3", 3),
        ("0.5", 0.5),
        ("-1", 0),
        ("soon", None),
        ("nan", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
    ],
)
def test_retry_after(text, seconds):
    assert retry_after({} if text is None else {"retry-after": text}) == seconds


def test_a_torn_line_is_dropped_and_asked_again(tmp_path):
    path = tmp_path / "log.jsonl"
    runner(path, Client()).ask([request(1)])
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    client = Client()
    resumed = runner(path, client)
    resumed.ask([request(1), request(2)])
    assert client.asked == [2]
    lines = path.read_bytes().splitlines()
    assert len(lines) == 2 and all(json.loads(line)["reply"] for line in lines)


def test_a_spoilt_line_is_named(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"key": "a", "reply": 1}\nnonsense\n')
    with pytest.raises(TraceError, match=r"log.jsonl: line 2: expected a record"):
        RequestLog(path)


def test_a_log_waits_for_its_other_writer_and_reads_what_that_one_wrote(tmp_path):
    pytest.importorskip("fcntl")
    told = []
    first, second = RequestLog(tmp_path / "log"), RequestLog(tmp_path / "log", lambda: told.append("waiting"))
    first.open()
    waiting = threading.Thread(target=second.open, daemon=True)
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    first.add({"key": "a", "reply": "\ud83d"})
    first.close()
    waiting.join(20)
    assert told == ["waiting"]
    assert second.get("a")["reply"] == "\ud83d"
    second.close()
