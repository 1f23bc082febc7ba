//! A service that a command starts on demand, if no service manager controls it.
//!
//! It runs in its own session, logs to a file, and exits after a period without use.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tokio::time::{self, Instant};

use super::{FAILED, Failed, configuration};
use crate::{
    config::{self, defaults},
    daemon::{
        control_socket::{self, default_socket},
        instance_lock::{InstanceLock, LockError},
    },
    error_report::chain,
    files,
    systemd::own_unit::SystemdUnit,
};

/// The number of log lines shown when the service did not start.
const LOG_LINES_SHOWN: usize = 10;

/// Returns the control socket of a service that answers, and starts one if needed. Returns `None`
/// if a unit is installed, or if there is no configuration to serve.
///
/// # Errors
///
/// [`Failed`] when the service cannot be started, or does not answer in time.
pub(super) async fn find_or_start() -> Result<Option<PathBuf>, Failed> {
    if SystemdUnit::installed().is_some() {
        return Ok(None);
    }
    let Some(file) = config::usual_file() else { return Ok(None) };
    let config = configuration::load(&configuration::without_flags(file.clone()))?.config;
    let group = config.listen.control_group.as_deref();
    let socket = config.listen.control.clone().unwrap_or_else(default_socket);
    if control_socket::answers(&socket).await {
        return Ok(Some(socket));
    }
    // Commands that run at the same time start one common service.
    let _lock = lock(&socket, group).await?;
    if control_socket::answers(&socket).await {
        return Ok(Some(socket));
    }
    let log = log_file();
    let mut child = start(&file, &log)?;
    let until = Instant::now() + defaults::LAUNCH_TIMEOUT;
    while !control_socket::answers(&socket).await {
        let text = if let Ok(Some(status)) = child.try_wait() {
            format!("the service ended during its start ({status}){}", last_lines(&log))
        } else if Instant::now() >= until {
            let limit = defaults::LAUNCH_TIMEOUT.as_secs();
            format!("the service was started, but did not answer within {limit} s")
        } else {
            time::sleep(defaults::LAUNCH_POLL).await;
            continue;
        };
        let hint = format!("Read `{}`, or run `metamcp serve` in a shell.", log.display());
        return Err(Failed::new(FAILED, text).hint(hint));
    }
    Ok(Some(socket))
}

/// Returns the control socket of a service started on demand, running or not. Returns `None` if it
/// has the default socket, or none would be started.
pub(super) fn configured_socket() -> Option<PathBuf> {
    if SystemdUnit::installed().is_some() {
        return None;
    }
    // An error in the file is reported by the commands that need the file.
    configuration::without_flags(config::usual_file()?).load().ok()?.config.listen.control
}

/// Returns the log of a service started on demand.
pub(super) fn log_file() -> PathBuf {
    let state = files::own_directory("XDG_STATE_HOME", ".local/state");
    state.unwrap_or_else(std::env::temp_dir).join("metamcp/metamcp.log")
}

/// Waits until no other command starts a service with this socket.
async fn lock(socket: &Path, group: Option<&str>) -> Result<InstanceLock, Failed> {
    control_socket::make_directory(socket, group)
        .map_err(|error| Failed::new(FAILED, chain(&error)).hint(error.hint()))?;
    let path = socket.with_extension("launch");
    let until = Instant::now() + 2 * defaults::LAUNCH_TIMEOUT;
    loop {
        match InstanceLock::take(&path) {
            Ok(lock) => return Ok(lock),
            Err(LockError::Held(_)) if Instant::now() < until => {
                time::sleep(defaults::LAUNCH_POLL).await;
            }
            Err(LockError::Held(_)) => {
                let text = "another command is still starting the service";
                return Err(Failed::new(FAILED, text).hint("End that command, and try again."));
            }
            Err(LockError::Unusable(error)) => {
                let text = format!("cannot lock `{}`: {error}", path.display());
                return Err(Failed::new(FAILED, text));
            }
        }
    }
}

/// Starts the service without a terminal, and with its own log.
fn start(file: &Path, log: &Path) -> Result<Child, Failed> {
    let failed = |step: &str, error| Failed::new(FAILED, format!("cannot {step}: {error}"));
    let log_file = open_log(log)
        .map_err(|error| failed(&format!("open the log `{}`", log.display()), error))?;
    #[expect(clippy::disallowed_methods, reason = "a service is no child: it outlives its starter")]
    let mut command = Command::new(configuration::own_program()?);
    command
        .args(["serve", "--launched", "--config"])
        .arg(file)
        // Its servers start in the same directory, whatever the command's own directory is.
        .current_dir(std::env::var_os("HOME").unwrap_or_else(|| "/".into()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log_file);
    command.spawn().map_err(|error| failed("start the service", error))
}

/// Opens the log for appending. A log over the size limit is renamed first and replaces the
/// previous one.
fn open_log(log: &Path) -> io::Result<File> {
    if let Some(directory) = log.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    if fs::metadata(log).is_ok_and(|found| found.len() > defaults::LAUNCHED_LOG_BYTES_MAX) {
        fs::rename(log, log.with_extension("log.old"))?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(log)
}

/// Reads the last part of a log, up to [`defaults::LOG_TAIL_BYTES`].
pub(super) fn read_tail(log: &mut File) -> io::Result<String> {
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(defaults::LOG_TAIL_BYTES)))?;
    let mut text = Vec::new();
    log.take(defaults::LOG_TAIL_BYTES).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the last lines of the log, each after a line break.
fn last_lines(log: &Path) -> String {
    let text = File::open(log).and_then(|mut log| read_tail(&mut log)).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(LOG_LINES_SHOWN).collect();
    lines.into_iter().rev().map(|line| format!("\n  {line}")).collect()
}
