//! The process of a sandbox: it gives up its rights, and then reads its script.

use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

use rustix::{
    process::{Pid, getppid},
    stdio::stdin,
};

use super::engine::run_script;
use crate::{
    confine::{Restrictions, confine, tie_to_parent},
    error_report::chain,
};

/// The exit code of a process that has failed, without a failure of its script.
const FAILED: u8 = 1;

/// The exit code of a process that cannot confine itself, and runs nothing.
const UNCONFINED: u8 = 2;

/// The exit code of a process whose own code has failed: a bug.
const PANICKED: i32 = 3;

/// Runs the script that the service sends over descriptor 0. With the profile `dev`, the process
/// keeps its rights, but ends with the service. `parent` is the process id of the service; without it, the process that has
/// started this one.
#[expect(clippy::disallowed_methods, reason = "the process has no child, and nothing to clean up")]
pub fn main(profile: Option<&str>, parent: Option<&str>) -> ExitCode {
    // The usual end of a panic makes system calls that are forbidden.
    std::panic::set_hook(Box::new(|_| std::process::exit(PANICKED)));
    let parent = parent.and_then(|pid| Pid::from_raw(pid.parse().ok()?)).or_else(getppid);
    let confined = match (profile, parent) {
        (Some("dev"), Some(parent)) => tie_to_parent(parent).map_err(|error| chain(&error)),
        (_, Some(parent)) => {
            let confined = confine(&Restrictions::script_sandbox(parent));
            confined.map(drop).map_err(|error| chain(&error))
        }
        (_, None) => Err("the service has ended".to_owned()),
    };
    if let Err(reason) = confined {
        // Descriptor 2 is nowhere, unless a person has run this.
        let text = format!("error: the sandbox cannot be confined: {reason}\n");
        let _unread = io::stderr().write_all(text.as_bytes());
        return ExitCode::from(UNCONFINED);
    }
    match run_script(ServicePipe, || std::process::exit(0)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(FAILED),
    }
}

/// The pipe to the service: descriptor 0, in both directions. Only `read` and `write` are allowed.
struct ServicePipe;

impl Read for ServicePipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(stdin(), buffer)?)
    }
}

impl Write for ServicePipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(stdin(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
