"""Masking secrets in what is shown: keys, tokens, passwords, e-mail addresses and card numbers.

Scanners for secrets (detect-secrets, truffleHog) look for lines in files of a repository and report them;
those for personal data (Presidio) need a language model. Neither masks a text in place, so these are
patterns of our own: of keys that say by their form what they are, and of values whose name says it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from redclf.trajectory import Message, ToolCall, Trajectory

_FORMS: tuple[tuple[str, str], ...] = (
    ("private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
    ("token", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    ("key", r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}"),
    ("key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("key", r"\bAIza[A-Za-z0-9_-]{30,}"),
    ("token", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})"),
    ("token", r"\b(?:xox[abposr]-[A-Za-z0-9-]{10,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,})"),
    ("token", r"(?<=\bBearer )[A-Za-z0-9._~+/=-]{12,}"),
    ("password", r"(?<=://)[^\s/:@]+:[^\s/@]+(?=@)"),
    ("e-mail", r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"),
)
_FORM = re.compile("|".join(f"(?P<f{number}>{form})" for number, (_, form) in enumerate(_FORMS)), re.DOTALL)
_NAME = re.compile(
    r"pass(?:word|wd|phrase)|secret|api[-_]?key|access[-_]?key|auth(?:orization)?[-_]?token|token$|credential", re.I
)
_ASSIGNED = re.compile(
    r"(\b[a-z0-9_-]*(?:pass(?:word|wd|phrase)|secret|api[-_]?key|access[-_]?key|auth[-_]?token|credential)[a-z0-9_-]*"
    r"[\"']?\s*[:=]\s*[\"']?)([^\s\"',;}&]{4,})",
    re.IGNORECASE,
)
_CARD = re.compile(r"(?<![\d.-])(?:\d[ -]?){12,18}\d(?![\d.-])")


def redact(text: str) -> str:
    """Return a text with every secret in it masked by its kind in brackets, `[key]`.

    Examples
    --------
    >>> redact("mail ann@example.org, card 4111 1111 1111 1111")
    'mail [e-mail], card [card number]'
    """
    text = _FORM.sub(lambda found: f"[{_FORMS[int((found.lastgroup or 'f0')[1:])][0]}]", text)
    text = _ASSIGNED.sub(lambda found: found[0] if found[2].startswith("[") else f"{found[1]}[secret]", text)
    return _CARD.sub(lambda found: "[card number]" if _is_card(found[0]) else found[0], text)


def _is_card(text: str) -> bool:
    """Return whether digits have the check digit of a card number (Luhn)."""
    digits = [int(char) for char in text if char.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    doubled = [digit if place % 2 == 0 else sum(divmod(2 * digit, 10)) for place, digit in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0


def redact_value(value: Any) -> Any:
    """Return a JSON value with the secrets in its texts masked, and texts whose key names a secret as a whole."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list | tuple):
        return type(value)(redact_value(item) for item in value)
    if isinstance(value, dict):
        return {
            redact(str(key)): "[secret]"
            if isinstance(item, str) and item and _NAME.search(str(key))
            else redact_value(item)
            for key, item in value.items()
        }
    return value


def redact_trajectory(trajectory: Trajectory) -> Trajectory:
    """Return a trajectory with the secrets in its texts, arguments and name masked."""
    mask: Callable[[str], str] = redact

    def message(given: Message) -> Message:
        calls = tuple(
            ToolCall(mask(call.name), redact_value(call.arguments), call.id, call.requestor)
            for call in given.tool_calls
        )
        return replace(given, content=mask(given.content), tool_calls=calls)

    return replace(
        trajectory,
        id=mask(trajectory.id),
        messages=tuple(message(item) for item in trajectory.messages),
        policy=mask(trajectory.policy),
        source=None if trajectory.source is None else mask(trajectory.source),
    )
