"""OpenAI-compatible endpoints, on the `openai` SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from redclf.errors import RedclfError
from redclf.llm.config import LLMConfig
from redclf.llm.http import token_count, unanswered
from redclf.llm.keys import Secret
from redclf.llm.runner import Answer, Request, Unanswered

KEY = "OPENAI_API_KEY"


class OpenAIClient:
    """Sends chat completions.

    Parameters
    ----------
    config : LLMConfig
    secret : Secret

    Raises
    ------
    RedclfError
        If the SDK is not installed.
    """

    def __init__(self, config: LLMConfig, secret: Secret) -> None:
        try:
            from openai import OpenAI
        except ImportError:
            raise RedclfError("llm: expected the llm extra, openai missing; run: pip install 'redclf[llm]'") from None
        self._secret = secret
        # The runner repeats: one rule for all endpoints, and every attempt counted.
        self._client = OpenAI(api_key=secret.reveal(), base_url=config.base_url, timeout=config.timeout, max_retries=0)

    def ask(self, request: Request) -> Answer:
        """Send one request, once.

        Raises
        ------
        Unanswered
        """
        import openai

        body = dict(request.body)
        try:
            response = self._client.chat.completions.with_raw_response.create(
                model=body.pop("model"),
                messages=body.pop("messages"),
                extra_body=body,
                # So that an endpoint which honours it doesn't bill a reply that was lost on the way once more.
                extra_headers={"Idempotency-Key": request.key},
            )
            content = response.http_response.content
        except openai.APIStatusError as error:
            raise unanswered(error.status_code, error.response.headers, str(error), self._secret) from None
        except openai.APIConnectionError as error:
            cause = f"{error}: {error.__cause__}" if error.__cause__ else str(error)
            raise Unanswered(self._secret.redact(cause), retry=True) from None
        except Exception as error:
            # Whatever a library raises may quote headers.
            reason = self._secret.redact(f"{type(error).__name__}: {error}")
            raise Unanswered(reason, retry=False) from None
        return read_completion(content, self._secret)


def read_completion(content: bytes, secret: Secret) -> Answer:
    """Return the text and the token use of a chat completion; without a text where it is not in the wire format."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return Answer(None, "the response is no JSON")
    if not isinstance(value, dict):
        return Answer(None, "the response is no object")
    used = value.get("usage")
    usage: Mapping[str, Any] = used if isinstance(used, dict) else {}
    tokens = token_count(usage.get("prompt_tokens")), token_count(usage.get("completion_tokens"))
    text = _text(value.get("choices"))
    if text is None:
        return Answer(None, "the response holds no text", *tokens)
    return Answer(secret.redact(text), "", *tokens)


def _text(choices: Any) -> str | None:
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else None
