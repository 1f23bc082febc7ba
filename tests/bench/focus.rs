//! `focus`: one contestant under load for a while, so that a profiler can look at it.

use std::time::Duration;

use crate::{
    load::Load,
    process,
    rig::{Contestant, Rig},
};

/// Load one contestant and tell its process id, for a profiler
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Who is loaded
    #[arg(value_enum, default_value_t = Contestant::Gateway)]
    contestant: Contestant,
    /// How long
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// How many clients call at a time
    #[arg(long, default_value_t = 32)]
    clients: usize,
    /// The length of the text that is to be returned, in bytes
    #[arg(long, default_value_t = 100)]
    bytes: usize,
    /// Have the upstream answer with event streams instead of JSON
    #[arg(long)]
    events: bool,
    /// Run the bare proxy with one thread instead of as many as there are cores
    #[arg(long)]
    single_thread: bool,
}

pub(crate) async fn run(args: Args) {
    let mut rig = Rig::start(args.events, args.single_thread).await;
    let (target, pid) = (rig.target(args.contestant), rig.pid(args.contestant));
    process::print(&format!("process {}\n", pid.unwrap_or_default()));
    let load = Load {
        n_clients: args.clients,
        bytes: args.bytes,
        warm_up: Duration::from_secs(1),
        measured: Duration::from_secs(args.seconds),
    };
    let sample = load.run(&target, pid).await;
    process::print(&format!(
        "{:.0} calls/s, p50 {:.0} µs, p99 {:.0} µs, processor time per call {:.1} µs\n",
        sample.throughput(),
        sample.percentile_us(50),
        sample.percentile_us(99),
        sample.cpu_us().unwrap_or_default()
    ));
}
