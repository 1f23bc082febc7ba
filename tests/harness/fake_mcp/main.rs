//! A scriptable MCP server for tests: it does what a real one cannot be made to do at will.
//!
//! `fake_mcp stdio` speaks on standard input and output, `fake_mcp http` on a port of its own
//! and prints `{"listening":"http://127.0.0.1:PORT/mcp"}`. Its tools (see [`tools`]) hold,
//! reorder, repeat, garble and drop answers on command; its options spoil the start and the
//! end of the process.
//!
//! Deliberately independent of the library under test: own JSON-RPC, own SSE. Everything runs
//! on one thread, so that requests are started in the order in which they arrived and an exit
//! happens after the bytes before it were written. Nothing here sleeps to get an order right,
//! and a test need not either: `held`, `seen` and `/control/log` can wait for a count.

mod body;
mod control;
mod fake;
mod http;
mod message;
mod methods;
mod stdio;
mod tools;
mod wire;

use std::{io::Write as _, path::PathBuf};

use clap::{Args, Parser, Subcommand};
use tokio::{
    io::AsyncWriteExt,
    signal::unix::{SignalKind, signal},
};

use crate::fake::Fake;

/// A scriptable MCP server for tests.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    mode: Mode,
}

/// The transport.
#[derive(Debug, Subcommand)]
enum Mode {
    /// Serve standard input and output.
    Stdio {
        #[command(flatten)]
        options: Options,
    },
    /// Serve Streamable HTTP on 127.0.0.1.
    Http {
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        http: HttpOptions,
    },
}

/// What both transports understand.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Append one JSON line per event to FILE.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Ignore SIGTERM, SIGINT and SIGHUP (each is logged).
    #[arg(long)]
    ignore_term: bool,
    /// Stay when standard input ends.
    #[arg(long)]
    no_eof_exit: bool,
    /// Exit with CODE instead of serving.
    #[arg(long, value_name = "CODE")]
    exit_at_start: Option<i32>,
    /// Write that many bytes to standard error before serving.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    stderr_at_start: usize,
    /// Write that many lines that are no JSON to standard output before serving.
    #[arg(long, value_name = "LINES", default_value_t = 0)]
    noise_at_start: usize,
    /// Answer `initialize` only once FILE exists.
    #[arg(long, value_name = "FILE")]
    start_gate: Option<PathBuf>,
    /// List one more tool, without an input schema.
    #[arg(long)]
    bad_tool: bool,
    /// Answer `initialize` with this protocol version.
    #[arg(long, value_name = "VERSION", default_value = "2025-06-18")]
    protocol: String,
    /// Put at most N items on a page of any list.
    #[arg(long, value_name = "N")]
    page: Option<usize>,
    /// Silently drop a request whose id is in flight already, as Go servers do.
    #[arg(long)]
    drop_duplicate_ids: bool,
}

/// What only the HTTP transport understands.
#[derive(Clone, Debug, Args)]
pub(crate) struct HttpOptions {
    /// Listen on this port, for example to come back on it; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Answer with plain JSON instead of an event stream.
    #[arg(long)]
    json: bool,
    /// Refuse the GET stream with 405.
    #[arg(long)]
    no_get: bool,
    /// Refuse requests without this header with 401.
    #[arg(long, value_name = "NAME=VALUE")]
    require_header: Option<String>,
    /// End the answer stream of a cancelled request; the TypeScript SDK never does.
    #[arg(long)]
    end_cancelled: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let (options, http) = match Arguments::parse().mode {
        Mode::Stdio { options } => (options, None),
        Mode::Http { options, http } => (options, Some(http)),
    };
    let fake = Fake::new(options.clone(), http.as_ref().is_some_and(|http| !http.end_cancelled))?;
    fake.log("start", "");
    if options.ignore_term {
        ignore_signals(&fake)?;
    }
    spoil_start(&fake, &options).await?;
    match http {
        None => stdio::serve(fake).await,
        Some(http) => http::serve(fake, http).await,
    }
}

/// Leaves the process at once.
#[expect(clippy::disallowed_methods, reason = "a fake server has to die on command")]
pub(crate) fn exit(fake: &Fake, code: i32) -> ! {
    fake.log("exit", &format!(r#","code":{code}"#));
    std::process::exit(code)
}

/// Does what the options ask for before the first message is read.
async fn spoil_start(fake: &Fake, options: &Options) -> std::io::Result<()> {
    let mut stderr = tokio::io::stderr();
    let line = format!("{}\n", "e".repeat(79));
    let mut n_left = options.stderr_at_start;
    while n_left > 0 {
        let n_bytes = n_left.min(line.len());
        stderr.write_all(&line.as_bytes()[..n_bytes]).await?;
        n_left -= n_bytes;
    }
    stderr.flush().await?;
    let mut stdout = std::io::stdout();
    for number in 1..=options.noise_at_start {
        writeln!(stdout, "noise {number}: this is not JSON")?;
    }
    stdout.flush()?;
    match options.exit_at_start {
        Some(code) => exit(fake, code),
        None => Ok(()),
    }
}

/// Replaces the default disposition of the polite signals by a line in the log.
fn ignore_signals(fake: &std::sync::Arc<Fake>) -> std::io::Result<()> {
    for (kind, name) in [
        (SignalKind::terminate(), "sigterm"),
        (SignalKind::interrupt(), "sigint"),
        (SignalKind::hangup(), "sighup"),
    ] {
        let mut signals = signal(kind)?;
        let fake = fake.clone();
        fake.clone().tasks.spawn(async move {
            while signals.recv().await.is_some() {
                fake.log(name, "");
            }
        });
    }
    Ok(())
}
