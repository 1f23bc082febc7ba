//! The reason why a command has no answer of the service, and its remedy.

use std::{fmt, io, path::PathBuf, time::Duration};

use super::ServiceError;
use crate::{config::defaults, systemd::own_unit::SystemdUnit};

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlClientError {
    /// No service listens at this socket.
    #[error("no service answers at `{}`", .0.display())]
    Unreachable(PathBuf, #[source] io::Error),
    /// The service at this socket accepted a connection, and sent nothing within this time.
    #[error(
        "the service at `{}`{} accepted the connection and did not answer within {} s: it hangs or is stopped",
        path.display(), Listener(*pid), timeout.as_secs()
    )]
    Silent {
        /// The path of the socket.
        path: PathBuf,
        /// The process that listens at the socket, if known.
        pid: Option<i32>,
        /// The time that it had.
        timeout: Duration,
    },
    /// The service at this socket is alive, and did not answer a request within this time.
    #[error("the service at `{}` did not answer this request within {} s", .0.display(), .1.as_secs())]
    Late(PathBuf, Duration),
    /// The service at this socket accepted a request, and did not answer a later ping.
    #[error("the service at `{}`{} no longer answers", path.display(), Listener(*pid))]
    Stalled {
        /// The path of the socket.
        path: PathBuf,
        /// The process that listens at the socket, if known.
        pid: Option<i32>,
    },
    /// The service at this socket disconnected after a request was sent.
    #[error("the service at `{}` disconnected before it answered", .0.display())]
    Lost(PathBuf, #[source] io::Error),
    /// The service refused.
    #[error("{}", _0.message)]
    Refused(Box<ServiceError>),
    /// The answer is invalid.
    #[error("the answer of the service is invalid")]
    Unreadable(#[source] serde_json::Error),
    /// The answer has this length in bytes, more than the maximum.
    #[error("the answer has {} bytes, more than {}", .0, defaults::CONTROL_ANSWER_BYTES_MAX)]
    Oversized(usize),
}

impl ControlClientError {
    /// Returns the remedy; `None` if the service names it, or there is none.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreachable(..) => Some(
                "Start it with `systemctl start metamcp` or `metamcp serve`, or name its socket with --socket.".to_owned(),
            ),
            Self::Silent { pid, .. } => Some(remedy(*pid)),
            Self::Stalled { pid, .. } => Some(format!("{MAY_HAVE_RUN} {}", remedy(*pid))),
            Self::Lost(..) => Some(format!(
                "{MAY_HAVE_RUN} Start the service with `systemctl start metamcp` or `metamcp serve`."
            )),
            Self::Late(..) => Some("It is busy: run `metamcp logs` to see why, or try again.".to_owned()),
            Self::Refused(_) | Self::Unreadable(_) | Self::Oversized(_) => None,
        }
    }
}

/// The warning about a request whose answer is missing.
const MAY_HAVE_RUN: &str = "The request may have been executed: check before you repeat it.";

/// The process that listens at a socket, in a message.
struct Listener(Option<i32>);

impl fmt::Display for Listener {
    fn fmt(&self, output: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |pid| write!(output, " (process {pid})"))
    }
}

/// Returns the remedy for the service whose socket this process listens at.
fn remedy(pid: Option<i32>) -> String {
    if let Some(pid) = pid.filter(|pid| is_stopped(*pid)) {
        return format!(
            "It is stopped, as by ctrl-z: run `kill -CONT {pid}`, or `fg` in its shell, to continue it."
        );
    }
    match (unit(pid), pid) {
        (Some(SystemdUnit { name, is_of_user }), _) => {
            let systemctl = if is_of_user { "systemctl --user" } else { "systemctl" };
            format!(
                "Run `{systemctl} status {name}` to see its state, and `{systemctl} restart {name}` to replace it."
            )
        }
        (None, Some(pid)) => format!(
            "Run `ps {pid}` to see its state. `kill -KILL {pid}` ends it; then start it again with `metamcp serve`."
        ),
        (None, None) => "End its process, and start it again with `metamcp serve`.".to_owned(),
    }
}

/// Returns whether a signal such as SIGSTOP stopped the process. Source: proc_pid_stat(5).
fn is_stopped(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in parentheses may have any character.
    stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('T'))
}

/// Returns whether the process is a service itself, and no manager that listens for it.
pub(super) fn is_own_program(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() != "systemd")
}

/// Returns the unit of the process that listens at a socket: systemd listens for the installed one.
fn unit(pid: Option<i32>) -> Option<SystemdUnit> {
    match pid {
        Some(1) => SystemdUnit::installed(),
        pid => SystemdUnit::of_process(pid?.try_into().ok()?),
    }
}
