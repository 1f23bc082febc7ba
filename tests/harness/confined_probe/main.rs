//! A process that confines itself as the process of a script, and then makes one system call.
//!
//! `confined_probe list` prints all attempts, one a line: the name, whether any process can make the
//! call, and the layer besides the filter that refuses it. All other commands talk over descriptor
//! 0, as a confined process does:
//!
//! - `free NAME DIRECTORY` makes a call without confinement,
//! - `confined NAME DIRECTORY` with it,
//! - `unfiltered NAME DIRECTORY` with all layers except for the filter, which allows that call,
//! - `serve` allocates memory until there is none, and returns its input,
//! - `parent` spawns `serve` and waits for it,
//! - `orphan` and `threads` are refused,
//! - `probe CALL` prints the support for isolation where a filter refuses that call,
//! - `time N` prints the time that confinement takes.
#![expect(unsafe_code, reason = "makes system calls that no crate wraps, as untrusted code would")]
#![expect(clippy::disallowed_methods, reason = "starts itself again, as the service would")]
#![expect(clippy::disallowed_types, reason = "measures real time")]

mod attempt;
mod file_attempts;
mod kernel_attempts;
mod process_attempts;

use std::{
    collections::BTreeMap,
    io,
    os::fd::AsFd as _,
    path::Path,
    process::{Command, ExitCode},
    thread,
    time::Instant,
};

use metamcp::{
    confine::{ConfineError, ConfinementReport, Restrictions, SystemCallRule, confine},
    error_report::chain,
};
use rustix::process::{Pid, getpid, getppid};
use seccompiler::{SeccompAction, SeccompFilter};

use crate::attempt::{Attempt, Refusal, Scenery};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["list"] => list(),
        ["free", name, directory] => say(&report(named(name), &Scenery::new(directory.as_ref()))),
        ["confined", name, directory] => try_confined(name, directory.as_ref(), script_policy()),
        ["unfiltered", name, directory] => {
            let mut restrictions = script_policy();
            restrictions.system_calls.push(SystemCallRule::any(named(name).number));
            try_confined(name, directory.as_ref(), restrictions);
        }
        ["serve"] => serve(),
        ["parent"] => {
            let program = std::env::current_exe().expect("a program knows its own path");
            let child = Command::new(program).arg("serve").spawn();
            child.and_then(|mut child| child.wait()).expect("the child is waited for");
        }
        ["orphan"] => say(&refusal(confine(&Restrictions::script_sandbox(getpid())))),
        ["threads"] => {
            thread::spawn(thread::park);
            say(&refusal(confine(&script_policy())));
        }
        ["probe", call] => probe(call),
        ["time", n_times] => time(n_times.parse().expect("a number")),
        ["nothing"] => {}
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

fn attempts() -> impl Iterator<Item = &'static Attempt> {
    [
        file_attempts::ATTEMPTS,
        file_attempts::LEGACY_ATTEMPTS,
        process_attempts::ATTEMPTS,
        kernel_attempts::ATTEMPTS,
    ]
    .into_iter()
    .flatten()
}

fn named(name: &str) -> &'static Attempt {
    attempts().find(|attempt| attempt.name == name).expect("an attempt that `list` prints")
}

#[expect(clippy::print_stdout, reason = "the list is for a pipe")]
fn list() {
    for Attempt { name, is_possible, refusal, .. } in attempts() {
        let possible = if *is_possible { "possible" } else { "privileged" };
        let layer = match refusal {
            Refusal::FilterOnly => "filter".to_owned(),
            Refusal::Always => "always".to_owned(),
            Refusal::Landlock(version) => format!("landlock-{version}"),
            Refusal::ExecutableMemory => "executable-memory".to_owned(),
        };
        println!("{name} {possible} {layer}");
    }
}

fn script_policy() -> Restrictions {
    Restrictions::script_sandbox(getppid().expect("a parent"))
}

/// Writes a line to descriptor 0.
fn say(line: &str) {
    let line = format!("{line}\n");
    let mut rest = line.as_bytes();
    while !rest.is_empty() {
        let n_bytes = rustix::io::write(io::stdin().as_fd(), rest).expect("the test reads");
        rest = &rest[n_bytes..];
    }
}

fn report(attempt: &Attempt, scenery: &Scenery) -> String {
    match attempt.make(scenery) {
        Ok(result) => format!("returned {result}"),
        Err(error) => format!("failed {}", error.raw_os_error().unwrap_or(0)),
    }
}

fn refusal(confined: Result<ConfinementReport, ConfineError>) -> String {
    confined.map_or_else(
        |error| format!("{:?}: {} {}", error.layer(), chain(&error), error.hint()),
        |report| format!("confined: {report}"),
    )
}

/// Confines this process, says so, and makes the call.
fn try_confined(name: &str, directory: &Path, restrictions: Restrictions) {
    let attempt = named(name);
    let scenery = Scenery::new(directory);
    enter(&restrictions);
    say(&report(attempt, &scenery));
}

/// Confines this process, and says so.
fn enter(restrictions: &Restrictions) {
    let report = confine(restrictions).expect("confined");
    let memory = u8::from(report.refuses_executable_memory);
    say(&format!("confined {} {memory}", report.landlock_version));
}

/// Does everything that a script's process needs: memory in all sizes until there is none, time,
/// randomness, and descriptor 0 until its end.
fn serve() {
    // glibc uses a second heap in a process that has ever had two threads.
    thread::spawn(|| {}).join().expect("it ends");
    while std::fs::read_dir("/proc/self/task").expect("readable").count() > 1 {
        thread::yield_now();
    }
    enter(&script_policy());
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).expect("random bytes");
    let now = Instant::now();
    // The second heap is used when the first one has no memory for a block.
    assert!(Vec::<u8>::new().try_reserve_exact(255 << 20).is_err(), "a limit on memory");
    for size in [100, 1 << 10, 100 << 10] {
        let blocks: Vec<Vec<u8>> = (0..(40 << 20) / size).map(|_| vec![seed[0]; size]).collect();
        drop(blocks);
    }
    for _ in 0..3 {
        exhaust_memory(seed[0]);
    }
    assert!(Instant::now() >= now, "the clock runs");
    say("allocated");
    let mut buffer = [0; 256];
    loop {
        let n_bytes = rustix::io::read(io::stdin().as_fd(), &mut buffer).expect("readable");
        if n_bytes == 0 {
            break;
        }
        say(&String::from_utf8_lossy(&buffer[..n_bytes]));
    }
}

/// Allocates small and large blocks until there is no memory, and frees them.
fn exhaust_memory(byte: u8) {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    let mut size = 1_usize << 10;
    // Small blocks come from the heap, and large ones are mapped.
    while size >= 1 << 10 {
        let mut block = Vec::new();
        if block.try_reserve_exact(size).is_ok() {
            block.resize(size / 2, byte);
            blocks.push(block);
            size = (size * 3 / 2).min(3 << 20);
        } else {
            size /= 2;
        }
    }
    for block in &mut blocks {
        block.shrink_to_fit();
    }
    assert!(blocks.len() > 20, "memory returns");
}

/// Prints the support for isolation of a process whose filter refuses one call.
fn probe(call: &str) {
    let refused = match call {
        "landlock_create_ruleset" => Some(libc::SYS_landlock_create_ruleset),
        "seccomp" => Some(libc::SYS_seccomp),
        _ => None,
    };
    if let Some(number) = refused {
        let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let architecture = std::env::consts::ARCH.try_into().expect("known");
        let rules = BTreeMap::from([(number, Vec::new())]);
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture);
        let program: seccompiler::BpfProgram =
            filter.and_then(TryInto::try_into).expect("a filter");
        seccompiler::apply_filter(&program).expect("installed");
    }
    match metamcp::confine::isolation_support() {
        Ok(support) => say(&format!("available {}", support.landlock_version)),
        Err(reason) => say(&reason.to_string()),
    }
}

/// Prints the time of `confine` in microseconds, from `n_times` children.
fn time(n_times: usize) {
    let parent: Pid = getppid().expect("a parent");
    if n_times == 0 {
        let restrictions = Restrictions::script_sandbox(parent);
        let start = Instant::now();
        confine(&restrictions).expect("confined");
        say(&start.elapsed().as_nanos().to_string());
        return;
    }
    let program = std::env::current_exe().expect("a program knows its own path");
    for mode in [&["nothing"][..], &["time", "0"]] {
        let start = Instant::now();
        for _ in 0..n_times {
            Command::new(&program).args(mode).status().expect("it runs");
        }
        say(&format!("{mode:?} {:?}", start.elapsed() / u32::try_from(n_times).expect("small")));
    }
}
