//! `instructions`: the cost of a call, in instructions as callgrind counts them.
//!
//! A clock on a busy machine tells little: the same ratio was 0.65 and 1.49 in two runs. Instructions
//! repeat within about one in a hundred. A service is started twice under valgrind and serves a
//! different number of calls, one after the other: the difference of the two counts has nothing of the
//! start and the stop in it.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use crate::{
    client::Client,
    process::{self, Process},
    rig::{self, Contestant},
};

/// Count the instructions of a call under valgrind, which must be installed
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Another build of metamcp to compare with
    #[arg(long, value_name = "PROGRAM")]
    before: Option<PathBuf>,
    /// The number of calls that are counted
    #[arg(long, value_name = "N", default_value_t = 2000)]
    calls: u32,
    /// The length of the text that is returned, in bytes
    #[arg(long, default_value_t = 100)]
    bytes: usize,
}

/// The number of calls before those that are counted.
const WARM_UP: u32 = 200;

/// The servers that are called.
const MEASURED: [(&str, Contestant); 2] =
    [("HTTP upstream", Contestant::Gateway), ("child", Contestant::Child)];

pub(crate) async fn run(args: Args) {
    let mut report =
        String::from("| a call to | instructions | before | ratio |\n|---|--:|--:|--:|\n");
    let mut upstream = Process::ourselves("upstream", &["upstream"]);
    let address = upstream.address();
    for (name, contestant) in MEASURED {
        // The processes of a child are looked at by the clock, however many calls there are.
        let config = match contestant {
            Contestant::Child => rig::both(address),
            _ => rig::root(address),
        };
        let now = per_call(Path::new(process::PROGRAM), &config, contestant, &args).await;
        let (before, ratio) = match &args.before {
            Some(program) => {
                let before = per_call(program, &config, contestant, &args).await;
                (format!("{before:.0}"), format!("{:.3}×", now / before))
            }
            None => ("–".to_owned(), "–".to_owned()),
        };
        writeln!(report, "| {name} | {now:.0} | {before} | {ratio} |").expect("a string takes all");
    }
    process::print(&report);
}

/// Returns the instructions that one call takes.
async fn per_call(program: &Path, config: &str, contestant: Contestant, args: &Args) -> f64 {
    let least = counted(program, config, contestant, WARM_UP, args.bytes).await;
    let most = counted(program, config, contestant, WARM_UP + args.calls, args.bytes).await;
    (most - least) / f64::from(args.calls)
}

/// Returns the instructions of a whole service that serves so many calls.
async fn counted(
    program: &Path,
    config: &str,
    contestant: Contestant,
    n_calls: u32,
    bytes: usize,
) -> f64 {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let counts = directory.path().join("callgrind");
    let out = format!("--callgrind-out-file={}", counts.display());
    let words = ["valgrind", "--tool=callgrind", "-q", &out].map(OsStr::new);
    let words: Vec<&OsStr> = words.into_iter().chain([program.as_os_str()]).collect();
    let mut service = rig::service_by(&words, &directory, config);
    rig::wait_ready(&mut service).await;
    let target = contestant.target(service.address());
    let mut client = Client::open(&target, 1).await.expect("it shakes hands");
    for _ in 0..n_calls {
        client.echo(bytes).await.expect("it is answered");
    }
    drop(client);
    service.stop();
    let counts = std::fs::read_to_string(counts).expect("valgrind has written its counts");
    let sum = counts.lines().find_map(|line| line.strip_prefix("summary: "));
    sum.and_then(|sum| sum.trim().parse().ok()).expect("the sum of all instructions")
}
