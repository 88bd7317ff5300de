"""Both clients against the stand-in: every fault on the wire, and no key in anything that comes back."""

from __future__ import annotations

import json

import pytest
from stand_in import ODD, TRANSIENT, StandIn

from redclf.llm.config import JevConfig, LLMConfig
from redclf.llm.keys import MASK, Secret
from redclf.llm.runner import Request, Unanswered

pytest.importorskip("openai")
pytest.importorskip("typesafe_sdk")
from redclf.llm.client import OpenAIClient, read_completion
from redclf.llm.jev import JevClient, category_question, pack

KEY = "sk-verysecret-0123456789"
QUESTION = "Interactions of the agent (all): [[1, 2], [3, 4]]"


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", KEY)


def chat(server, timeout=1.0):
    body = {"model": "m", "messages": [{"role": "user", "content": QUESTION}], "max_tokens": 9, "thinking": "off"}
    client = OpenAIClient(LLMConfig("m", server.base_url, timeout=timeout), Secret("JUDGE_KEY"))
    return lambda: client.ask(Request.of(server.base_url, "stepdet", "t", body))


def system_one(server, timeout=1.0):
    body = next(pack("jev-1", {"trajectory": []}, [category_question((1, 2)), category_question((3, 4))], 16, 10**6))
    client = JevClient(JevConfig("jev-1", server.root, timeout=timeout), Secret("JUDGE_KEY"))
    return lambda: client.ask(Request.of(server.root, "stepdet", "t", body))


both = pytest.mark.parametrize("make", [chat, system_one])


@both
@pytest.mark.parametrize("fault", [None, *ODD])
def test_answers_however_odd(make, fault):
    with StandIn(lambda digest: fault) as server:
        answer = make(server)()
    assert server.answered.total() == 1
    if fault == "no json" or (fault == "wrong types" and make is system_one):
        assert answer.reply is None and answer.note
    elif make is chat:
        assert isinstance(answer.reply, str)
        assert (answer.input_tokens, answer.output_tokens) == (server.input_tokens, server.output_tokens)
    else:
        assert set(answer.reply) <= {"q0", "q1"} and answer.input_tokens == server.input_tokens


@both
@pytest.mark.parametrize("fault", TRANSIENT)
def test_failures_that_may_go_better_next_time(make, fault):
    with StandIn(lambda digest: fault) as server:
        ask = make(server)
        with pytest.raises(Unanswered) as caught:
            ask()
        assert caught.value.retry and not caught.value.fatal
        assert caught.value.wait == (0.05 if fault == "429" else None)
        assert ask().reply
    assert server.received.total() == 2


@both
@pytest.mark.parametrize(("status", "retry", "fatal"), [(401, False, True), (404, False, True), (400, False, False)])
def test_refusals(make, status, retry, fatal):
    with StandIn(status=status) as server, pytest.raises(Unanswered, match=str(status)) as caught:
        make(server)()
    assert (caught.value.retry, caught.value.fatal) == (retry, fatal)


@both
def test_nobody_there(make):
    with StandIn() as server:
        pass
    with pytest.raises(Unanswered) as caught:
        make(server)()
    assert caught.value.retry


@both
@pytest.mark.parametrize("status", [401, 429, 500, None])
def test_the_key_goes_to_the_endpoint_and_nowhere_else(make, status):
    with StandIn(status=status, echo=True) as server:
        try:
            text = repr(make(server)())
        except Unanswered as error:
            text = f"{error!r} {error.__cause__!r}"
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in text
    if make is chat or status:
        assert MASK in text


@pytest.mark.parametrize(
    ("make", "method"),
    [
        (chat, "openai.resources.chat.completions.Completions.create"),
        (system_one, "typesafe_sdk.TypeSafeClient.system_one"),
    ],
)
def test_the_key_in_an_exception_of_the_sdk(make, method, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError(f"bad header: Bearer {KEY}")

    monkeypatch.setattr(method, fail)
    with StandIn() as server, pytest.raises(Unanswered) as caught:
        make(server)()
    assert KEY not in f"{caught.value} {caught.value.__cause__}" and MASK in str(caught.value)


def test_the_request_on_the_wire():
    with StandIn() as server:
        chat(server)()
        system_one(server)()
    wire, typed = server.bodies
    assert wire == {
        "model": "m",
        "messages": [{"role": "user", "content": QUESTION}],
        "max_tokens": 9,
        "thinking": "off",
    }
    assert list(typed["questions"]) == ["q0", "q1"] and typed["questions"]["q0"]["type"] == "choice"
    assert all(headers["idempotency-key"] for headers in server.headers)


@pytest.mark.parametrize(
    ("content", "reply", "tokens"),
    [
        ({"choices": [{"message": {"content": "a"}}], "usage": {"prompt_tokens": 3}}, "a", (3, None)),
        ({"choices": [{"message": {"content": [{"text": "a"}, {"text": "b"}, 1]}}]}, "ab", (None, None)),
        ({"choices": [{"message": {"content": None}}], "usage": "many"}, None, (None, None)),
        ({"choices": {}, "usage": {"prompt_tokens": True, "completion_tokens": -1}}, None, (None, None)),
        ({"choices": [None]}, None, (None, None)),
        ([], None, (None, None)),
    ],
)
def test_completions_of_odd_types(content, reply, tokens):
    answer = read_completion(json.dumps(content).encode(), Secret("JUDGE_KEY"))
    assert (answer.reply, (answer.input_tokens, answer.output_tokens)) == (reply, tokens)
    assert bool(answer.note) == (reply is None)
