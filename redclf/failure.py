"""Does a tool result report a failure, and of which kind? Pure functions of the result's text."""

from __future__ import annotations

import json
import re
from typing import Any, Final, Literal

FailureKind = Literal["transient", "unknown_tool", "rejected"]

TRANSIENT: Final = "transient"
UNKNOWN_TOOL: Final = "unknown_tool"
REJECTED: Final = "rejected"

#: Only so much of a text is looked at; what a page says further down is content, not a failure.
_HEAD: Final = 300
#: A plain text is an error message by its wording alone only when it is no longer than this.
_SHORT: Final = 200
#: Longer JSON is recognised by its first field, without decoding it.
_JSON_LIMIT: Final = 20_000

_TRANSIENT = re.compile(
    r"""
    \btim(?:ed|ing)[ -]?out\b | \btime-?out(?:[ ]?error|\ exceeded|\ reached|:)
    | \b(?:request|read|connect(?:ion)?|network|gateway|operation|server|http)[ ]time-?out\b
    | timeouterror | readtimeout | connecttimeout | timeoutexpired | deadline[ ]exceeded
    | \bconnection[ ](?:to[ ]\S+[ ])?(?:was[ ])?
      (?:failed|refused|reset|aborted|error|closed|lost|dropped)\b
    | connection(?:refused|reset|aborted)?error\b
    | \bnetwork[ ](?:error|failure|is[ ]unreachable|unreachable|is[ ]down)
    | \bservice[ ](?:is[ ])?(?:currently[ ]|temporarily[ ])?unavailable
    | \btemporar(?:il)?y[ ](?:unavailable|down|overloaded|failure|error|out[ ]of[ ]service)
    | \btoo[ ]many[ ]requests\b | \brate[ -]?limit(?:ed|[ ]exceeded|[ ]reached|error|:)
    | \bbad[ ]gateway\b | \binternal[ ]server[ ]error\b
    | \b(?:name[ ]resolution|could[ ]not[ ]resolve[ ]host|dns[ ](?:error|failure|lookup[ ]failed))
    | \b(?:econnreset|econnrefused|etimedout|eai_again|enetunreach)\b
    | \bdatabase[ ](?:is[ ])?locked\b | \bdeadlock[ ]detected\b
    | \bserver[ ](?:is[ ])?(?:not[ ]responding|overloaded|busy|unreachable)
    | \b(?:please[ ])?try[ ]again[ ]later\b
    | \b(?:http|status|code|error)\b[ :=/."'\w]{0,16}?\b(?:408|429|500|502|503|504|529)\b
    | ^\s*(?:408|429|500|502|503|504|529)\b(?=[ :-]*[a-z])
    | \b(?:over[ ]?loaded|over[ ]capacity|throttled|throttling|unreachable|preempted|evicted)\b
    | \bnot[ ](?:reachable|responding)\b | \b(?:did|does|do)[ ]not[ ](?:respond|answer)\b
    | \bno[ ](?:answer|response|reply|bytes)[ ](?:from|within|received)\b
    | \b(?:null|empty)[ ](?:response|reply)[ ]from\b | \bgave[ ]up[ ]waiting\b
    | \b(?:hang|hung)[ ]up\b | \bbroken[ ]pipe\b | \bend[ ]of[ ]stream\b | \bhandshake[ ](?:failed|failure|error)
    | \bno[ ](?:route[ ]to[ ]host|healthy[ ]upstream)\b | \bname[ ]or[ ]service[ ]not[ ]known\b
    | \bhost[ ]\S*[ ]?(?:is[ ])?(?:down|unreachable)\b | \btransport[ ]is[ ]closing\b
    | \bconnection[ ](?:abort|broken|interrupted|dropped) | \blost[ ](?:its|the)[ ]connection\b
    | \bcould[ ]not[ ](?:reach|obtain[ ]a[ ]connection)\b | \bcircuit[ ]breaker\b | \block[ ]wait\b
    | \b(?:acquire|obtain)[ ]a[ ]lock\b | \bstatement[ ]timeout\b | \b(?:i/o|io|connect|socket)[ ]timeout\b
    | \b(?:server|worker|workers|backend|service)[ ](?:is|are|was)[ ](?:busy|restarted|restarting)\b
    | \b(?:under|for|down[ ]for)[ ]maintenance\b | \bmaintenance[ ]window\b | \btoo[ ]many[ ]connections\b
    | \b(?:try|retry)[ ](?:it[ ])?again[ ]in[ ]\d | \bretry[ -]after\b | \bback[ ]off\b | \bmomentarily\b
    | zeitüberschreitung | (?:antwortet|erreichbar)\b.{0,9}\bnicht\b | nicht[ ]erreichbar | antwortet[ ]nicht
    | vorübergehend | zu[ ]viele[ ]anfragen | verbindung\b.{0,20}(?:unterbrochen|abgebrochen|verloren)
    | ne[ ]répond[ ]pas | délai[ ]d'attente | trop[ ]de[ ]requêtes | momentanément | temporairement
    | tiempo[ ]de[ ]espera | no[ ]está[ ]disponible | conexión\b.{0,20}(?:rechazada|perdida) | perdió[ ]la[ ]conexión
    | tempo[ ]limite | erro[ ]interno | non[ ]risponde | sovraccarico | momentaneamente | reageert[ ]niet
    | 超时 | 暂时不可用 | 连接失败 | 繁忙 | タイムアウト | 接続でき | 시간이[ ]초과 | 응답하지
    | временно[ ]недоступ | время[ ]ожидания | zaman[ ]aşımı | limit[ ]czasu | انتهت[ ]مهلة
    """,
    re.IGNORECASE | re.VERBOSE,
)

_UNKNOWN_TOOL = re.compile(
    r"""
    \b(?:unknown|no[ ]such|invalid|undefined|unrecognized)[ ](?:tool|function)\b
    | \b(?:tool|function)\b[ ]?['"`]?[\w.\-]*['"`]?[ ]
      (?:(?:was|is)[ ])?(?:not[ ]found|does[ ]not[ ]exist|not[ ]available|unknown)
    """,
    re.IGNORECASE | re.VERBOSE,
)

_LEADING_ERROR = re.compile(
    r"""
    (?:[\[(<*"'`\s]*)
    (?: (?:error|errors|fatal|failure|exception|tool[ ]error|api[ ]error|request[ ]failed|failed)
        (?:[ ]?[:!\])]|[ ](?:executing|calling|running|while|in|when|\d{3}|code)\b|$)
      | traceback[ ]\(most[ ]recent[ ]call[ ]last\)
      | (?:[a-z_]\w*\.)*[A-Za-z]\w*(?:Error|Exception|Timeout)(?::|\b\(|$)
      | (?:invalid|missing|unknown|unsupported)[ ](?:argument|parameter|tool|function|request|input)
      | (?:permission|access)[ ]denied | (?:un)?authorized:? | forbidden:?
      | http(?:/[\d.]+)?[ ](?:error[ ])?[45]\d\d
      | [45]\d\d[ ]
        (?:client|server|bad|unauthorized|forbidden|not|request|too|internal|service|gateway)
      | (?:/\S+/)?(?:ba)?sh:[ ]
      | curl:[ ]\(\d+\) | panic:[ ] | grpc[ ]error | (?:[a-z_]\w*\.)+[A-Z]\w*(?:Error|Exception):
      | (?:status|state)[ ]?:[ ](?:error|failed)\b | (?:ok|success)[ ]?:[ ]false\b
      | <\??(?:xml|error|fault)\b | error_?code\b
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)

_LEADING_JSON_ERROR = re.compile(r"""\s*\{\s*"(?:error|errors|exception)"\s*:\s*["{\[]""", re.IGNORECASE)
_SHELL = re.compile(r"\s*<returncode>(-?\d+)</returncode>\s*(?:<exception>|<(?:output|warning)>)?", re.IGNORECASE)
_ERROR_FIELDS: Final = ("error", "errors", "exception", "error_message", "errormessage", "fault")
_DETAIL_FIELDS: Final = ("message", "detail", "details", "reason", "description", "type", "code", "content", "hint")
_FAILED_STATUS: Final = frozenset({"error", "failed", "failure", "fail"})


def failure_kind(text: str) -> FailureKind | None:
    """Return the kind of failure that a tool result reports, or None.

    Only the places where an error message stands are read: the error field of a JSON object, the
    exit code of a shell wrapper, the leading line, or the whole of a short text. A long page that
    mentions a time-out somewhere is no failure; nor is an empty or negative answer.

    Parameters
    ----------
    text : str
        The result as the agent saw it.

    Returns
    -------
    {"transient", "unknown_tool", "rejected"} or None
        "transient": an outside failure (time-out, connection, rate limit, server error), which the
        same call may survive. "unknown_tool": there is no such tool. "rejected": anything else that
        the tool refused or that crashed (not found, invalid argument, permission, traceback).

    Examples
    --------
    >>> failure_kind('{"error": "Request timed out", "status": "failed"}')
    'transient'
    >>> failure_kind("Error: User not found")
    'rejected'
    >>> failure_kind('{"status": "delivered"}') is None
    True
    """
    head = text[: 4 * _HEAD].lstrip()
    if not head:
        return None
    if head[0] in "{[":
        message = _json_error(text) if len(text) <= _JSON_LIMIT else _long_json_error(head)
        if message is not None:
            return _kind_of(message) if message else None
    shell = _SHELL.match(head)
    if shell:
        return _shell_failure(int(shell.group(1)), head[shell.end() :].lstrip(), text)
    return _plain_failure(head, text)


def _kind_of(message: str) -> FailureKind:
    if _UNKNOWN_TOOL.search(message):
        return "unknown_tool"
    return "transient" if _TRANSIENT.search(message) else "rejected"


def _plain_failure(head: str, text: str) -> FailureKind | None:
    line = head.split("\n", 1)[0][:_HEAD]
    if head.lower().startswith("traceback (most recent"):
        # The exception stands in the last line of a traceback.
        return _kind_of(text[-_HEAD:].rstrip().rsplit("\n", 1)[-1])
    if _LEADING_ERROR.match(line):
        # A short reply may name its cause in the lines that follow.
        return _kind_of(text.strip() if len(text) <= _SHORT else line)
    if len(text) <= _SHORT and "\n" not in text.strip():
        if _UNKNOWN_TOOL.search(line):
            return "unknown_tool"
        if _TRANSIENT.search(line):
            return "transient"
    return None


def _shell_failure(code: int, output: str, text: str) -> FailureKind | None:
    if code == 0:
        return None
    if code in (124, 142):
        return "transient"
    body = output.removesuffix("</output>").strip()
    found = _plain_failure(body, text.removesuffix("</output>").rstrip()) if body else None
    if found is not None:
        return found
    # Exit code 1 is also how grep says "no match" and a test run "some failed": results, both.
    return None if code == 1 else "rejected"


def _long_json_error(head: str) -> str | None:
    match = _LEADING_JSON_ERROR.match(head)
    return head[match.end() :][:_HEAD] if match else ""


def _json_error(text: str) -> str | None:
    """Return the error message of a JSON text, "" if it has none, None if it isn't JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return ""
    fields = {str(key).lower(): item for key, item in value.items()}
    for name in _ERROR_FIELDS:
        if fields.get(name) not in (None, "", False, 0, [], {}, "none", "None"):
            return _message(fields[name], fields)
    for name in ("success", "ok"):
        if fields.get(name) is False and _details(fields):
            return _message("", fields)
    if fields.get("iserror") is True or fields.get("is_error") is True:
        return _message("", fields)
    status = fields.get("status")
    failed = isinstance(status, str) and status.lower() in _FAILED_STATUS
    # A record whose status happens to be "failed" has other fields than an error reply.
    if failed and set(fields) <= {"status", *_DETAIL_FIELDS}:
        return _message(status, fields)
    return ""


def _details(fields: dict[str, Any]) -> list[str]:
    found = {name: fields[name] for name in _DETAIL_FIELDS if name in fields}
    return [
        f"{name} {value}" if isinstance(value, int) else value
        for name, value in found.items()
        if isinstance(value, str | int) and not isinstance(value, bool)
    ]


def _message(error: Any, fields: dict[str, Any]) -> str:
    if isinstance(error, dict):
        inner = {str(key).lower(): item for key, item in error.items()}
        parts = _details(inner) or [json.dumps(error, default=str)]
    elif isinstance(error, str):
        parts = [error]
    else:
        parts = [json.dumps(error, default=str)]
    code = fields.get("status_code", fields.get("code"))
    if isinstance(code, int) and not isinstance(code, bool):
        parts.append(f"code {code}")
    elif not isinstance(error, str) or error.lower() in _FAILED_STATUS or not error:
        parts += _details(fields)
    return " ".join(part for part in parts if part)[:_HEAD] or "error"
