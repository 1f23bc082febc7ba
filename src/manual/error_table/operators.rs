//! The codes for operators and models, and mistakes in a configuration.

use super::{ErrorEntry, ErrorGroup, entry};

/// Control interface and commands.
pub(super) const CONTROL_CODES: ErrorGroup = ErrorGroup {
    key: "control interface",
    title: "Control interface and commands",
    intro: "Operators and their programs get these codes besides those above.",
    entries: CONTROL_CODES_ENTRIES,
};

const CONTROL_CODES_ENTRIES: &[ErrorEntry] = &[
    entry(
        "ATTACH_REFUSED",
        "`mcp/attach` came on a connection that was in use.",
        "Open a new connection, and send `mcp/attach` first.",
    ),
    entry(
        "CONFIG_INVALID",
        "The configuration has a mistake, or cannot be read. The old one stays in force.",
        "Run `metamcp check`.",
    ),
    entry(
        "CONFIG_UNTRUSTED",
        "Another user could have written the file of `configPath`.",
        "Give the file and its directories to root or to the user of the service.",
    ),
    entry(
        "EXECUTION_FAILED",
        "A meta-tool could not run what it was asked for.",
        "See the message and `context`.",
    ),
    entry(
        "EXECUTION_UNAVAILABLE",
        "Scripts are disabled, or this host cannot isolate them.",
        "Run `metamcp doctor`.",
    ),
    entry(
        "FORBIDDEN",
        "The user may not use the control interface, or a server of metamcp used a method of operators.",
        "Join the group of the socket, or run the command as root.",
    ),
    entry(
        "INVALID_ARGUMENTS",
        "The arguments do not fit the tool.",
        "See `context.validationErrors`; `metamcp info SERVER/TOOL` shows the arguments.",
    ),
    entry("INVALID_FORMAT", "The name of a tool has no server.", "Write `SERVER/TOOL`."),
    entry(
        "INVALID_PARAMS",
        "A parameter of the control interface is wrong or unknown.",
        "See [the control interface](reference/control.md).",
    ),
    entry(
        "INVALID_RESULT",
        "The server sent something that is not the result of a tool.",
        "Report it to the authors of the server.",
    ),
    entry(
        "LIMIT_EXCEEDED",
        "A script, or a call of it, reached a limit; `context.limit` names it.",
        "See [the limits of scripts](servers/code.md#limits).",
    ),
    entry(
        "NOT_RECORDED",
        "A script that goes on by itself could not be recorded.",
        "Make room in the state directory, or run it without `--async`.",
    ),
    entry(
        "NO_CONFIG_FILE",
        "The service has no configuration file to read again.",
        "Name one with `metamcp reload --config FILE`.",
    ),
    entry(
        "PATTERN_SYNTAX",
        "The pattern is not a regular expression.",
        "Correct the marked place.",
    ),
    entry(
        "PATTERN_TOO_LARGE",
        "The pattern would take too much memory.",
        "Use smaller repetition counts.",
    ),
    entry(
        "PATTERN_TOO_LONG",
        "The pattern is longer than 1,024 bytes.",
        "Search for a part of it.",
    ),
    entry("PROMPT_NOT_FOUND", "The server has no such prompt.", "See `metamcp prompts`."),
    entry(
        "REQUEST_TIMEOUT",
        "A call that goes on by itself reached its timeout.",
        "Call again with a larger `timeout`.",
    ),
    entry(
        "SAME_ID",
        "A request with this id still runs on the connection.",
        "Give each running request an id of its own.",
    ),
    entry(
        "SANDBOX_FAILED",
        "The process of a script did not start, or ended early.",
        "Run `metamcp doctor`; see the log of the service.",
    ),
    entry(
        "SCHEMA_PATH_NOT_FOUND",
        "The schema of the tool has nothing at this path.",
        "Leave `path` out to see all of it.",
    ),
    entry(
        "SCRIPT_DIVERGED",
        "A script that went on did something else than before.",
        "Run it again from its beginning.",
    ),
    entry(
        "SCRIPT_FAILED",
        "The code is no JavaScript, threw an exception, or waits for nothing.",
        "See `context.line` and `context.column`.",
    ),
    entry(
        "SERVER_ERROR",
        "The server answered with an error of its own.",
        "See its message; `metamcp logs --server NAME`.",
    ),
    entry(
        "SERVER_REFUSED",
        "The server rejects the arguments.",
        "Correct the arguments that the message names.",
    ),
    entry("TASK_CANCELLED", "The task was cancelled, and has no result.", "Start it again."),
    entry("TASK_ENDED", "The task has ended, and cannot be cancelled.", "Nothing is to be done."),
    entry(
        "TASK_FAILED",
        "The call or the script of a task failed; its error is in `context.data`.",
        "See that error.",
    ),
    entry(
        "TASK_NOT_CANCELLED",
        "The server did not cancel the task.",
        "Cancel it again when the server is connected.",
    ),
    entry(
        "TASK_NOT_FINISHED",
        "The task has no result yet.",
        "Wait for it: `metamcp task --wait ID`.",
    ),
    entry(
        "TASK_NOT_FOUND",
        "The task is unknown, or was removed after its end.",
        "See `metamcp tasks`.",
    ),
    entry(
        "TOO_MANY_CLIENTS",
        "Too many clients are attached to the control socket.",
        "Disconnect one, or connect over HTTP.",
    ),
    entry("TOO_MANY_CONNECTIONS", "All connections for operators are busy.", "Try again later."),
    entry(
        "TOO_MANY_TASKS",
        "64 calls and scripts go on by themselves, the maximum.",
        "Wait until one has ended, or cancel one.",
    ),
];

/// Meta-tools and scripts.
pub(super) const MODEL_CODES: ErrorGroup = ErrorGroup {
    key: "meta-tools",
    title: "Meta-tools and scripts",
    intro: "A meta-tool reports a failure as a result with `isError`, so that a model reads it. These are its `code`. Scripts get the same codes as exceptions. `details.cause` repeats the code of the sections above.",
    entries: MODEL_CODES_ENTRIES,
};

const MODEL_CODES_ENTRIES: &[ErrorEntry] = &[
    entry(
        "tool_not_found",
        "The server has no such tool.",
        "Search for the tool; `details.similarTools` names similar ones.",
    ),
    entry(
        "no_backends",
        "No server of this name is declared.",
        "Search for tools: each result names its server.",
    ),
    entry(
        "backend_override_invalid",
        "The call names another backend than the server of the tool.",
        "Leave `backend_override` out.",
    ),
    entry(
        "validation_input",
        "The arguments do not fit the tool.",
        "See `details.validationErrors`.",
    ),
    entry(
        "validation_output",
        "The answer of the server is not a result that metamcp can use.",
        "Ask for less, or report it to the authors of the server.",
    ),
    entry(
        "execution_failed",
        "The tool failed, or could not be called; `details.reason` says why.",
        "See the message; `retryable` says whether a repetition can help.",
    ),
    entry("stream_not_supported", "The call asks for a stream.", "Leave `stream` out."),
    entry(
        "chain_step_failed",
        "A step of a chain failed; `step_index` is its number.",
        "See `details.cause_code`.",
    ),
    entry(
        "script_failed",
        "The code cannot be read, threw an exception, or waits for nothing.",
        "See `details.line` and `details.column`.",
    ),
    entry(
        "limit_exceeded",
        "A limit was reached; `details.limit` and `details.value` name it.",
        "See [the limits of scripts](servers/code.md#limits).",
    ),
    entry("sandbox_failed", "The process of the script failed.", "Run `metamcp doctor`."),
    entry(
        "script_diverged",
        "A script that went on did something else than before.",
        "Run it again from its beginning.",
    ),
    entry(
        "outcome_unknown",
        "metamcp cannot know whether a call was executed.",
        "Check its effects before you repeat it.",
    ),
    entry(
        "timeout",
        "No answer came in time.",
        "Check the effects of the call; use a larger `timeout_ms`.",
    ),
    entry("internal", "metamcp itself failed.", "This is a bug: report it with the log."),
];

/// Kinds of failures.
pub(super) const FAULT_CLASSES: ErrorGroup = ErrorGroup {
    key: "kinds of failures",
    title: "Kinds of failures",
    intro: "`status`, `/status` and the log name the kind of a failure of a server. The breaker counts some of them.",
    entries: FAULT_CLASSES_ENTRIES,
};

const FAULT_CLASSES_ENTRIES: &[ErrorEntry] = &[
    entry(
        "auth",
        "The server requires other credentials. The breaker does not count it.",
        "Run `metamcp login NAME`, or correct the credential.",
    ),
    entry(
        "offline",
        "The server is unreachable, does not start or does not answer. The breaker counts it.",
        "Run `metamcp doctor --server NAME`.",
    ),
    entry(
        "http",
        "The server answered with an HTTP error status. The breaker counts it.",
        "Check `url`, and the log of the server.",
    ),
    entry(
        "throttled",
        "The server asks for a wait. The breaker does not count it.",
        "Wait, or send fewer requests.",
    ),
    entry(
        "stdio-exit",
        "The process of the server ended. The breaker counts it.",
        "See `metamcp logs --server NAME`.",
    ),
    entry("other", "Another failure. The breaker counts it.", "See the message."),
    entry(
        "protocol",
        "The server gave an invalid answer. The breaker does not count it.",
        "Report it to the authors of the server.",
    ),
    entry(
        "cancelled",
        "The caller or the service itself is the cause. The breaker does not count it.",
        "Nothing is to be done.",
    ),
];

/// Mistakes in a configuration.
pub(super) const CONFIGURATION_MISTAKES: ErrorGroup = ErrorGroup {
    key: "mistakes in a configuration",
    title: "Mistakes in a configuration",
    intro: "`metamcp check`, `serve` and `reload` show the place of a mistake and a remedy. The texts begin like this.",
    entries: CONFIGURATION_MISTAKES_ENTRIES,
};

const CONFIGURATION_MISTAKES_ENTRIES: &[ErrorEntry] = &[
    entry(
        "unknown field",
        "The section has no such key.",
        "Use the similar key that the help names; [configuration](reference/configuration.md) lists all keys.",
    ),
    entry(
        "unknown variable",
        "A variable `METAMCP_…` names no key.",
        "Correct its name, or remove it.",
    ),
    entry(
        "both",
        "Two keys exclude each other, such as `command` and `url`.",
        "Remove one of them.",
    ),
    entry(
        "a server without",
        "A server has none of `command`, `url` and `socket`.",
        "Add one of them.",
    ),
    entry("is empty", "A value that must not be empty is empty.", "Write a value."),
    entry("has no effect", "A key means nothing beside another one.", "Remove it."),
    entry("is declared twice", "A header or a name occurs twice.", "Remove one of them."),
    entry(
        "is never forwarded",
        "`forward_headers` names a header that metamcp keeps from servers.",
        "Remove it.",
    ),
    entry("is not an absolute path", "A path is relative.", "Write the path from `/`."),
    entry("is not UTF-8", "The file has another encoding.", "Save it as UTF-8."),
    entry(
        "is this service itself",
        "The `url` of a server leads to metamcp.",
        "Remove the server.",
    ),
    entry(
        "cannot read configuration",
        "The file does not exist, or the user may not read it.",
        "Check the path and the permissions.",
    ),
];
