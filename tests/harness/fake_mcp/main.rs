//! A scriptable MCP server for tests, with behaviour that a real one cannot produce on demand.
//!
//! `fake_mcp stdio` uses standard input and output; `fake_mcp http` and `fake_mcp sse` use a port
//! and print `{"listening":"http://127.0.0.1:PORT/mcp","control":"http://…"}`. Its tools (see
//! [`tools`]) hold, reorder, repeat, garble and drop answers. Its options disturb the start and the
//! end of the process; control routes (see [`control`]) disturb the network.
//!
//! It speaks the protocol with a handshake, or with `--era` that of 2026-07-28 or both: over HTTP
//! each POST names its era, and on a pipe the first message decides. The modern era has no
//! sessions: changed lists and resources are reported to `subscriptions/listen`, and a tool that
//! asks its client returns `input_required`. `closed` in `seen` and `/control/log` lists the
//! requests cancelled by a closed stream.
//!
//! It is independent of the library under test, with its own JSON-RPC and SSE. Everything runs on
//! one thread: requests start in the order of arrival, and an exit follows all earlier output.
//! Nothing here sleeps to enforce an order, and tests need not either: `held`, `seen` and
//! `/control/log` can wait for a count.

mod call;
mod control;
mod era;
mod executions;
mod fake;
mod http;
mod http_response;
mod listen_requests;
mod message;
mod methods;
mod mirrored_headers;
mod modern;
mod modern_client;
mod notice;
mod open_bodies;
mod options;
mod output;
mod response_body;
mod resumable_stream;
mod server;
mod session;
mod sse;
mod state;
mod stdio;
mod tasks;
mod tools;
mod waiting_calls;

use std::io::Write as _;

use clap::{Parser, Subcommand};
use tokio::{
    io::AsyncWriteExt,
    signal::unix::{SignalKind, signal},
};

use crate::{
    fake::Fake,
    options::{HttpOptions, Options, PortOptions, SseOptions},
    server::Transport,
};

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
        #[command(flatten)]
        port: PortOptions,
    },
    /// Serve HTTP+SSE of protocol 2024-11-05 on 127.0.0.1.
    Sse {
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        sse: SseOptions,
        #[command(flatten)]
        port: PortOptions,
    },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let (options, network) = match Arguments::parse().mode {
        Mode::Stdio { options } => (options, None),
        Mode::Http { options, http, port } => (options, Some((Transport::Http(http), port))),
        Mode::Sse { options, sse, port } => (options, Some((Transport::Sse(sse), port))),
    };
    let keeps_cancelled =
        matches!(&network, Some((Transport::Http(http), _)) if !http.end_cancelled);
    let fake = Fake::new(options.clone(), keeps_cancelled)?;
    fake.log("start", "");
    if options.ignore_term {
        ignore_signals(&fake)?;
    }
    disturb_start(&fake, &options).await?;
    match network {
        None => stdio::serve(fake).await,
        Some((transport, port)) => server::serve(fake, transport, port).await,
    }
}

/// Exits the process at once.
#[expect(clippy::disallowed_methods, reason = "a fake server has to die on command")]
pub(crate) fn exit(fake: &Fake, code: i32) -> ! {
    fake.log("exit", &format!(r#","code":{code}"#));
    std::process::exit(code)
}

/// Applies the options that disturb the start.
async fn disturb_start(fake: &Fake, options: &Options) -> std::io::Result<()> {
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
    if fake.state().executions.n_earlier_starts < options.exit_first {
        exit(fake, 1)
    }
    match options.exit_at_start {
        Some(code) => exit(fake, code),
        None => Ok(()),
    }
}

/// Replaces the default action of the termination signals by a line in the log.
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
