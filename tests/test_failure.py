import doctest

import pytest

import redclf.failure
from redclf.failure import failure_kind


@pytest.mark.parametrize(
    "text",
    [
        '{"error": "connection error while asking the depot", "status": "failed"}',
        '{"error": {"code": 503, "message": "overloaded"}}',
        '{"status": "error", "message": "Rate limit exceeded"}',
        '{"success": false, "message": "gateway timeout"}',
        "Error: 429 Too Many Requests",
        "HTTP 502 Bad Gateway",
        "503 Service Unavailable",
        "TimeoutError: the read operation timed out",
        "sqlite3.OperationalError: database is locked",
        "curl: (6) Could not resolve host: example.org",
        "The service is temporarily unavailable.",
        "Traceback (most recent call last):\n  File 'a.py'\nConnectionResetError: [Errno 104]",
        "<returncode>124</returncode>\n<output>\n</output>",
    ],
)
def test_transient(text):
    assert failure_kind(text) == "transient"


@pytest.mark.parametrize(
    "text",
    [
        "Error: no such member",
        "LookupError: the crate number 'next' names nothing",
        "Traceback (most recent call last):\n  File 'timeout.py', line 1\nKeyError: 'x'",
        '{"error": "invalid argument: date"}',
        '{"isError": true, "message": "no permission"}',
        '{"errors": [{"detail": "bad date"}]}',
        "Permission denied",
        "<returncode>127</returncode>\n<output>\nbash: line 1: pytest: command not found\n",
        "<returncode>1</returncode>\n<output>\nTraceback (most recent call last):\nNameError: x\n",
    ],
)
def test_rejected(text):
    assert failure_kind(text) == "rejected"


@pytest.mark.parametrize(
    "text",
    [
        "Error: Tool 'open_gate' not found.",
        "Unknown tool: search",
        '{"error": "no such function"}',
    ],
)
def test_unknown_tool(text):
    assert failure_kind(text) == "unknown_tool"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "{}",
        "[]",
        "null",
        '{"error": null, "result": 3}',
        '{"error": false}',
        '{"status": "failed", "parcel": "P1", "content": []}',
        '{"note": "the request timed out", "id": 3}',
        '[{"error": "timeout"}]',
        "Nothing on that shelf.",
        "kiln_state: error_seen\nbatch: 3",
        "# Troubleshooting\n\n" + "If the request timed out, try again later. " * 20,
        '{"text": "' + "Error: timed out. " * 2000 + '"}',
        "<returncode>0</returncode>\n<output>\nError: caught as expected\n</output>",
        "<returncode>1</returncode>\n<output>\n</output>",
        "Errors and exceptions are described in chapter 8",
    ],
)
def test_no_failure(text):
    assert failure_kind(text) is None


def test_a_long_error_reply_is_one():
    assert failure_kind('{"error": "timed out", "trace": "' + "x" * 50_000 + '"}') == "transient"


def test_a_huge_text_costs_nothing():
    assert failure_kind("[" * 50_000_000) is None


def test_deep_nesting_is_no_crash():
    assert failure_kind("[" * 15_000) is None


def test_examples():
    assert doctest.testmod(redclf.failure).failed == 0
