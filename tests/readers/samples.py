"""Small traces of every format, written for these tests."""

from __future__ import annotations

from typing import Any


def chat() -> list[dict[str, Any]]:
    """Return a chat of seven messages with two parallel calls, in OpenAI's style."""
    return [
        {"role": "system", "content": "Lend books only to members."},
        {"role": "user", "content": "Is Emma on the shelf?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "find_book", "arguments": '{"title": "Emma"}'},
                },
                {
                    "id": "c2",
                    "type": "function",
                    "function": {"name": "find_member", "arguments": "{broken"},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "c2", "content": "Error: bad arguments"},
        {"role": "tool", "tool_call_id": "c1", "content": '{"copies": 2}'},
        {"role": "assistant", "content": "Two copies are."},
        {"role": "user", "content": "Thanks"},
    ]


def tau_messages() -> list[dict[str, Any]]:
    """Return messages in tau2-bench's style, with a call of the assistant and one of the user."""
    return [
        {"role": "assistant", "content": "Hello", "tool_calls": None},
        {"role": "user", "content": "My lamp is dark", "tool_calls": None},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "k0", "name": "get_lamp", "arguments": {"room": 4}, "requestor": "assistant"}],
            "usage": {"prompt_tokens": 900, "completion_tokens": 20, "details": {"cached": 1}},
        },
        {
            "role": "tool",
            "id": "k0",
            "content": "off",
            "requestor": "assistant",
            "error": False,
        },
        {
            "role": "user",
            "content": None,
            "tool_calls": [{"id": "k1", "name": "press_switch", "arguments": {}, "requestor": "user"}],
        },
        {"role": "tool", "id": "k1", "content": "on", "requestor": "user", "error": True},
    ]


def release(**simulation: Any) -> dict[str, Any]:
    """Return a release file with one simulation."""
    record = {"task_id": "7", "messages": tau_messages(), "policy": "Be kind.", **simulation}
    return {"tasks": [{"id": "7", "evaluation_criteria": "secret"}], "simulations": [record]}


def tau2(**simulation: Any) -> dict[str, Any]:
    """Return a tau2-bench results file with one run."""
    record = {
        "id": "run-1",
        "task_id": "7",
        "trial": 0,
        "termination_reason": "user_stop",
        "reward_info": {"reward": 1.0},
        "messages": tau_messages(),
        "policy": "Be kind.",
        **simulation,
    }
    return {"info": {}, "tasks": [{"id": "secret"}], "simulations": [record]}


def tau_run(**run: Any) -> dict[str, Any]:
    """Return one historical run of tau-bench."""
    return {"task_id": 3, "trial": 1, "reward": 0.0, "traj": chat(), "info": "secret", **run}
