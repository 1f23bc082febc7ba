//! The tests of escapes for a service that runs already, such as the one of a booted system.
//!
//! `confined_probe` and `fake_mcp` are next to this program.
//!
//! - `escapes configuration` prints the sections that the service needs,
//! - `escapes programs URL PID DIRECTORY` runs the programs of a directory in the service,
//! - `escapes calls` makes the system calls of `confined_probe` in processes of the own user.
//!
//! The last two print what went wrong and what they have checked. The exit code is 0 if nothing went
//! wrong.
#![expect(clippy::disallowed_methods, reason = "starts the program that tries system calls")]
#![expect(clippy::print_stdout, reason = "the report is for a pipe")]

#[expect(dead_code, reason = "this program needs a part of the client")]
#[path = "../client.rs"]
mod client;
#[expect(dead_code, reason = "this program needs a part of the processes")]
#[path = "../confined_process.rs"]
mod confined_process;
#[path = "../escape_program.rs"]
mod escape_program;
mod fake;

use std::{path::Path, process::ExitCode, time::Duration};

use self::{
    client::Client,
    confined_process::{ConfinedProbe, ProbeUser},
    escape_program::{ESCAPE_LIMITS, EscapeProgram, ServiceUnderTest},
};

/// The deadline for any expected event. Generous: it only ends failing tests.
const DEADLINE: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (report, failures) = match arguments[..] {
        ["configuration"] => (configuration(), Vec::new()),
        ["programs", url, pid, directory] => {
            let pid = pid.parse().expect("a process id");
            let service = ServiceUnderTest { client: Client::new(url.to_owned()), pid };
            service.run(&EscapeProgram::all(Path::new(directory))).await
        }
        ["calls"] => try_calls(),
        _ => return ExitCode::from(2),
    };
    for failure in &failures {
        println!("wrong: {failure}");
    }
    println!("{report}");
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn configuration() -> String {
    let fake = fake::program();
    let server = |name: &str| format!("[servers.{name}]\ncommand = {fake:?}\nargs = [\"stdio\"]\n");
    format!("[execute]\n{ESCAPE_LIMITS}\n{}{}", server("fake"), server("calm"))
}

fn try_calls() -> (String, Vec<String>) {
    let probe = ConfinedProbe::new(ProbeUser::Own);
    let mut failures = probe.wrong_outcomes_under_all_layers();
    failures.extend(probe.wrong_outcomes_without_filter());
    (format!("{} system calls, each with and without the filter", probe.attempts().len()), failures)
}
