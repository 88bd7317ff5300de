"""The estimate of tokens."""

from __future__ import annotations

import doctest

import redclf.tokens
from redclf.tokens import estimate_tokens, step_tokens
from redclf.trajectory import Message, ToolCall, Trajectory


def test_examples():
    assert doctest.testmod(redclf.tokens).failed == 0


def test_lone_surrogates_are_counted():
    assert estimate_tokens("\ud800") == 1


def test_a_step_is_name_arguments_and_result():
    messages = (
        Message("assistant", "not counted", (ToolCall("abcd", {"k": "é"}, "c"),)),
        Message("tool", "12345", tool_call_id="c"),
    )
    trajectory = Trajectory("t", messages)
    assert step_tokens(trajectory, trajectory.interactions[0]) == 1 + 3 + 2
