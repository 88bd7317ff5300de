"""What HTTP statuses mean to the runner, whichever SDK met them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from redclf.llm.keys import Secret
from redclf.llm.runner import Unanswered

_RETRIED = frozenset({408, 409, 429})
#: No other request would go better: wrong key, no credit, no access, no such model.
_FATAL = frozenset({401, 402, 403, 404})
_LONGEST_REASON = 300


def unanswered(status: int, headers: Mapping[str, str], text: str, secret: Secret) -> Unanswered:
    """Return what an HTTP status other than success means."""
    reason = secret.redact(text)[:_LONGEST_REASON]
    if status in _FATAL:
        return Unanswered(
            f"the endpoint answered {status}: {reason} (the key is taken from {secret.variable})", False, fatal=True
        )
    retry = status in _RETRIED or status >= 500
    return Unanswered(f"HTTP {status}: {reason}", retry, retry_after(headers) if retry else None)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `Retry-After` (a number or a date); None without a usable one."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def token_count(value: Any) -> int | None:
    """Return a count of tokens; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
