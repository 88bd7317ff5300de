"""A small run in every format, written by hand from the format's documentation.

All tell the same story: a user asks, the agent looks at a bed twice (the second time in vain), and answers.
"""

from __future__ import annotations

import json
from typing import Any

ASK, SAY, DONE = "Is bed 4 dry?", "Let me look.", "Bed 4 is dry."
DRY = "bed 4: dry"
ARGUMENTS = {"bed": 4}

ANTHROPIC = {
    "system": [{"type": "text", "text": "Be kind."}],
    "model": "claude-sonnet-4-20250514",
    "messages": [
        {"role": "user", "content": ASK},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "text", "text": SAY},
                {"type": "tool_use", "id": "t1", "name": "look", "input": ARGUMENTS},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": DRY}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t2", "name": "look", "input": ARGUMENTS}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": DRY}]}],
        },
        {"role": "assistant", "content": DONE},
    ],
}

CLAUDE_CODE = [
    {"type": "summary", "summary": "beds", "leafUuid": "u"},
    {"type": "user", "sessionId": "s-1", "message": {"role": "user", "content": ASK}},
    {"type": "user", "sessionId": "s-1", "isMeta": True, "message": {"role": "user", "content": "caveat"}},
    *(
        {"type": "assistant", "sessionId": "s-1", "message": {
         "id": "m1", "model": "claude-sonnet-4", "content": [block],
         "usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 3}}}
        for block in ANTHROPIC["messages"][1]["content"][1:]
    ),
    {"type": "user", "sessionId": "s-1", "message": ANTHROPIC["messages"][2], "toolUseResult": {"x": 1}},
    {"type": "assistant", "isSidechain": True, "message": {"content": "of a sub-agent"}},
    {"type": "assistant", "sessionId": "s-1", "message": {"id": "m2", **ANTHROPIC["messages"][3]}},
    {"type": "user", "sessionId": "s-1", "message": ANTHROPIC["messages"][4]},
    {"type": "assistant", "sessionId": "s-1", "message": {"id": "m3", **ANTHROPIC["messages"][5]}},
]  # fmt: skip

ITEMS = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ASK}]},
    {"type": "reasoning", "id": "r", "summary": []},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": SAY}]},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": json.dumps(ARGUMENTS)},
    {"type": "function_call_output", "call_id": "c1", "output": DRY},
    {"type": "function_call", "call_id": "c2", "name": "look", "arguments": json.dumps(ARGUMENTS)},
    {"type": "function_call_output", "call_id": "c2", "output": json.dumps({"output": DRY, "metadata": {}})},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": DONE}]},
]

CODEX = [
    {"type": "session_meta", "payload": {"id": "rollout-1", "cwd": "/beds"}},
    {"type": "turn_context", "payload": {"model": "gpt-5-codex"}},
    {"type": "event_msg", "payload": {"type": "user_message", "message": ASK}},
    *({"type": "response_item", "payload": item} for item in ITEMS),
]


def _gemini_call(number: int) -> dict[str, Any]:
    response = {"functionResponse": {"id": f"g{number}", "name": "look", "response": {"output": DRY}}}
    return {"id": f"g{number}", "name": "look", "args": ARGUMENTS, "status": "success", "result": [response]}


GEMINI = {
    "sessionId": "gem-1",
    "messages": [
        {"type": "user", "content": ASK},
        {"type": "gemini", "content": SAY, "model": "gemini-2.5-pro", "toolCalls": [_gemini_call(1)],
         "tokens": {"input": 9, "output": 2, "thoughts": 1}},
        {"type": "gemini", "content": "", "toolCalls": [_gemini_call(2)]},
        {"type": "info", "content": "not part of the talk"},
        {"type": "gemini", "content": DONE},
    ],
}  # fmt: skip

MINI_SWE_AGENT = {
    "trajectory_format": "mini-swe-agent-1",
    "instance_id": "beds__1",
    "info": {"mini_version": "1.15.0", "config": {"model": {"model_name": "gemini-3-pro"}}},
    "messages": [
        {"role": "system", "content": "Exactly one bash block."},
        {"role": "user", "content": ASK},
        {"role": "assistant", "content": f"THOUGHT: {SAY}\n\n```bash\nlook --bed 4\n```",
         "extra": {"response": {"usage": {"prompt_tokens": 11, "completion_tokens": 4}}}},
        {"role": "user", "content": f"<returncode>0</returncode>\n<output>\n{DRY}\n</output>"},
        {"role": "assistant", "content": "Two:\n```bash\nls\n```\n```bash\npwd\n```"},
        {"role": "user", "content": "Please provide EXACTLY ONE action."},
        {"role": "assistant", "content": DONE},
    ],
}  # fmt: skip

SWE_AGENT = {
    "environment": "main",
    "info": {"exit_status": "submitted"},
    "trajectory": [{"action": "look 4\n", "observation": DRY}],
    "history": [
        {"role": "system", "content": "SETTING"},
        {"role": "user", "content": "a demonstration", "is_demo": True},
        {"role": "user", "content": ASK},
        {"role": "assistant", "content": "look", "thought": SAY, "action": "look 4\n"},
        {"role": "user", "content": DRY},
        {"role": "assistant", "content": "open", "thought": "", "action": "open beds.txt 4"},
        {"role": "user", "content": DRY},
        {"role": "assistant", "content": DONE},
    ],
}

SWE_AGENT_CALLS = {
    **SWE_AGENT,
    "history": [
        {"role": "system", "content": "SETTING", "message_type": "system_prompt"},
        {"role": "user", "content": [{"type": "text", "text": ASK}], "message_type": "observation"},
        *(
            message
            for number in (1, 2)
            for message in (
                {"role": "assistant", "content": SAY if number == 1 else "", "action": "look", "tool_calls": [
                    {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": '{"bed": 4}'}}]},
                {"role": "tool", "content": DRY, "tool_call_ids": [f"c{number}"]},
            )
        ),
        {"role": "assistant", "content": DONE},
    ],
}  # fmt: skip


def _span(number: int, **attributes: Any) -> dict[str, Any]:
    values = [
        {"key": key.replace("__", "."), "value": {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v}}
        for key, v in attributes.items()
    ]
    span = {"traceId": "t1", "spanId": f"s{number}", "startTimeUnixNano": str(10**18 + number), "attributes": values}
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [span]}]}]}


def _part(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


_SPAN_INPUT = [
    {"role": "user", "parts": [_part("text", content=ASK)]},
    {"role": "assistant", "parts": [
        _part("text", content=SAY), _part("tool_call", id="c1", name="look", arguments=ARGUMENTS)]},
    {"role": "tool", "parts": [_part("tool_call_response", id="c1", response=DRY)]},
    {"role": "assistant", "parts": [_part("tool_call", id="c2", name="look", arguments=ARGUMENTS)]},
    {"role": "tool", "parts": [_part("tool_call_response", id="c2", result=DRY)]},
]  # fmt: skip
_SPAN_OUTPUT = [{"role": "assistant", "parts": [_part("text", content=DONE)], "finish_reason": "stop"}]

OTEL = [
    _span(1, gen_ai__operation__name="chat", gen_ai__input__messages=json.dumps(_SPAN_INPUT[:1]),
          gen_ai__output__messages=json.dumps(_SPAN_INPUT[1:2])),
    _span(2, gen_ai__operation__name="execute_tool", gen_ai__tool__name="look"),
    _span(9, gen_ai__operation__name="chat", gen_ai__input__messages=json.dumps(_SPAN_INPUT),
          gen_ai__output__messages=json.dumps(_SPAN_OUTPUT), gen_ai__request__model="gpt-5",
          gen_ai__usage__input_tokens=40, gen_ai__usage__output_tokens=6),
]  # fmt: skip

#: Spans of tools alone, out of order.
OTEL_TOOLS = [
    _span(number, gen_ai__operation__name="execute_tool", gen_ai__tool__name="look",
          gen_ai__tool__call__id=f"c{number}", gen_ai__tool__call__arguments=json.dumps(ARGUMENTS),
          gen_ai__tool__call__result=DRY)
    for number in (2, 1)
]  # fmt: skip

_LANGCHAIN = [
    ("human", {"content": ASK}),
    ("ai", {"content": SAY, "tool_calls": [{"name": "look", "args": ARGUMENTS, "id": "c1"}],
            "usage_metadata": {"input_tokens": 5, "output_tokens": 2}}),
    ("tool", {"content": DRY, "tool_call_id": "c1"}),
    ("ai", {"content": [{"type": "tool_use", "id": "c2"}],
            "tool_calls": [{"name": "look", "args": ARGUMENTS, "id": "c2"}],
            "response_metadata": {"model_name": "gpt-4o"}}),
    ("tool", {"content": [{"type": "text", "text": DRY}], "tool_call_id": "c2"}),
    ("ai", {"content": DONE}),
]  # fmt: skip
LANGCHAIN = [{"type": kind, "data": data} for kind, data in _LANGCHAIN]
LANGCHAIN_PLAIN = {"messages": [{"type": kind, **data} for kind, data in _LANGCHAIN], "thread_id": "th-1"}
LANGCHAIN_DUMPD = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", {"human": "HumanMessage", "ai": "AIMessage",
     "tool": "ToolMessage"}[kind]], "kwargs": data}
    for kind, data in _LANGCHAIN
]  # fmt: skip

INSPECT = {
    "version": 2,
    "status": "success",
    "eval": {"task": "beds", "model": "openai/gpt-4o"},
    "samples": [
        {
            "id": 7,
            "epoch": 1,
            "messages": [
                {"role": "user", "content": ASK},
                *(
                    message
                    for number in (1, 2)
                    for message in (
                        {"role": "assistant", "content": SAY if number == 1 else "", "tool_calls": [
                            {"id": f"c{number}", "function": "look", "arguments": ARGUMENTS, "type": "function"}]},
                        {"role": "tool", "content": DRY, "tool_call_id": f"c{number}", "function": "look"},
                    )
                ),
                {"role": "assistant", "content": [{"type": "text", "text": DONE}]},
            ],
            "scores": {"match": {"value": "C"}},
        }
    ],
}  # fmt: skip

OPENHANDS = [
    {"id": 0, "source": "agent", "action": "system", "args": {"content": "SETTING"}},
    {"id": 1, "source": "user", "action": "message", "args": {"content": ASK}},
    {"id": 2, "source": "agent", "action": "run", "args": {"command": "look 4", "thought": SAY, "blocking": False}},
    {"id": 3, "source": "agent", "observation": "run", "cause": 2, "content": DRY, "extras": {}},
    {"id": 4, "source": "environment", "observation": "agent_state_changed", "cause": 99, "content": ""},
    {"id": 5, "source": "agent", "action": "read", "args": {"path": "beds.txt", "thought": ""}},
    {"id": 6, "source": "agent", "observation": "read", "cause": 5, "content": DRY},
    {"id": 7, "source": "agent", "action": "finish", "args": {"final_thought": DONE}},
]

_CHAT = [
    {"role": "user", "content": ASK},
    *(
        message
        for number in (1, 2)
        for message in (
            {"role": "assistant", "content": SAY if number == 1 else None, "tool_calls": [
                {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": '{"bed": 4}'}}]},
            {"role": "tool", "content": DRY, "tool_call_id": f"c{number}"},
        )
    ),
]  # fmt: skip
LANGFUSE = {
    "id": "trace-1",
    "observations": [
        {"type": "GENERATION", "startTime": "2025-01-01T00:00:02Z", "input": {"messages": _CHAT}, "model": "gpt-4o",
         "output": {"role": "assistant", "content": DONE}},
        {"type": "GENERATION", "startTime": "2025-01-01T00:00:00Z", "input": _CHAT[:1], "output": _CHAT[1]},
        {"type": "SPAN", "startTime": "2025-01-01T00:00:01Z", "name": "look"},
    ],
}  # fmt: skip
LANGFUSE_TOOLS = {
    "id": "trace-2",
    "input": ASK,
    "output": DONE,
    "observations": [
        {"type": "TOOL", "id": f"o{n}", "name": "look", "startTime": str(n), "input": ARGUMENTS, "output": DRY}
        for n in (2, 1)
    ],
}

STEPS = [{"action": "look 4", "observation": DRY, "thought": SAY}, {"action": "look 4", "observation": DRY}]
STEPS_OBJECTS = {
    "id": "run-1",
    "task": ASK,
    "steps": [{"action": {"tool": "look", "arguments": ARGUMENTS}, "observation": {"text": DRY}}] * 2,
}

#: Name of the reader, the run, and whether it stands in lines.
RUNS: dict[str, tuple[str, Any, bool]] = {
    "anthropic": ("anthropic", ANTHROPIC, False),
    "anthropic list": ("anthropic", ANTHROPIC["messages"], False),
    "anthropic lines": ("anthropic", [ANTHROPIC, ANTHROPIC], True),
    "claude code": ("claude_code", CLAUDE_CODE, True),
    "codex": ("codex", CODEX, True),
    "responses": ("openai_responses", ITEMS, False),
    "responses object": ("openai_responses", {"id": "resp_1", "instructions": "Be kind.", "input": ITEMS[:5],
                                             "output": ITEMS[5:], "model": "gpt-5"}, False),
    "gemini": ("gemini_cli", GEMINI, False),
    "mini-swe-agent": ("mini_swe_agent", MINI_SWE_AGENT, False),
    "mini-swe-agent list": ("mini_swe_agent", MINI_SWE_AGENT["messages"], False),
    "swe-agent": ("swe_agent", SWE_AGENT, False),
    "swe-agent calls": ("swe_agent", SWE_AGENT_CALLS, False),
    "otel": ("otel_genai", OTEL, True),
    "otel tools": ("otel_genai", OTEL_TOOLS, True),
    "otel json": ("otel_genai", {"resourceSpans": [r for item in OTEL for r in item["resourceSpans"]]}, False),
    "langchain": ("langchain", LANGCHAIN, False),
    "langchain plain": ("langchain", LANGCHAIN_PLAIN, False),
    "langchain dumpd": ("langchain", LANGCHAIN_DUMPD, False),
    "inspect": ("inspect_ai", INSPECT, False),
    "openhands": ("openhands", OPENHANDS, False),
    "openhands lines": ("openhands", OPENHANDS, True),
    "langfuse": ("langfuse", LANGFUSE, False),
    "langfuse tools": ("langfuse", LANGFUSE_TOOLS, False),
    "langfuse page": ("langfuse", {"data": [LANGFUSE, LANGFUSE_TOOLS], "meta": {}}, False),
    "steps": ("steps", STEPS, False),
    "steps objects": ("steps", STEPS_OBJECTS, False),
    "steps lines": ("steps", STEPS, True),
}  # fmt: skip


def as_text(value: Any, is_lines: bool) -> str:
    """Return a run as the text of its file."""
    return "\n".join(json.dumps(item) for item in value) if is_lines else json.dumps(value)
