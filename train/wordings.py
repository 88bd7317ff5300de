"""Wordings of results that augmentation inserts, all written for this project.

`HELD_OUT` is never used in training: tests ask the shipped model about it.
"""

from __future__ import annotations

TRANSIENT: tuple[str, ...] = (
    "Error: request timed out after 30 seconds",
    "Timeout while waiting for the upstream service. Please retry.",
    '{"error": "timeout", "message": "The operation did not finish in 15000 ms"}',
    '{"status": 503, "error": "Service Unavailable"}',
    '{"error": {"code": 429, "message": "Too many requests, slow down"}}',
    "HTTP 502 Bad Gateway",
    "504 Gateway Time-out",
    "Error 500: internal server error",
    "ConnectionResetError: [Errno 104] Connection reset by peer",
    "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='api', port=443): Read timed out.",
    "Rate limit exceeded. Try again in 20 seconds.",
    "Could not resolve host: backend (temporary failure in name resolution)",
    "Network is unreachable",
    "The service is temporarily unavailable, please try again later.",
    "sqlite3.OperationalError: database is locked",
    "upstream connect error or disconnect/reset before headers. reset reason: connection failure",
    '{"success": false, "message": "Backend overloaded, please try again"}',
    "ECONNREFUSED: connection refused by the remote host",
    "Tool execution failed: socket hang up",
    "grpc error: code = Unavailable desc = transport is closing",
    "Deadline exceeded while calling the backend",
    "The remote end closed the connection without a response",
    "Lock wait timeout exceeded; try restarting the transaction",
    "<error><type>transient</type><detail>node restarting</detail></error>",
    "error: code: E_TEMP\nmessage: the worker was restarted while it handled the request",
    "SSL handshake failed: unexpected EOF",
    "Request aborted: the proxy lost its connection to the server",
    "API temporarily down for maintenance",
    "Zeitüberschreitung bei der Anfrage, bitte erneut versuchen",
    "Erreur réseau : le serveur ne répond pas",
    "Error de red: se agotó el tiempo de espera",
    "请求超时，请稍后重试",
    "サーバーに接続できませんでした",
    "Erro interno temporário, tente novamente",
    "Сервис временно недоступен",
    "null response from service (attempt 1)",
    "Unexpected end of stream",
    "Job was cancelled by the scheduler: node preempted",
)

HELD_OUT: tuple[str, ...] = (
    "Oops, the line to the server went dead. Have another go.",
    '{"fault": "HTTP/1.1 503", "hint": "back off and repeat"}',
    "Timed out: no bytes received for 60s",
    "ConnectionAbortedError: software caused connection abort",
    "Le service est momentanément indisponible",
    '{"error_code": "THROTTLED", "retry_after_s": 5}',
    "read tcp 10.0.0.7:443: i/o timeout",
)

RETRY_TEXTS: tuple[str, ...] = (
    "",
    "",
    "",
    "The call failed for a moment, trying once more.",
    "That timed out. Let me try again.",
    "Retrying.",
    "It seems there was a hiccup; I'll repeat the request.",
    "Ich versuche es noch einmal.",
    "Réessayons.",
)

REFUSED: tuple[str, ...] = (
    "Error: {what} not found",
    '{{"error": "invalid argument", "field": "{what}"}}',
    "Invalid value for {what}",
    "ValueError: {what} has the wrong format",
    '{{"status": "error", "message": "No {what} matches the request"}}',
    "Validation failed: {what} must be a known identifier",
    "400 Bad Request: unexpected {what}",
    "Missing required parameter: {what}",
)

UNKNOWN_TOOL: tuple[str, ...] = (
    "Error: unknown tool '{tool}'",
    "Tool {tool} does not exist",
    '{{"error": "no such function: {tool}"}}',
    "Invalid tool name: {tool}",
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
