//! The running service, asked over its control socket.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{FAILED, Failed, UNAVAILABLE};
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
