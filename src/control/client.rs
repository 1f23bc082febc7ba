//! Asks a running service over its control socket.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    time,
};

use crate::{config::defaults, protocol::Message};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No service listens there.
    #[error("no service answers at `{}`", path.display())]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The service did not answer in time.
    #[error("the service at `{}` did not answer within {} s", path.display(), defaults::CONTROL_PATIENCE.as_secs())]
    Silent {
        /// The socket.
        path: PathBuf,
    },
    /// The service refused.
    #[error("the service refused: {message}")]
    Refused {
        /// Why.
        message: String,
        /// What can be done about it.
        suggestion: Option<String>,
    },
    /// What came back is not an answer.
    #[error("the answer cannot be read")]
    Unreadable(#[source] serde_json::Error),
}

/// Asks for `method` with `params`, JSON text, and returns the result.
///
/// # Errors
///
/// [`ClientError`] when nobody listens, answers in time, or agrees.
///
/// # Cancel safety
///
/// Safe: the question may have been asked or not.
pub async fn ask(path: &Path, method: &str, params: Option<&str>) -> Result<Value, ClientError> {
    let unreachable = |source| ClientError::Unreachable { path: path.to_owned(), source };
    let exchange = async {
        let mut stream = UnixStream::connect(path).await?;
        let line = [Message::request(method, params).bytes(), &b"\n"[..]].concat();
        stream.write_all(&line).await?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await?;
        if answer.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(answer) }
    };
    let answer = time::timeout(defaults::CONTROL_PATIENCE, exchange)
        .await
        .map_err(|_| ClientError::Silent { path: path.to_owned() })?
        .map_err(unreachable)?;
    let mut answer: Value = serde_json::from_str(&answer).map_err(ClientError::Unreadable)?;
    match answer.get("error") {
        Some(error) => Err(ClientError::Refused {
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            suggestion: error["data"]["suggestion"].as_str().map(str::to_owned),
        }),
        None => Ok(answer["result"].take()),
    }
}
