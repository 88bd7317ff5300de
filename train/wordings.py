"""Wordings of results that augmentation inserts, all written for this project.

The `HELD_OUT` lists are never used in training: tests ask the failure classifier and the shipped model about them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

#: What went wrong outside, as services, libraries and people put it.
CAUSES: tuple[str, ...] = (
    "request timed out after {n} seconds",
    "timeout while waiting for the upstream service",
    "the operation did not finish in {n}000 ms",
    "read timed out",
    "connect timeout to {host}",
    "deadline exceeded",
    "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
    "no answer from {host} within {n}s",
    "gave up waiting for a worker",
    "query cancelled: statement timeout",
    "service unavailable",
    "the service is temporarily unavailable",
    "backend overloaded",
    "server is busy",
    "all workers are busy",
    "over capacity right now",
    "temporarily down for maintenance",
    "maintenance window in progress",
    "node restarting",
    "the worker was restarted while it handled the request",
    "pod was evicted before it could answer",
    "leader election in progress",
    "replica is catching up, reads are paused",
    "circuit breaker is open for {host}",
    "no healthy upstream",
    "upstream connect error or disconnect/reset before headers",
    "bad gateway",
    "gateway time-out",
    "internal server error",
    "unexpected condition on the server side",
    "too many requests",
    "rate limit exceeded",
    "rate limit reached, {n} requests per minute allowed",
    "quota for this minute is used up",
    "request was throttled",
    "connection reset by peer",
    "connection refused by {host}",
    "connection aborted",
    "the remote end closed the connection without a response",
    "broken pipe while sending the request",
    "socket hang up",
    "unexpected end of stream",
    "TLS handshake failed: unexpected EOF",
    "the proxy lost its connection to the server",
    "network is unreachable",
    "no route to host {host}",
    "temporary failure in name resolution",
    "could not resolve host: {host}",
    "DNS lookup failed for {host}",
    "network error",
    "packet loss too high, transfer given up",
    "database is locked",
    "deadlock detected, transaction rolled back",
    "lock wait timeout exceeded; try restarting the transaction",
    "could not obtain a connection from the pool",
    "the cache cluster did not respond",
    "message broker not reachable",
    "storage backend returned an incomplete read",
    "job was cancelled by the scheduler: node preempted",
    "null response from the service",
    "empty reply from server",
    "the session to the backend dropped",
    "transport is closing",
    "failed to fetch: the stream was interrupted",
    "the tool crashed before it returned anything, nothing was changed",
    "could not reach the {noun} service",
    "the {noun} service is not responding",
    "{noun} backend: temporary failure",
    "something went wrong on our side",
    "we are having trouble reaching the {noun} system",
    "Zeitüberschreitung bei der Anfrage",
    "Der Dienst ist vorübergehend nicht erreichbar",
    "Verbindung zum Server unterbrochen",
    "Zu viele Anfragen, bitte kurz warten",
    "Erreur réseau : le serveur ne répond pas",
    "Délai d'attente dépassé",
    "Trop de requêtes, patientez un instant",
    "Error de red: se agotó el tiempo de espera",
    "El servidor no está disponible por el momento",
    "Conexión rechazada por el servidor",
    "Erro interno temporário",
    "Tempo limite da solicitação esgotado",
    "Il server non risponde, connessione persa",
    "Servizio momentaneamente sovraccarico",
    "De server reageert niet, verbinding verbroken",
    "请求超时",
    "服务暂时不可用",
    "网络连接失败",
    "サーバーに接続できませんでした",
    "タイムアウトが発生しました",
    "요청 시간이 초과되었습니다",
    "서버가 일시적으로 응답하지 않습니다",
    "Сервис временно недоступен",
    "Превышено время ожидания ответа",
    "Sunucuya bağlanılamadı, zaman aşımı",
    "Przekroczono limit czasu żądania",
    "انتهت مهلة الطلب",
    "सर्वर से संपर्क नहीं हो सका",
    "the line to the server went dead, have another go",
    "timed out: no bytes received for {n}s",
    "software caused connection abort",
    "i/o timeout while reading tcp {host}:443",
    "THROTTLED, back off",
    "the upstream is momentarily unreachable",
    "host {host} is down",
    "name or service not known: {host}",
    "too many connections, slow down",
    "server overloaded",
    "unable to acquire a lock on the table, another transaction holds it",
    "Le service est momentanément indisponible",
    "Die Gegenstelle antwortet nicht",
    "Se perdió la conexión con el servicio",
    "接続がタイムアウトしました",
    "服务器繁忙",
)

#: How the cause is dressed; `{c}` the cause, `{j}` the cause as a JSON string, `{code}` a status code.
WRAPPERS: tuple[str, ...] = (
    "{c}",
    "Error: {c}",
    "ERROR {c}",
    "[error] {c}",
    "Error executing tool: {c}",
    "Tool execution failed: {c}",
    "API error {code}: {c}",
    "HTTP {code} - {c}",
    "{code} {c}",
    "Exception: {c}",
    "TimeoutError: {c}",
    "ConnectionError: {c}",
    "requests.exceptions.ConnectionError: {c}",
    "httpx.ReadError: {c}",
    "sqlalchemy.exc.OperationalError: {c}",
    "grpc error: code = Unavailable desc = {c}",
    "curl: (28) {c}",
    "Warning: {c}. No data was returned.",
    "Sorry, {c}.",
    '{{"error": {j}}}',
    '{{"error": {{"code": {code}, "message": {j}}}}}',
    '{{"error": "upstream", "message": {j}}}',
    '{{"status": "error", "message": {j}}}',
    '{{"status": {code}, "error": {j}}}',
    '{{"success": false, "message": {j}}}',
    '{{"ok": false, "reason": {j}, "retryable": true}}',
    '{{"isError": true, "content": {j}}}',
    '{{"errors": [{{"status": "{code}", "detail": {j}}}]}}',
    '{{"result": null, "exception": {j}}}',
    "<error><type>transient</type><detail>{c}</detail></error>",
    '<?xml version="1.0"?><fault><code>{code}</code><string>{c}</string></fault>',
    "status: error\nmessage: {c}\n",
    "error:\n  code: {code}\n  message: {c}\n",
    "Traceback (most recent call last):\n"
    '  File "/srv/app/client.py", line {n}, in send\n    raise BackendError(text)\nBackendError: {c}',
    "java.io.IOException: {c}\n\tat net.Client.call(Client.java:{n})\n\tat net.Client.run(Client.java:21)",
    "panic: {c}\n\ngoroutine {n} [running]:\nmain.call()",
    "HTTP/1.1 {code}\ncontent-type: text/plain\n\n{c}",
)

HINTS: tuple[str, ...] = (
    "", "", "", "", "", " Please retry.", " Try again in {n} seconds.", " Please try again later.", " (attempt 1)",
    " Retry-After: {n}", " Bitte erneut versuchen.", " Veuillez réessayer.", " It is safe to repeat this call.",
)  # fmt: skip

_HOSTS = ("backend", "api.internal", "10.2.0.14", "db-replica-2", "gateway", "search.svc", "core.example.net")
_CODES = ("408", "429", "500", "502", "503", "504", "529")


def failure_text(rng: random.Random) -> str:
    """Return a transient failure in one of thousands of wordings."""
    return _dressed(rng, CAUSES, WRAPPERS, HINTS)


def _dressed(rng: random.Random, causes: Sequence[str], wrappers: Sequence[str], hints: Sequence[str]) -> str:
    parts = {
        "host": rng.choice(_HOSTS),
        "n": str(rng.choice((2, 5, 10, 15, 20, 30, 45, 60))),
        "noun": rng.choice(NOUNS),
    }
    cause = (rng.choice(causes) + rng.choice(hints)).format(**parts)
    if rng.random() < 0.4:
        cause = cause[:1].upper() + cause[1:]
    return rng.choice(wrappers).format(
        c=cause, j=json.dumps(cause, ensure_ascii=False), code=rng.choice(_CODES), n=parts["n"]
    )


#: Kept out of training: other causes in other dresses.
HELD_OUT_CAUSES: tuple[str, ...] = (
    "we could not complete your request at this moment, please repeat it",
    "server closed idle connection",
    "write tcp {host}: use of closed network connection",
    "ERR_CONNECTION_TIMED_OUT",
    "ESOCKETTIMEDOUT",
    "ThrottlingException: rate of requests exceeds the allowed limit",
    "resource exhausted, slow down",
    "backend fetch failed",
    "leader not available",
    "an existing connection was forcibly closed by the remote host",
    "proxy error: could not read from remote server",
    "pool exhausted: no free connection after {n}s",
    "TNS: connect timeout occurred",
    "could not serialize access, retry the transaction",
    "the {noun} endpoint went away while answering",
    "lost contact with {host}",
    "Serveur injoignable",
    "Anfrage abgebrochen, Netzwerkfehler",
    "Tempo de espera esgotado ao contactar o servidor",
    "сеть недоступна",
    "ネットワークエラー",
    "系统忙，请稍候",
    "El tiempo de respuesta se agotó",
)
HELD_OUT_WRAPPERS: tuple[str, ...] = (
    "{c}",
    "Unable to complete the call. {c}",
    "Oops, {c}",
    "System.Net.WebException: {c}",
    '{{"outcome": "failed", "cause": {j}}}',
    '{{"type": "error", "error": {{"type": "api_error", "message": {j}}}}}',
    '{{"code": "E{code}", "error_message": {j}}}',
    "[retryable] {c}",
    "reply:\n  ok: false\n  cause: {c}\n",
)


def held_out_failures(count: int = 120) -> tuple[str, ...]:
    """Return failures that training never sees."""
    rng = random.Random(0)
    found = dict.fromkeys(_dressed(rng, HELD_OUT_CAUSES, HELD_OUT_WRAPPERS, ("",)) for _ in range(count))
    return tuple(found)


RETRY_TEXTS: tuple[str, ...] = (
    "",
    "",
    "",
    "The call failed for a moment, trying once more.",
    "That timed out. Let me try again.",
    "Retrying.",
    "It seems there was a hiccup; I'll repeat the request.",
    "The service did not answer. Same call again.",
    "Let me retry the previous step, since the connection dropped.",
    "Ich versuche es noch einmal.",
    "Réessayons.",
    "Lo intento de nuevo.",
    "再试一次。",
)

#: Refusals of an argument: `{what}` its name, `{value}` what was sent.
REFUSED: tuple[str, ...] = (
    "Error: {what} not found",
    '{{"error": "invalid argument", "field": "{what}"}}',
    "Invalid value for {what}",
    "ValueError: {what} has the wrong format",
    '{{"status": "error", "message": "No {what} matches the request"}}',
    "Validation failed: {what} must be a known identifier",
    "400 Bad Request: unexpected {what}",
    "Missing required parameter: {what}",
    "ValueError: there is no record for {what} '{value}'.",
    "LookupError: nothing is filed under '{value}'",
    "KeyError: '{value}'",
    "Error: no {what} named {value}",
    '{{"error": "not_found", "detail": "{what} {value} is not on record"}}',
    '{{"success": false, "message": "{what} does not exist"}}',
    "404 Not Found: {value}",
    "error: unknown {what} ({value})",
    "message: the {what} could not be resolved\nstatus: not_found\n",
    "<error><code>NOT_FOUND</code><field>{what}</field></error>",
    "The supplied {what} does not match the record.",
    "Kein Eintrag für {what} '{value}'",
    "Aucun résultat : {what} inconnu",
)

#: Refusals of a call's form: `{what}` the argument.
BAD_FORM: tuple[str, ...] = (
    "TypeError: missing 1 required argument: '{what}'",
    "TypeError: got an unexpected keyword argument '{what}'",
    "schema error: property '{what}' is not allowed here",
    "Invalid arguments: {what} should be one of the listed options",
    '{{"error": "bad request", "detail": "{what}: wrong type"}}',
    "{what}: field required",
    "InputError: {what} must not be empty",
    "422 Unprocessable: {what} could not be parsed",
    "Argument check failed\n  {what}: expected string, received object",
    "error: option {what} is not recognised",
    "CallError: the arguments do not fit the tool\n{what}\n  must be one of the values listed in its description",
    "InvalidInput: 1 problem\n  {what}: a text was expected, something else was given",
    "SchemaViolation: {what}\n  [kind=enum] this value is not among the choices",
    '{{"problems": [{{"argument": "{what}", "text": "not allowed"}}], "error": "invalid arguments"}}',
)

UNKNOWN_TOOL: tuple[str, ...] = (
    "Error: unknown tool '{tool}'",
    "Tool {tool} does not exist",
    '{{"error": "no such function: {tool}"}}',
    "Invalid tool name: {tool}",
    "AttributeError: no tool is registered as {tool}",
    "{tool} is not available in this environment",
    '{{"status": "error", "message": "tool {tool} not found"}}',
)

EMPTY: tuple[str, ...] = (
    "[]",
    "{}",
    "No results found.",
    "No matches.",
    '{"results": [], "total": 0}',
    "results: []",
    "0 items",
    "Nothing found for this query.",
    '{"items": []}',
    "hits: 0\n",
    "entries: []\n",
    "Your search did not match any record.",
    "(no rows)",
)

#: Pages that do not exist: `{url}` what was asked for.
NO_PAGE: tuple[str, ...] = (
    "404: there is no page at {url}",
    "text: This page does not exist.\nlink: null\n",
    '{{"error": "page not found"}}',
    "The document could not be found.",
    "Not found: {url}",
)

#: What checks say that only rule something out.
RULED_OUT: tuple[str, ...] = (
    "status: ok\nproblems: none\n",
    '{"healthy": true, "warnings": []}',
    "No issue detected.",
    "All checks passed.",
    '{"result": "normal", "action_required": false}',
    "Nothing unusual found.",
    "state: operational\nlast_incident: null\n",
)

SEARCH_TOOLS: tuple[str, ...] = (
    "find_documents", "web_lookup", "kb_search", "searchArticles", "query_library", "look_for_pages", "search_help",
    "discover_sources", "internet.search", "search_index",
)  # fmt: skip
PAGE_TOOLS: tuple[str, ...] = (
    "read_document", "fetch_page", "open_article", "browse", "getPage", "load_source", "view_entry", "read_url",
)  # fmt: skip
PAGE_TITLES: tuple[str, ...] = (
    "Guide to your {a} {b}", "{a} {b}: questions and answers", "How a {a} {b} is handled", "{a} rules and {b} fees",
    "About the {a} {b}", "Terms of the {a} {b}", "{a} and {b}: an overview", "Contact the {a} {b} desk",
)  # fmt: skip
PAGE_SENTENCES: tuple[str, ...] = (
    "A {a} must be filed within {n} days of the {b}.",
    "The {a} desk is open from {n}:00 and answers questions about the {b}.",
    "The fee for a {a} is {n}.{m}, the {b} is free.",
    "Requests carry a reference such as {id}.",
    "Each {a} is linked to one {b} under {id}.",
    "After {n} days the {a} passes to the {b} team.",
    "Keep the {b} number {id} at hand.",
    "No {a} is needed where the {b} is already on record.",
)
QUOTES: tuple[str, ...] = (
    "According to {title}: {fact}",
    "{fact} ({title})",
    "What I found: {fact}",
    "Note: {fact}",
    'The page "{title}" says: {fact}',
)
QUERY_WORDS: tuple[str, ...] = tuple(
    """official current rules steps contact form fee deadline process support terms guide where how request
    eligibility coverage schedule requirements status online policy""".split()
)
REASONS: tuple[str, ...] = (
    "Needed to check the {a} before going on.",
    "I want to see which {a} applies.",
    "To confirm the {a} and the {b}.",
    "The user asked about the {a}; look it up.",
    "Find out whether the {b} is on record.",
)

VERBS: dict[int, tuple[str, ...]] = {
    -1: ("get", "fetch", "lookup", "read", "list", "find", "query", "show", "search", "retrieve", "check"),
    1: ("update", "set", "create", "submit", "send", "cancel", "modify", "add", "remove", "register"),
    0: ("do", "handle", "process", "run"),
}

NOUNS: tuple[str, ...] = tuple(
    """ticket invoice parcel patient booking course lesson sensor recipe vehicle permit grant claim shipment meter
    profile lease contract sample device account roster listing catalog folder record event agenda warehouse pallet
    farm crop turbine vessel container archive exhibit loan policy premium dosage clinic ward exam transcript report
    dataset pipeline cluster node backup route depot crew shift garden museum concert stadium menu dish cellar hotel
    room cabin trail camera drone battery charger outage grid tariff subsidy donor campaign ballot district""".split()
)

ASPECTS: tuple[str, ...] = (
    "details", "status", "summary", "by_id", "options", "history", "info", "overview", "records", "context",
)  # fmt: skip

#: What a shell says to an edit with a slip in it, and its exit code.
EDIT_COMPLAINTS: tuple[tuple[str, int], ...] = (
    ("sed: -e expression #1, char {n}: unterminated `s' command", 1),
    ("sed: -e expression #1, char {n}: unknown option to `s'", 1),
    ("bash: -c: line {n}: unexpected EOF while looking for matching quote", 2),
    ("bash: -c: line {n}: syntax error near unexpected token", 2),
    ("SyntaxError: unterminated string literal (line {n})", 1),
    ("IndentationError: unexpected indent (line {n})", 1),
    ("error: patch failed at line {n}", 1),
    ("E999 SyntaxError: invalid syntax, edit was not applied (line {n})", 1),
)
