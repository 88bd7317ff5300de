from __future__ import annotations

import json
from dataclasses import replace

import pytest
from traces import chain, parallel, said, step, trace, user

from redclf.accounting import COUNTED, ESTIMATED, RECORDED, Price, account, load_prices, tokenizer_count
from redclf.errors import RedclfError
from redclf.trajectory import Message, ToolCall

#: One token a character: what a hand can check.
CHARACTERS = len


def recorded(trajectory, *usage):
    """The trajectory with input and output tokens of its requests."""
    left = iter(usage)
    messages = [
        replace(m, usage=dict(zip(("prompt_tokens", "completion_tokens"), next(left), strict=True)))
        if m.role == "assistant"
        else m
        for m in trajectory.messages
    ]
    return replace(trajectory, messages=tuple(messages))


#: user 2; call `f{}` with its empty text 4; result 5; call `g{}` 4; result 7; reply 3.
RUN = trace(user("go"), step("f", "r" * 5), step("g", "r" * 7), said("bye"), policy="p" * 10)


def test_every_request_reads_all_before_it():
    found = account(RUN, CHARACTERS)
    assert (found.source, found.requests) == (COUNTED, 3)
    assert found.input == (10 + 2) + (12 + 4 + 5) + (21 + 4 + 7)
    assert found.fresh == 32 and found.output == 4 + 4 + 3


def test_a_step_is_paid_when_made_and_again_with_every_request():
    first, second = account(RUN, CHARACTERS).steps.values()
    assert (first.made, first.read, first.again) == (3, 5, 2 * 3 + 5) and first.total == 19
    assert (second.made, second.read, second.again) == (3, 7, 3)


def test_a_result_that_no_request_reads_is_not_paid():
    (cost,) = account(trace(user("go"), step("f", "r" * 50)), CHARACTERS).steps.values()
    assert (cost.read, cost.again) == (0, 0) and cost.made == 3


def test_a_system_message_stands_for_the_policy():
    run = trace(Message("system", "s" * 10), *RUN.messages, policy="s" * 10)
    assert account(run, CHARACTERS).input == account(RUN, CHARACTERS).input


def test_parallel_calls_share_a_request():
    run = trace(user("go"), parallel(("f", {}, "abc"), ("g", {}, "defg")), said("bye"))
    found = account(run, CHARACTERS)
    assert found.requests == 2 and [(c.made, c.read, c.again) for c in found.steps.values()] == [(3, 3, 3), (3, 4, 3)]


def test_what_the_user_does_with_tools_is_not_read():
    other = step("toggle", "on" * 50, requestor="user")
    run = trace(user("go"), step("f", "abc"), *[other], said("bye"))
    assert account(run, CHARACTERS).input == account(trace(user("go"), step("f", "abc"), said("bye")), CHARACTERS).input
    assert len(account(run).steps) == 1


def test_recorded_usage_counts_and_scales_the_steps():
    found = account(recorded(RUN, (1000, 8), (1018, 9), (1040, 7)), CHARACTERS)
    assert (found.source, found.input, found.fresh, found.output) == (RECORDED, 3058, 1040, 24)
    # The input grows twice as fast as it is counted: 40 to 20.
    assert [(c.made, c.read) for c in found.steps.values()] == [(6, 10), (6, 14)]
    assert account(recorded(RUN, (1000, 8), (1018, 9), (1040, 7)), CHARACTERS, recorded=False) == account(
        RUN, CHARACTERS
    )


def test_usage_of_some_requests_is_not_enough():
    half = recorded(RUN, (1000, 8), (1018, 9), (1040, 7))
    messages = (*half.messages[:-1], replace(half.messages[-1], usage=None))
    assert account(replace(half, messages=messages), CHARACTERS) == account(RUN, CHARACTERS)
    assert account(RUN).source == ESTIMATED


def test_a_context_that_was_cut_is_not_fresh_twice():
    found = account(recorded(RUN, (1000, 8), (400, 9), (420, 7)), CHARACTERS)
    assert found.input == 1820 and found.fresh == 1020


def test_steps_cost_no_more_than_the_run():
    for run in (chain(30), chain(30, 7)):
        found = account(run)
        assert 0 < sum(c.read + c.again for c in found.steps.values()) <= found.input
        assert 0 < sum(c.made for c in found.steps.values()) <= found.output + len(found.steps)


def test_dollars():
    price = Price(2.0, 0.5, 10.0)
    found = account(RUN, CHARACTERS)
    assert found.dollars(price, cache=False) == pytest.approx((65 * 2 + 11 * 10) / 1e6)
    assert found.dollars(price) == pytest.approx((32 * 2 + 33 * 0.5 + 11 * 10) / 1e6)
    assert found.step_dollars((1, 2), price) == pytest.approx((3 * 10 + 5 * 2 + 11 * 0.5) / 1e6)
    assert found.dollars(None) is None and found.step_dollars((1, 2), None) is None


def test_no_request_at_all():
    found = account(trace(user("go")))
    assert (found.requests, found.input, found.fresh, found.output, dict(found.steps)) == (0, 0, 0, 0, {})


@pytest.mark.parametrize(
    ("model", "known"),
    [("gpt-4o", "gpt-4o"), ("openai/GPT-4o-2024-11-20", "gpt-4o"), ("gpt-4o-mini-2024", "gpt-4o-mini"), ("gpt-4", None),
     ("gpt-4od", None), (None, None), ("", None)],
)  # fmt: skip
def test_prices_by_name(model, known):
    prices = load_prices()
    assert prices.of(model) == (prices.models[known] if known else None) and prices.date


@pytest.mark.parametrize(
    "value",
    ["no JSON", {}, {"date": "d", "source": "s", "models": {"m": {"input": 1, "cached": 1}}},
     {"date": "d", "source": "s", "models": {"m": {"input": -1, "cached": 1, "output": 1}}},
     {"date": "d", "source": "s", "models": [1]}],
)  # fmt: skip
def test_bad_prices(tmp_path, value):
    path = tmp_path / "prices.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    with pytest.raises(RedclfError, match=r"prices\.json: .*expected"):
        load_prices(path)


def test_missing_prices(tmp_path):
    with pytest.raises(RedclfError, match="expected a price table, got: No such file"):
        load_prices(tmp_path / "none.json")


def test_a_tokenizer_counts(tiny_model, tmp_path):
    count = tokenizer_count(tiny_model / "tokenizer.json")
    assert count("one two three") == 3 and count("") == 0 and count("\ud800") >= 1 and count("word " * 2000) == 2000
    found = account(trace(user("one two"), Message("assistant", "", (ToolCall("find", {}, "c"),))), count)
    assert found.source == COUNTED and found.input == 2
    with pytest.raises(RedclfError, match=r"expected a tokenizer\.json"):
        tokenizer_count(tmp_path / "none.json")
