"""OpenAI chat messages."""

from __future__ import annotations

import json

import pytest

from redclf.errors import TraceError
from redclf.readers import iter_trajectories, load

from .samples import chat


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def test_list_of_messages(write):
    (trajectory,) = load(write(chat(), "shelf.json"))
    assert trajectory.id == "shelf"
    assert trajectory.policy == "Lend books only to members."
    assert [message.role for message in trajectory.messages] == [m["role"] for m in chat()]
    assert [item.step for item in trajectory.interactions] == [(2, 4), (2, 3)]
    first, second = trajectory.messages[2].tool_calls
    assert first.arguments == {"title": "Emma"}
    assert second.arguments == "{broken"


def test_object_with_messages(write):
    record = {"messages": chat(), "id": "x1", "reward": 0, "task_id": 5, "tools": []}
    (trajectory,) = load(write(record))
    assert (trajectory.id, trajectory.task_id, trajectory.failed) == ("x1", "5", True)


@pytest.mark.parametrize("value", [[{"messages": chat()}] * 2, [chat(), chat()]])
def test_list_of_conversations(write, value):
    assert [item.id for item in load(write(value, "a.json"))] == ["a:0", "a:1"]


def test_json_lines(write):
    path = write(lines({"messages": chat()}, chat(), {"id": "z", "messages": chat()}), "a.jsonl")
    trajectories = load(path)
    assert [item.id for item in trajectories] == ["a:1", "a:2", "z"]
    assert trajectories[1].source.endswith("a.jsonl, line 2")


def test_json_lines_of_messages_are_one_trajectory(write):
    (trajectory,) = load(write(lines(*chat()), "a.jsonl"))
    assert len(trajectory.messages) == 7
    assert len(trajectory.interactions) == 2


def test_damaged_line_among_messages_drops_the_trajectory(write):
    path = write(lines(*chat()) + '{"role": "user", "cont', "a.jsonl")
    errors: list[TraceError] = []
    assert list(iter_trajectories(path, on_error=errors.append)) == []
    assert [error.where for error in errors] == ["line 8"]


def test_repeated_ids_are_numbered(write):
    records = [{"id": "a", "messages": chat()}] * 3
    assert [item.id for item in load(write(records))] == ["a", "a#2", "a#3"]


def test_legacy_functions(write):
    messages = [
        {"role": "developer", "content": "Rules."},
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
    ]
    (trajectory,) = load(write(messages))
    assert trajectory.policy == "Rules."
    assert [item.step for item in trajectory.interactions] == [(1, 2)]


def test_custom_tools_keep_their_raw_input(write):
    custom = {"id": "c", "type": "custom", "custom": {"name": "run", "input": "print(1)"}}
    (trajectory,) = load(write([{"role": "assistant", "content": "", "tool_calls": [custom]}]))
    assert trajectory.messages[0].tool_calls[0].arguments == "print(1)"


def test_parts(write):
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {}}, "bare"]
    messages = [
        {"role": "user", "content": parts},
        {"role": "assistant", "content": None, "refusal": "No."},
    ]
    (trajectory,) = load(write(messages))
    assert [m.content for m in trajectory.messages] == ["Look:\n[image_url]\nbare", "No."]


def test_usage(write):
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    messages = [{"role": "assistant", "content": "a", "usage": usage}]
    (trajectory,) = load(write(messages))
    assert trajectory.messages[0].usage == {"prompt_tokens": 5, "completion_tokens": 2}


def test_foreign_parts_are_left_to_other_readers(write):
    path = write([{"role": "user", "content": [{"type": "tool-result", "toolCallId": "a"}]}])
    with pytest.raises(TraceError, match=r"openai_chat \(content parts of type tool-result\)"):
        load(path)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": "robot", "content": ""}, 'role: expected one of .*, got "robot"'),
        ({"role": 4, "content": ""}, "role: expected one of .*, got the number 4"),
        ({"role": "user", "content": 7}, "content: expected text.*, got the number 7"),
        ({"role": "user", "content": {}}, "content: expected text.*, got an object"),
        ({"role": "user", "content": [3]}, "content: expected parts.*, got the number 3"),
        ({"role": "user", "content": [{"text": 3}]}, "expected text, got the number 3"),
        ({"role": "user", "content": float("nan")}, "got the number nan"),
        ({"role": "assistant", "tool_calls": {}}, "tool_calls: expected a list"),
        ({"role": "assistant", "tool_calls": ["x"]}, "tool_calls: expected objects"),
        ({"role": "assistant", "tool_calls": [{}]}, "name: expected text, got null"),
        ({"role": "assistant", "tool_calls": [{"function": 1}]}, "expected an object with `name`"),
        ({"role": "assistant", "function_call": "f"}, "function_call: expected an object"),
        ({"role": "tool", "content": "", "tool_call_id": []}, "tool_call_id: expected an id"),
        ({"role": "tool", "content": "", "tool_calls": [{}]}, "expected none in a message of role"),
        ({"role": "user", "content": "", "usage": 5}, "usage: expected an object"),
        (
            {"role": "user", "content": "", "usage": {"prompt_tokens": -1}},
            "prompt_tokens: expected",
        ),
        ("text", r"expected a message \(an object\)"),
        (
            {"role": "assistant", "tool_calls": [{"name": "f", "arguments": [1]}]},
            "arguments: expected an object or a JSON string, got a list",
        ),
        (
            {"role": "assistant", "tool_calls": [{"name": "f", "arguments": {"x": float("inf")}}]},
            "arguments: expected finite numbers, got the number inf",
        ),
        (
            {"role": "assistant", "tool_calls": [{"name": "f", "requestor": "me"}]},
            "requestor: expected assistant or user",
        ),
    ],
)
def test_bad_message_names_record_and_message(write, message, expected):
    path = write([{"messages": chat()}, {"messages": [*chat(), message]}])
    errors: list[TraceError] = []
    good = list(iter_trajectories(path, on_error=errors.append))
    assert len(good) == 1
    (error,) = errors
    assert error.where == "record 1, message 7"
    assert str(error).startswith(f"{path}: record 1, message 7: ")
    assert "\n" not in str(error)
    with pytest.raises(TraceError, match=expected):
        load(path)


def test_arguments_that_are_not_strict_json_stay_raw(write):
    deep = "[" * 100_000
    calls = [{"name": "f", "arguments": text} for text in ('{"x": NaN}', deep, "", "5")]
    (trajectory,) = load(write([{"role": "assistant", "tool_calls": calls}]))
    found = [item.arguments for item in trajectory.messages[0].tool_calls]
    assert found == ['{"x": NaN}', deep, {}, 5]


def test_deep_arguments_are_refused(write):
    deep: object = 1
    for _ in range(150):
        deep = [deep]
    call = {"name": "f", "arguments": {"x": deep}}
    with pytest.raises(TraceError, match="at most 100 levels"):
        load(write([{"role": "assistant", "tool_calls": [call]}]))


def test_lone_surrogates_become_replacement_characters(write):
    call = '{"name": "f\\ud800", "arguments": {"k\\udfff": "v\\ud800"}}'
    path = write(f'[{{"role": "assistant", "content": "a\\ud83d", "tool_calls": [{call}]}}]')
    (trajectory,) = load(path)
    (message,) = trajectory.messages
    assert message.content == "a\ufffd"
    assert message.tool_calls[0].name == "f\ufffd"
    assert message.tool_calls[0].arguments == {"k\ufffd": "v\ufffd"}


def test_surrogate_pairs_stay(write):
    (trajectory,) = load(write('[{"role": "user", "content": "\\ud83d\\ude00"}]'))
    assert trajectory.messages[0].content == "\U0001f600"
