//! The benchmark of metamcp: speed, and reliability under load.
//!
//! ```console
//! $ cargo bench --bench gateway                      # all measurements, about four minutes
//! $ cargo bench --bench gateway -- --quick           # fewer and shorter ones
//! $ cargo bench --bench gateway -- soak              # ten waves of calls, one on a cold start
//! $ cargo bench --bench gateway -- neighbours        # a healthy server next to unhealthy ones
//! $ cargo bench --bench gateway -- discovery         # searches after a restart, no server running
//! $ cargo bench --bench gateway -- commands          # the command line next to a running service
//! $ cargo bench --bench gateway -- instructions      # the cost of a call, counted by callgrind
//! $ cargo bench --bench gateway -- build             # the README's first build, crate by crate
//! $ cargo bench --bench gateway -- memory            # resident memory before and after loads
//! $ cargo bench --bench gateway -- remote            # an https upstream, next to nginx
//! $ cargo bench --bench gateway -- scripts           # scripts: their process, calls, repetition
//! $ cargo bench --bench gateway -- focus gateway     # load for a profiler
//! ```
//!
//! One program plays every part, each in a separate process: the upstream, the bare reverse proxy
//! for comparison, a child over stdio, and the clients. The service is the optimised build of
//! metamcp. Times depend on the machine, so ratios are reported, but not asserted. Answers are
//! asserted: each must carry the id and text of its own request.

use std::{ffi::OsString, process::ExitCode};

use clap::Parser as _;

mod answer;
mod build;
mod child;
mod client;
mod commands;
mod compare;
mod discovery;
mod focus;
mod generated;
mod instructions;
mod load;
mod memory;
mod neighbours;
mod nginx;
mod process;
mod proxy;
mod remote;
mod report;
mod rig;
mod scripts;
mod session;
mod soak;
mod upstream;
mod usage;
mod wire;

/// Compare metamcp with a bare reverse proxy
#[derive(Debug, clap::Parser)]
#[command(name = "gateway", args_conflicts_with_subcommands = true)]
struct Args {
    #[command(flatten)]
    compare: compare::Args,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Debug, clap::Subcommand)]
enum Part {
    Soak(soak::Args),
    Neighbours(neighbours::Args),
    Discovery(discovery::Args),
    Commands(commands::Args),
    Instructions(instructions::Args),
    Build(build::Args),
    Memory(memory::Args),
    Remote(remote::Args),
    Scripts(scripts::Args),
    Focus(focus::Args),
    Upstream(upstream::Args),
    Proxy(proxy::Args),
    Child(child::Args),
}

fn main() -> ExitCode {
    let is_bench = |argument: &OsString| argument == "--bench";
    // Cargo appends `--bench`.
    let (ours, others): (Vec<_>, Vec<_>) = std::env::args_os().partition(is_bench);
    if ours.is_empty() && others.len() == 1 {
        process::print(
            "Run by `cargo bench --bench gateway`: nothing is measured in a test run.\n",
        );
        return ExitCode::SUCCESS;
    }
    let args = Args::parse_from(others);
    let is_wide = matches!(&args.part, Some(Part::Proxy(proxy)) if !proxy.single_thread);
    let runtime = match is_wide {
        true => tokio::runtime::Builder::new_multi_thread().enable_all().build(),
        false => tokio::runtime::Builder::new_current_thread().enable_all().build(),
    }
    .expect("a runtime can be started");
    match args.part {
        None => runtime.block_on(compare::run(args.compare)),
        Some(Part::Soak(args)) => return runtime.block_on(soak::run(args)),
        Some(Part::Neighbours(args)) => runtime.block_on(neighbours::run(args)),
        Some(Part::Discovery(args)) => runtime.block_on(discovery::run(args)),
        Some(Part::Commands(args)) => runtime.block_on(commands::run(args)),
        Some(Part::Instructions(args)) => runtime.block_on(instructions::run(args)),
        Some(Part::Build(args)) => build::run(&args),
        Some(Part::Memory(args)) => runtime.block_on(memory::run(args)),
        Some(Part::Remote(args)) => runtime.block_on(remote::run(args)),
        Some(Part::Scripts(args)) => runtime.block_on(scripts::run(args)),
        Some(Part::Focus(args)) => runtime.block_on(focus::run(args)),
        Some(Part::Upstream(args)) => runtime.block_on(upstream::run(args)),
        Some(Part::Proxy(args)) => runtime.block_on(proxy::run(args)),
        Some(Part::Child(args)) => {
            child::run(&args).expect("the parent process reads and writes");
        }
    }
    // A read of standard input cannot be cancelled.
    runtime.shutdown_background();
    ExitCode::SUCCESS
}
