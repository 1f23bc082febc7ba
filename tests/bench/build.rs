//! `build`: the duration of the README's first build, `cargo build --release` from an empty target.
//!
//! The times depend on the machine, so the shares of the crates come with them. `tests/build.rs`
//! holds the causes that a change can bring: the number of crates, and the settings of the profile.

use std::{fmt::Write as _, fs, path::Path};

use serde_json::Value;
use tokio::time::Instant;

use crate::process;

/// Build the program as the README does, and list the crates that take longest
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The profile to build with
    #[arg(long, value_name = "NAME", default_value = "release")]
    profile: String,
    /// The number of crates to list
    #[arg(long, value_name = "N", default_value_t = 10)]
    crates: usize,
}

/// The goal for the profile `release` on two idle cores, in seconds.
const GOAL_SECONDS: f64 = 180.0;

pub(crate) fn run(args: &Args) {
    let target = tempfile::tempdir().expect("a temporary directory");
    let began = (Instant::now(), children_seconds());
    process::run_cargo(&[
        "build",
        "--locked",
        "--timings",
        "--bin=metamcp",
        "--profile",
        &args.profile,
        "--target-dir",
        target.path().to_str().expect("a path in UTF-8"),
    ]);
    let wall = began.0.elapsed().as_secs_f64();
    let processor = children_seconds() - began.1;
    let mut crates = unit_seconds(&target.path().join("cargo-timings/cargo-timing.html"));
    crates.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut report = format!(
        "`{}` from an empty target: {wall:.0} s (goal for `release`: {GOAL_SECONDS:.0} s on two idle cores), {processor:.0} s of processor time, {} units.\n\n| unit | s |\n|---|--:|\n",
        args.profile,
        crates.len(),
    );
    for (name, seconds) in crates.iter().take(args.crates) {
        writeln!(report, "| {name} | {seconds:.1} |").expect("a string takes all");
    }
    process::print(&report);
}

/// Returns each compiled unit with its duration in seconds, as `cargo build --timings` reports them.
fn unit_seconds(report: &Path) -> Vec<(String, f64)> {
    let html = fs::read_to_string(report).expect("cargo has written its report");
    let data = html.split_once("UNIT_DATA = ").expect("the report has its data").1;
    let units = serde_json::Deserializer::from_str(data).into_iter::<Vec<Value>>().next();
    let units = units.expect("the data has a list").expect("the list is JSON");
    let name = |unit: &Value| {
        let [name, target] = ["name", "target"].map(|key| unit[key].as_str().unwrap_or_default());
        format!("{name}{target}")
    };
    units.iter().map(|unit| (name(unit), unit["duration"].as_f64().expect("a duration"))).collect()
}

/// Returns the processor time of the ended children of this process, in seconds.
/// Source: `proc_pid_stat(5)`, `cutime` and `cstime`.
fn children_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("this process runs");
    let fields = stat.rsplit_once(") ").expect("a name in parentheses").1.split(' ');
    let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    // The kernel reports 100 ticks a second on every architecture that this runs on.
    ticks as f64 / 100.0
}
