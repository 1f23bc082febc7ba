//! Exit codes, and the codes of requests that metamcp refuses.

use super::{ErrorEntry, ErrorGroup, entry};

/// Exit codes.
pub(super) const EXIT_CODES: ErrorGroup = ErrorGroup {
    key: "exit codes",
    title: "Exit codes",
    intro: "`metamcp` ends with one of these exit codes.",
    entries: EXIT_CODES_ENTRIES,
};

const EXIT_CODES_ENTRIES: &[ErrorEntry] = &[
    entry("0", "The command is done.", "Nothing is to be done."),
    entry(
        "1",
        "The command ran and failed: the service or a server refused, the arguments do not fit the tool, the tool reports a failure, or the script failed.",
        "Read the message and its hint.",
    ),
    entry(
        "64",
        "The command line is invalid.",
        "Read the message; `metamcp COMMAND --help` lists the arguments.",
    ),
    entry(
        "69",
        "No service answers, or it hangs.",
        "Start the service, restart one that hangs, or name its socket with `--socket`; `metamcp doctor` finds the reason.",
    ),
    entry(
        "78",
        "The configuration is invalid. systemd does not start the service again after this code.",
        "Run `metamcp check`, correct the file, then start the service.",
    ),
    entry(
        "130",
        "Ctrl-c cancelled a call or a script.",
        "Check the effects of the call before you repeat it.",
    ),
];

/// HTTP statuses.
pub(super) const HTTP_STATUSES: ErrorGroup = ErrorGroup {
    key: "HTTP statuses",
    title: "HTTP statuses",
    intro: "Clients get these statuses. The body of a refusal has a code of the next sections.",
    entries: HTTP_STATUSES_ENTRIES,
};

const HTTP_STATUSES_ENTRIES: &[ErrorEntry] = &[
    entry(
        "200",
        "The request was read. Its answer may still be a JSON-RPC error.",
        "Read `error` in the body.",
    ),
    entry(
        "202",
        "A notification or a response was taken. It has no answer.",
        "Nothing is to be done.",
    ),
    entry("204", "`DELETE` has ended the session.", "Send `initialize` for a new session."),
    entry(
        "400",
        "The body is not JSON, not a message, of an unsupported version, or contradicts the headers; or the session id is missing.",
        "Send one JSON-RPC message, and the headers that the version requires.",
    ),
    entry(
        "401",
        "The bearer token is missing or wrong.",
        "Set the header `Authorization: Bearer TOKEN` in the client's configuration.",
    ),
    entry(
        "403",
        "The `Host` or the `Origin` is not allowed.",
        "Use `127.0.0.1` or `localhost`, or add the name to `listen.allowed_hosts` or `listen.allowed_origins`.",
    ),
    entry(
        "404",
        "The path, the server or the session does not exist; or a client of 2026-07-28 asked for an unknown method.",
        "Check the path; after an unknown session, send `initialize`.",
    ),
    entry("405", "The path does not accept this HTTP method.", "Use a method that `Allow` names."),
    entry(
        "406",
        "The `Accept` header allows neither JSON nor events.",
        "Send `Accept: application/json, text/event-stream`.",
    ),
    entry("408", "The body did not arrive in time.", "Send the whole body at once."),
    entry("413", "The body is too large.", "Send less data in one request."),
    entry(
        "415",
        "The `Content-Type` is not `application/json`.",
        "Send `Content-Type: application/json`.",
    ),
    entry(
        "429",
        "Too many wrong tokens came from this user or host.",
        "Correct the token; try again after `Retry-After`.",
    ),
    entry("500", "The service itself failed.", "Report the log of the service."),
    entry(
        "503",
        "`/readyz` names what is not ready; any other path has no room.",
        "Try again after `Retry-After`; see [limits](reference/limits.md).",
    ),
];

/// JSON-RPC codes.
pub(super) const RPC_CODES: ErrorGroup = ErrorGroup {
    key: "JSON-RPC codes",
    title: "JSON-RPC codes",
    intro: "The member `code` of an error is a number. The member `data.code` is more precise.",
    entries: RPC_CODES_ENTRIES,
};

const RPC_CODES_ENTRIES: &[ErrorEntry] = &[
    entry("-32700", "The text is not JSON.", "Send one JSON-RPC 2.0 message as UTF-8."),
    entry(
        "-32600",
        "The JSON is not a message, or metamcp refused it before it was read.",
        "See `data.code`.",
    ),
    entry(
        "-32601",
        "The method does not exist for this server and protocol version.",
        "Use a method that the server declares.",
    ),
    entry(
        "-32602",
        "The parameters do not fit, or name an unknown tool, server or cursor.",
        "See `data.suggestion`.",
    ),
    entry("-32603", "metamcp or the server failed.", "See `data.code`."),
    entry(
        "-32000",
        "The request needs a session id.",
        "Send the `Mcp-Session-Id` of the answer to `initialize`.",
    ),
    entry(
        "-32001",
        "The server did not answer in time; with HTTP status 404, the session is unknown.",
        "Raise `request_timeout`; after 404, send `initialize`.",
    ),
    entry("-32002", "The server has no such resource.", "See `resources/list`."),
    entry(
        "-32010",
        "For operators: the breaker of the server is open.",
        "Wait `data.context.retryAfterMs`, or see `metamcp status`.",
    ),
    entry(
        "-32011",
        "For operators: connections, requests or memory are used up.",
        "Try again when others have released some.",
    ),
    entry(
        "-32012",
        "For operators: metamcp could not connect the server, or the server ended or broke off its answer.",
        "Run `metamcp doctor --server NAME`.",
    ),
    entry(
        "-32020",
        "A header contradicts the body of the request.",
        "Send the same values in both.",
    ),
    entry(
        "-32021",
        "The request needs a capability that the client has not declared.",
        "Declare the capability with the request.",
    ),
    entry("-32022", "The protocol version is not served.", "Use a version of `data.supported`."),
    entry(
        "-32042",
        "The server wants the user to visit a URL first.",
        "Open the URL, then call again.",
    ),
];

/// Requests that are refused.
pub(super) const REQUEST_CODES: ErrorGroup = ErrorGroup {
    key: "requests that are refused",
    title: "Requests that are refused",
    intro: "metamcp refuses these requests of clients before a server sees them.",
    entries: REQUEST_CODES_ENTRIES,
};

const REQUEST_CODES_ENTRIES: &[ErrorEntry] = &[
    entry(
        "ACCEPT",
        "The `Accept` header allows neither JSON nor events, or no events where the answer is a stream.",
        "Send `Accept: application/json, text/event-stream`.",
    ),
    entry(
        "BATCH_ANSWER_TOO_LARGE",
        "The answers of a batch are too large together.",
        "Send the request alone.",
    ),
    entry(
        "BATCH_INITIALIZE",
        "A batch contains `initialize`.",
        "Send `initialize` alone, before the others.",
    ),
    entry(
        "BATCH_SAME_ID",
        "Two requests of a batch have the same id.",
        "Give each request an id of its own.",
    ),
    entry("BATCH_TOO_LONG", "A batch has more than 128 messages.", "Send several batches."),
    entry(
        "BATCH_UNSUPPORTED",
        "The protocol version has no batches.",
        "Send one message per request.",
    ),
    entry(
        "BODY_INCOMPLETE",
        "The body ended early, or did not arrive in time.",
        "Send the whole body at once.",
    ),
    entry("BODY_TOO_LARGE", "The body is larger than 4 MiB.", "Send less data in one request."),
    entry(
        "CLIENT_TOO_SLOW",
        "The client does not read its answers.",
        "Read the stream while the request runs, and send fewer requests at a time.",
    ),
    entry(
        "CONTENT_TYPE",
        "The body is not declared as JSON.",
        "Send `Content-Type: application/json`.",
    ),
    entry(
        "HEADER_MISMATCH",
        "A header of 2026-07-28 is missing, or differs from the body.",
        "Send the same values in the headers and in the body.",
    ),
    entry(
        "HOST_AMBIGUOUS",
        "The request has several `Host` headers, or none that can be read.",
        "Send one `Host` header.",
    ),
    entry(
        "HOST_FORBIDDEN",
        "The name in the URL is not one of this service.",
        "Use `127.0.0.1`, or add the name to `listen.allowed_hosts`.",
    ),
    entry(
        "HTTP_METHOD",
        "The path does not accept this HTTP method.",
        "Send MCP messages with POST.",
    ),
    entry(
        "INVALID_FILTER",
        "The filter of `subscriptions/listen` is malformed.",
        "Set each kind of notification to `true` or `false`, and `resourceSubscriptions` to a list of URIs.",
    ),
    entry(
        "INVALID_META",
        "A request of 2026-07-28 lacks the version or the capabilities of the client.",
        "Send both in `params._meta`.",
    ),
    entry("INVALID_REQUEST", "The JSON is not a JSON-RPC message.", "Send JSON-RPC 2.0 messages."),
    entry(
        "LINE_TOO_LONG",
        "A message on a pipe or on the control socket is too long.",
        "Send less data in one message.",
    ),
    entry(
        "ORIGIN_FORBIDDEN",
        "A web page of another origin sent the request.",
        "If you trust the page, add its origin to `listen.allowed_origins`.",
    ),
    entry("PARSE_ERROR", "The text is not JSON.", "Send one JSON-RPC 2.0 message as UTF-8."),
    entry(
        "PATH_NOT_FOUND",
        "The path does not exist, or the configuration does not enable it.",
        "Use `/`, `/mcp`, `/direct`, `/meta` or `/servers/NAME`.",
    ),
    entry(
        "SERVICE_FULL",
        "All connections or streams of clients are in use.",
        "Try again after `Retry-After`.",
    ),
    entry(
        "SESSION_NOT_FOUND",
        "The session is unknown or has expired.",
        "Send `initialize` without a session id.",
    ),
    entry(
        "SESSION_REQUIRED",
        "The request needs a session, and has no session id.",
        "Send the `Mcp-Session-Id` of the answer to `initialize`; for a client that cannot, set another `sharing` for the server.",
    ),
    entry(
        "STREAM_NOT_FOUND",
        "The event stream for this message is not open.",
        "Open the stream again with GET, at a path that ends in `/sse`.",
    ),
    entry(
        "TOKENS_WRONG",
        "Too many wrong tokens came from this user or host.",
        "Ask the operator for the token; try again after `Retry-After`.",
    ),
    entry(
        "TOKEN_INVALID",
        "The bearer token is wrong; or a key for an endpoint has characters that a header cannot carry.",
        "Correct the token; remove line breaks from the key.",
    ),
    entry(
        "TOKEN_REQUIRED",
        "The service serves only clients with a token.",
        "Set the header `Authorization: Bearer TOKEN` in the client's configuration.",
    ),
    entry(
        "TOO_DEEP",
        "The JSON has more than 128 levels.",
        "Use fewer levels, or send the inner part as a string.",
    ),
    entry(
        "UNEXPECTED_RESPONSE",
        "A client of 2026-07-28 sent a response.",
        "Send the request again with the answers in `inputResponses`.",
    ),
    entry(
        "UNSUPPORTED_VERSION",
        "The protocol version is not served.",
        "Use a version of `data.supported`.",
    ),
];
