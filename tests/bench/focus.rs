//! `focus`: a load on one contestant for a while, for a profiler.

use std::time::Duration;

use crate::{
    load::Load,
    process,
    rig::{Contestant, Rig},
};

/// Load one contestant and print its process id, for a profiler
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The contestant to load
    #[arg(value_enum, default_value_t = Contestant::Gateway)]
    contestant: Contestant,
    /// The duration in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// The number of concurrent clients
    #[arg(long, default_value_t = 32)]
    clients: usize,
    /// The length of the returned text, in bytes
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
    let sample = load.run(&target, pid.as_slice()).await;
    process::print(&format!(
        "{:.0} calls/s, p50 {:.0} µs, p99 {:.0} µs, processor time per call {:.1} µs\n",
        sample.throughput(),
        sample.percentile_us(50),
        sample.percentile_us(99),
        sample.cpu_us().unwrap_or_default()
    ));
}
