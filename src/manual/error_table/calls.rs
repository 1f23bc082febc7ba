//! The codes of requests that a server could not serve.

use super::{ErrorEntry, ErrorGroup, entry};

/// Requests to servers.
pub(super) const CALL_CODES: ErrorGroup = ErrorGroup {
    key: "requests to servers",
    title: "Requests to servers",
    intro: "The request was understood, and the server could not serve it.",
    entries: CALL_CODES_ENTRIES,
};

const CALL_CODES_ENTRIES: &[ErrorEntry] = &[
    entry(
        "ANSWER_BROKEN_OFF",
        "The connection to the upstream broke during the answer.",
        "Check whether the call was executed before you repeat it.",
    ),
    entry(
        "ANSWER_TOO_DEEP",
        "The answer has more than 128 levels.",
        "Ask the tool for a part of it.",
    ),
    entry(
        "ANSWER_TOO_LARGE",
        "The answer is larger than metamcp passes on.",
        "Ask the tool for less at a time.",
    ),
    entry(
        "ERA_LOST",
        "The upstream no longer speaks the protocol version that it spoke before.",
        "Call again: metamcp connects in its present version.",
    ),
    entry(
        "HEADERS_TOO_LARGE",
        "The forwarded headers of the client are too large.",
        "Send shorter values in the headers that `forward_headers` names.",
    ),
    entry(
        "INTERNAL_ERROR",
        "A computation of metamcp failed.",
        "This is a bug: report it with the log.",
    ),
    entry(
        "INVALID_CURSOR",
        "The cursor of a list is not one of metamcp, or its list has changed.",
        "Request the list without a cursor.",
    ),
    entry(
        "INVALID_LEVEL",
        "The log level does not exist.",
        "Use one of the levels of the specification, such as `info`.",
    ),
    entry(
        "LIST_UNUSABLE",
        "The server answered a request for a list with something else.",
        "Request it again; if this persists, run `metamcp doctor --server NAME`.",
    ),
    entry(
        "MEMORY_EXHAUSTED",
        "The messages in flight use the whole memory budget.",
        "Try again later, ask for less, or raise `service.memory_max`.",
    ),
    entry(
        "METHOD_NOT_FOUND",
        "The method does not exist in this view or in this version.",
        "Use a method that the server declares.",
    ),
    entry(
        "MISSING_PARAMETER",
        "A required parameter is missing.",
        "Add the parameter that the message names.",
    ),
    entry(
        "NOT_LISTENING",
        "The server refused the subscription that its resources need.",
        "See the log of the server.",
    ),
    entry(
        "NOT_WATCHED",
        "The server does not report changes of this resource.",
        "Read the resource again when you need it.",
    ),
    entry(
        "OUTCOME_UNKNOWN",
        "The service or the server ended during the call.",
        "Check the effects of the call before you repeat it.",
    ),
    entry(
        "POOL_EXHAUSTED",
        "All connections of `pool.size` are in use; the error names the holders.",
        "Try again, or raise `pool.size`.",
    ),
    entry("RESOURCE_NOT_FOUND", "The server has no such resource.", "See `resources/list`."),
    entry(
        "SERVER_BUSY",
        "All connections of an `exclusive` server are in use.",
        "Call again later, or raise `max_connections` of the server.",
    ),
    entry(
        "SERVER_CLOSED",
        "metamcp closed the connection: the service stops, or a reload has removed the server.",
        "List the tools again, then repeat the call.",
    ),
    entry(
        "SERVER_DISABLED",
        "The server has `enabled = false`.",
        "Set `enabled = true` in its declaration, then run `metamcp reload`.",
    ),
    entry(
        "SERVER_EXITED",
        "The process of the server ended.",
        "Read its last lines in the error; run its command in a shell; see `metamcp logs --server NAME`.",
    ),
    entry("SERVER_GONE", "The server was gone before the request was sent.", "Call again."),
    entry(
        "SERVER_HUNG_UP",
        "The process of the server closed its pipes and still runs.",
        "Run its command in a shell: it must stay in the foreground.",
    ),
    entry(
        "SERVER_NOT_CONNECTED",
        "metamcp cannot connect the server; `context.reason` has the precise code.",
        "Run `metamcp doctor --server NAME`.",
    ),
    entry("SERVER_NOT_FOUND", "No server of this name is declared.", "See `metamcp servers`."),
    entry(
        "SERVER_REMOVED",
        "A reload removed the server while it asked a client.",
        "Declare the server again if it is needed.",
    ),
    entry(
        "SERVER_SATURATED",
        "Too many requests wait for the server; the client with the most loses its newest.",
        "Wait until running calls have finished.",
    ),
    entry(
        "SERVER_TRIPPED",
        "The server failed too often, so that its [breaker](concepts/failures.md#the-breaker) is open.",
        "Wait `retryAfterMs`; see its last error with `metamcp status`.",
    ),
    entry(
        "SERVER_UNREACHABLE",
        "No connection to the upstream is possible.",
        "Check `url`, and that the upstream runs.",
    ),
    entry(
        "SERVER_UNRESPONSIVE",
        "The server answers no pings.",
        "Call again: metamcp connects it anew.",
    ),
    entry("SERVICE_BUSY", "Too many computations wait.", "Try again when fewer requests run."),
    entry("SERVICE_STOPPING", "The service stops.", "Try again in a moment."),
    entry(
        "SERVICE_UNAVAILABLE",
        "`metamcp stdio` waits for the service, which does not answer.",
        "Start the service; see `systemctl status metamcp`.",
    ),
    entry(
        "SESSION_ENDED",
        "The session has ended, and with it its connection to the server.",
        "Open another session with `initialize`.",
    ),
    entry(
        "SESSION_LOST",
        "The upstream no longer knows the session of metamcp.",
        "Call again: metamcp opens a new session.",
    ),
    entry(
        "TIMEOUT",
        "No answer came in time.",
        "Check the effects of the call; raise `request_timeout`, or `start_timeout` for a server that starts slowly.",
    ),
    entry(
        "TOOL_NOT_FOUND",
        "The server has no such tool.",
        "Use a name of `tools/list`; the error names similar ones.",
    ),
    entry(
        "TOO_MANY_SUBSCRIPTIONS",
        "The client watches too many resources.",
        "Unsubscribe from one first.",
    ),
    entry(
        "UPSTREAM_BUSY",
        "The upstream asks for a wait (`Retry-After`) that does not fit into the time of the request.",
        "Try again after `retryAfterMs`, or raise `service.request_timeout`.",
    ),
    entry(
        "UPSTREAM_REDIRECT",
        "The upstream redirects to another address.",
        "Set `url` to that address if it is an MCP endpoint; a login page means that it wants other credentials.",
    ),
    entry(
        "UPSTREAM_STATUS",
        "The upstream answered with an unexpected HTTP status.",
        "Check `url`; for 401 and 403, check the credentials in `headers`.",
    ),
    entry(
        "UPSTREAM_WEB_PAGE",
        "A web page answers instead of an MCP endpoint.",
        "Check the path of `url`, and the credentials.",
    ),
];

/// Questions of servers.
pub(super) const QUESTION_CODES: ErrorGroup = ErrorGroup {
    key: "questions of servers",
    title: "Questions of servers",
    intro: "A server asked its client something in the middle of a call, or client and server are of different eras.",
    entries: QUESTION_CODES_ENTRIES,
};

const QUESTION_CODES_ENTRIES: &[ErrorEntry] = &[
    entry(
        "CAPABILITY_MISSING",
        "The server asked for something that the client has not declared.",
        "Declare the capability in the client.",
    ),
    entry(
        "CAPABILITY_REQUIRED",
        "The call needs a capability that the client lacks: elicitation, sampling, roots or tasks.",
        "Declare the capability, send the session id, and accept `text/event-stream`.",
    ),
    entry(
        "CLIENT_GONE",
        "The client left without an answer.",
        "Call again, and answer the question.",
    ),
    entry(
        "CLIENT_REFUSED",
        "The client answered the question with an error.",
        "Call again, and answer the question.",
    ),
    entry(
        "NOT_IN_SERVERS_VERSION",
        "The method has no counterpart in the version of the server.",
        "Use a server or a client of the other version.",
    ),
    entry(
        "QUESTION_OUT_OF_PLACE",
        "The server asked something that its version does not allow there.",
        "Report it to the authors of the server.",
    ),
    entry(
        "TOO_MANY_QUESTIONS",
        "The server keeps asking, or too many calls wait for answers.",
        "Call again when fewer calls wait.",
    ),
    entry(
        "UNKNOWN_STATE",
        "`requestState` is unknown or has expired, or belongs to another request.",
        "Send the request again without `requestState` and `inputResponses`.",
    ),
];
