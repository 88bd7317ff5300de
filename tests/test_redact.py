from __future__ import annotations

import json

import pytest
from traces import said, step, trace, user

from redclf.cli import main
from redclf.redact import redact, redact_trajectory, redact_value

SECRETS = {
    "key": ["sk-proj-" + "a1B2" * 6, "sk_live_" + "9" * 20, "AKIA" + "ABCD1234" * 2, "AIza" + "x" * 35],
    "token": ["ghp_" + "A1" * 18, "github_pat_" + "b" * 30, "xoxb-123456789012-abc", "hf_" + "q" * 30,
              "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl"],
    "e-mail": ["ann.lee+x@mail.example.org"],
    "card number": ["4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005"],
    "private key": ["-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----"],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "secret"), [(kind, s) for kind, secrets in SECRETS.items() for s in secrets])
def test_secrets_by_their_form(kind, secret):
    assert redact(f"use {secret} now") == f"use [{kind}] now" and redact(secret) == f"[{kind}]"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=hunter22", "password=[secret]"), ('"api_key": "abcd1234"', '"api_key": "[secret]"'),
        ("DB_PASSWORD: s3cret!", "DB_PASSWORD: [secret]"),
        ("Authorization: Bearer abcdef123456789", "Authorization: Bearer [token]"),
        ("https://ann:pw12@host/x", "https://[password]@host/x"),
        ("client_secret = 'zzzz9'", "client_secret = '[secret]'"),
    ],
)  # fmt: skip
def test_secrets_by_their_name(text, shown):
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    ["order 4111111111111112", "id 1234567890123", "2024-05-05 12:00:00.123456", "1111111111111111", "a@b", "sk-1",
     "skip-this-step", "the password is wrong", "file_key_of_the_map", "tokens: 12,000",
     "uuid 123e4567-e89b-12d3-a456-426614174000", ""],
)  # fmt: skip
def test_what_is_no_secret_stays(text):
    assert redact(text) == text


def test_values():
    value = {
        "token": "abc",
        "n": 7,
        "list": ["x@example.org", None],
        "api_key": "",
        "deep": {"password": "p", "count": 3},
    }
    found = redact_value(value)
    assert found == {"token": "[secret]", "n": 7, "list": ["[e-mail]", None], "api_key": "",
                     "deep": {"password": "[secret]", "count": 3}}  # fmt: skip


def test_trajectories_keep_their_shape():
    run = trace(
        user("I am ann@example.org"), step("login", "token=abcd1234secret", {"password": "hunter2"}), said("ok")
    )
    masked = redact_trajectory(run)
    assert "hunter2" not in repr(masked) and "ann@" not in repr(masked) and "Message" in repr(masked)
    assert [item.step for item in masked.interactions] == [item.step for item in run.interactions]


@pytest.mark.parametrize("more", [["--json"], []])
def test_nothing_that_detect_writes_has_them(tmp_path, capfd, more):
    secret = SECRETS["key"][0]
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "look", "arguments": json.dumps({"user": "ann@example.org", "k": secret})},
    }
    pair = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": f"key {secret}", "tool_call_id": "c"},
    ]
    path = tmp_path / "run.json"
    path.write_text(
        json.dumps({"id": "of-ann@example.org", "messages": [{"role": "user", "content": "go"}, *pair, *pair]})
    )

    def run(*arguments):
        with pytest.raises(SystemExit):
            main(["detect", str(path), "--detector", "heuristic", *more, *arguments])
        return "".join(capfd.readouterr())

    assert "ann@example.org" in run() or secret in run()
    shown = run("--redact")
    assert secret not in shown and "ann@example.org" not in shown and "[e-mail]" in shown
    assert "expected none with --redact" in run("--redact", "--resume", "--output", str(tmp_path / "x"))
    target = tmp_path / "out.jsonl"
    run("--redact", "--output", str(target))
    assert "ann@example.org" not in target.read_text() and "Duplicated" in target.read_text()
