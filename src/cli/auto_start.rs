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

use super::{FAILED, Failed, check};
use crate::{
    config::{self, ConfigSources, defaults, environment},
    daemon::{
        control_socket::{self, default_socket},
        instance_lock::{InstanceLock, LockError},
    },
    error_report::chain,
    files,
    systemd::unit::SystemdUnit,
};

/// The number of log lines shown when the service did not start.
const LOG_LINES_SHOWN: usize = 10;

/// Returns the control socket of a service that answers, and starts one if needed. Returns `None`
/// if a unit is installed, or if there is no configuration to serve.
///
/// # Errors
///
/// [`Failed`] when the service cannot be started, or does not answer in time.
pub(super) async fn service() -> Result<Option<PathBuf>, Failed> {
    if SystemdUnit::installed().is_some() {
        return Ok(None);
    }
    let Some(file) = config::usual_file() else { return Ok(None) };
    let config = check::load(&sources(file.clone()))?.config;
    let group = config.listen.control_group.as_deref();
    let socket = config.listen.control.clone().unwrap_or_else(default_socket);
    if control_socket::answers(&socket).await {
        return Ok(Some(socket));
    }
    // Commands that run at the same time start one common service.
    let _turn = turn(&socket, group).await?;
    if control_socket::answers(&socket).await {
        return Ok(Some(socket));
    }
    let log = log_file();
    let mut child = start(&file, &log)?;
    let until = Instant::now() + defaults::LAUNCH_PATIENCE;
    while !control_socket::answers(&socket).await {
        let ended = child.try_wait().ok().flatten();
        if let Some(status) = ended {
            let text = format!("the service that was started has ended ({status}){}", tail(&log));
            return Err(Failed::new(FAILED, text).hint(see(&log)));
        }
        if Instant::now() >= until {
            let patience = defaults::LAUNCH_PATIENCE.as_secs();
            let text = format!("the service that was started does not answer within {patience} s");
            return Err(Failed::new(FAILED, text).hint(see(&log)));
        }
        time::sleep(defaults::LAUNCH_POLL).await;
    }
    Ok(Some(socket))
}

/// Returns the control socket of a service started on demand, running or not. Returns `None` if it
/// has the default socket, or none would be started.
pub(super) fn declared() -> Option<PathBuf> {
    if SystemdUnit::installed().is_some() {
        return None;
    }
    // An error in the file is reported by the commands that need the file.
    sources(config::usual_file()?).load().ok()?.config.listen.control
}

/// Returns the configuration sources of a service that is started without flags.
pub(super) fn sources(file: PathBuf) -> ConfigSources {
    let variables = environment::of_process();
    ConfigSources { file: Some(file), variables, ..ConfigSources::default() }
}

/// Returns the log of a service started on demand.
pub(super) fn log_file() -> PathBuf {
    let state = files::own_directory("XDG_STATE_HOME", ".local/state");
    state.unwrap_or_else(std::env::temp_dir).join("metamcp/metamcp.log")
}

/// Waits until no other command starts a service with this socket.
async fn turn(socket: &Path, group: Option<&str>) -> Result<InstanceLock, Failed> {
    control_socket::make_directory(socket, group)
        .map_err(|error| Failed::new(FAILED, chain(&error)).hint(error.hint()))?;
    let path = socket.with_extension("launch");
    let until = Instant::now() + 2 * defaults::LAUNCH_PATIENCE;
    loop {
        match InstanceLock::take(&path) {
            Ok(turn) => return Ok(turn),
            Err(LockError::By(_)) if Instant::now() < until => {
                time::sleep(defaults::LAUNCH_POLL).await;
            }
            Err(LockError::By(_)) => {
                let text = "another command starts the service, and does not come to an end";
                return Err(Failed::new(FAILED, text).hint("End that command, and try again."));
            }
            Err(LockError::Unusable(error)) => {
                return Err(Failed::new(FAILED, format!("lock `{}`: {error}", path.display())));
            }
        }
    }
}

/// Starts the service without a terminal, and with its own log.
fn start(file: &Path, log: &Path) -> Result<Child, Failed> {
    let failed = |what: &str, error: io::Error| Failed::new(FAILED, format!("{what}: {error}"));
    let program = std::env::current_exe().map_err(|error| failed("find this program", error))?;
    let opened = open_log(log);
    let opened = opened.map_err(|error| failed(&format!("open `{}`", log.display()), error))?;
    #[expect(clippy::disallowed_methods, reason = "a service is no child: it outlives its starter")]
    let mut command = Command::new(program);
    command
        .args(["serve", "--launched", "--config"])
        .arg(file)
        // Its servers start in the same directory, whichever command has started it.
        .current_dir(std::env::var_os("HOME").unwrap_or_else(|| "/".into()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(opened);
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

fn see(log: &Path) -> String {
    format!("See `{}`, or run `metamcp serve` in a shell.", log.display())
}

/// Reads the last part of the log, up to [`defaults::LOG_TAIL_BYTES`].
fn end(log: &Path) -> io::Result<Vec<u8>> {
    let (mut file, mut text) = (File::open(log)?, Vec::new());
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(defaults::LOG_TAIL_BYTES)))?;
    file.take(defaults::LOG_TAIL_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

/// Returns the last lines of the log, each after a line break.
fn tail(log: &Path) -> String {
    let text = end(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().rev().take(LOG_LINES_SHOWN).collect();
    lines.into_iter().rev().map(|line| format!("\n  {line}")).collect()
}
