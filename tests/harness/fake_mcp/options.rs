//! The command-line options: how the fake starts, ends and misbehaves.

use std::path::PathBuf;

use clap::Args;

use crate::era::{Era, ProbeMode};

/// The options of all transports.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Speak the protocol of this era; HTTP+SSE is always legacy.
    #[arg(long, value_name = "ERA", default_value = "legacy")]
    pub(crate) era: Era,
    /// Never answer `server/discover` (`silent`), refuse it (`refuse=CODE`), also refuse all later
    /// messages on a pipe (`spoil`), or exit (`exit`).
    #[arg(long, value_name = "HOW")]
    pub(crate) probe: Option<ProbeMode>,
    /// Declare modern lists and reads as fresh for MS milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) ttl: u64,
    /// Append one JSON line per event to FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Ignore SIGTERM, SIGINT and SIGHUP (each is logged).
    #[arg(long)]
    pub(crate) ignore_term: bool,
    /// Continue after standard input ends.
    #[arg(long)]
    pub(crate) no_eof_exit: bool,
    /// Exit with CODE instead of serving.
    #[arg(long, value_name = "CODE")]
    pub(crate) exit_at_start: Option<i32>,
    /// Write BYTES bytes to standard error before serving.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) stderr_at_start: usize,
    /// Write LINES lines that are not JSON to standard output before serving.
    #[arg(long, value_name = "LINES", default_value_t = 0)]
    pub(crate) noise_at_start: usize,
    /// Answer `initialize` and `server/discover` only once FILE exists.
    #[arg(long, value_name = "FILE")]
    pub(crate) start_gate: Option<PathBuf>,
    /// List one more tool, without an input schema.
    #[arg(long)]
    pub(crate) bad_tool: bool,
    /// List one more tool, which requires an argument in an invalid header.
    #[arg(long)]
    pub(crate) bad_header: bool,
    /// List one more tool with all optional members: `rows`.
    #[arg(long)]
    pub(crate) rich: bool,
    /// List one more tool of this name, which answers with its name. May be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) named: Vec<String>,
    /// Give the tools of `--named` the input schema in FILE, with their name as its title.
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// Answer `initialize` with this protocol version.
    #[arg(long, value_name = "VERSION", default_value = "2025-06-18")]
    pub(crate) protocol: String,
    /// Put at most N items on a page of any list.
    #[arg(long, value_name = "N")]
    pub(crate) page: Option<usize>,
    /// Declare the capability `logging`.
    #[arg(long)]
    pub(crate) logging: bool,
    /// Declare resource subscriptions; a URI that starts with `refuse:` is refused.
    #[arg(long)]
    pub(crate) subscribe: bool,
    /// List two more tools that run as tasks.
    #[arg(long)]
    pub(crate) tasks: bool,
    /// Never answer `ping`, until `pings` or `/control/pings` changes that.
    #[arg(long)]
    pub(crate) silent_pings: bool,
    /// Append one JSON line per start and per execution of `count` to FILE, and resume its counts.
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// List one more tool at each start, counted in the file of `--state`.
    #[arg(long, requires = "state")]
    pub(crate) flip_at_start: bool,
    /// Exit instead of serving at the first N starts, counted in the file of `--state`.
    #[arg(long, value_name = "N", requires = "state", default_value_t = 0)]
    pub(crate) exit_first: usize,
    /// Exit at a line with more than LEVELS levels of nesting, as many parsers do.
    #[arg(long, value_name = "LEVELS", default_value_t = usize::MAX)]
    pub(crate) depth_max: usize,
    /// Silently drop a request with an id that is in flight already, as Go servers do.
    #[arg(long)]
    pub(crate) drop_duplicate_ids: bool,
}

/// The options of all network transports.
#[derive(Clone, Debug, Args)]
pub(crate) struct PortOptions {
    /// Listen on this port, for example to return to it; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Bind the port at once, but refuse connections until FILE exists.
    #[arg(long, value_name = "FILE")]
    pub(crate) listen_after: Option<PathBuf>,
    /// Refuse requests without this header with 401.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) require_header: Option<String>,
}

/// The options of Streamable HTTP.
#[derive(Clone, Debug, Args)]
pub(crate) struct HttpOptions {
    /// Answer with plain JSON instead of an event stream.
    #[arg(long)]
    pub(crate) json: bool,
    /// Refuse the GET stream with 405.
    #[arg(long)]
    pub(crate) no_get: bool,
    /// End the answer stream of a cancelled request; the TypeScript SDK never does.
    #[arg(long)]
    pub(crate) end_cancelled: bool,
    /// Number and store all events, so that a GET with `Last-Event-ID` resumes a stream.
    #[arg(long)]
    pub(crate) event_ids: bool,
    /// With event ids, tell clients to reconnect after MS milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 100)]
    pub(crate) retry: u64,
}

/// The options of HTTP+SSE.
#[derive(Clone, Debug, Args)]
pub(crate) struct SseOptions {
    /// Put this before the path of the endpoint, for example `http://127.0.0.1:1`.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) endpoint_origin: Option<String>,
}
