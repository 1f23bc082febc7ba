//! `metamcp demo-server`: a small MCP server for trials.

use tokio::runtime::Builder;

use super::{FAILED, Failed, USAGE, runtime};
use crate::{demo::Demo, error_report::chain};

/// Run a demonstration MCP server on standard input and output
///
/// Servers: clock (reports the time and its process), scratch (a store with resources and prompts),
/// patience (counts slowly, reports progress, can be cancelled). `metamcp serve` without a
/// configuration runs all three.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// clock, scratch or patience
    name: String,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let demo: Demo = args.name.parse().map_err(|error| Failed::new(USAGE, chain(&error)))?;
    let runtime = runtime(Builder::new_current_thread())?;
    let served = runtime.block_on(demo.serve());
    // A reader that never reads would keep a blocking write, and so the runtime, waiting.
    runtime.shutdown_background();
    served.map_err(|error| Failed::new(FAILED, chain(&error)))
}
