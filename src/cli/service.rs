//! The running service, asked over its control socket.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{FAILED, Failed, UNAVAILABLE, launch};
use crate::{
    control::client::{self, ClientError},
    daemon::listen::{SYSTEM_SOCKET, default_socket},
    report::chain,
};

/// Asks the service at `socket`, or else the nearest one, for `method` with `params`, JSON text.
///
/// # Errors
///
/// [`Failed`] when nothing can be asked at all.
pub(super) fn ask(
    socket: Option<&Path>,
    method: &str,
    params: Option<&str>,
) -> Result<Result<Value, ClientError>, Failed> {
    let socket = self::socket(socket);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed::new(FAILED, format!("start the runtime: {error}")))?;
    Ok(runtime.block_on(client::ask(&socket, method, params)))
}

/// Asks as [`ask`] does; where no service answers and no socket is named, one is started, if that is
/// ours to do.
///
/// # Errors
///
/// [`Failed`] when nothing can be asked at all.
pub(super) fn ask_or_launch(
    socket: Option<&Path>,
    method: &str,
    params: Option<&str>,
) -> Result<Result<Value, ClientError>, Failed> {
    let asked = ask(socket, method, params)?;
    let Err(ClientError::Unreachable { .. }) = asked else { return Ok(asked) };
    match launched(socket)? {
        Some(socket) => ask(Some(&socket), method, params),
        None => Ok(asked),
    }
}

/// Returns the socket of a service that was started, or was there for the configuration that one would
/// be started with; nothing where a socket was `asked` for, or nothing is to be started.
///
/// # Errors
///
/// [`Failed`] when it does not start.
pub(super) fn launched(asked: Option<&Path>) -> Result<Option<PathBuf>, Failed> {
    if asked.is_some() {
        return Ok(None);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed::new(FAILED, format!("start the runtime: {error}")))?;
    runtime.block_on(launch::service())
}

/// Returns the socket that is asked for, or else the nearest one.
pub(super) fn socket(asked: Option<&Path>) -> PathBuf {
    asked.map_or_else(nearest_socket, Path::to_owned)
}

fn nearest_socket() -> PathBuf {
    let system = Path::new(SYSTEM_SOCKET);
    if system.exists() { system.to_owned() } else { default_socket() }
}

/// Returns why a command failed that the service did not answer as it should.
pub(super) fn failed(error: ClientError) -> Failed {
    match error {
        ClientError::Unreachable { .. } | ClientError::Silent { .. } => {
            Failed::new(UNAVAILABLE, chain(&error))
                .hint("Start it with `systemctl start metamcp` or `metamcp serve`, or name its socket with --socket.")
        }
        ClientError::Refused { suggestion: Some(ref hint), .. } => {
            Failed::new(FAILED, chain(&error)).hint(hint.clone())
        }
        ClientError::Refused { .. } | ClientError::Unreadable(_) => {
            Failed::new(FAILED, chain(&error))
        }
    }
}
