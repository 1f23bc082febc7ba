//! The commands of operators to the main loop, which executes them one after the other.

use std::path::PathBuf;

use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use crate::{
    bearer_token::TokenError,
    config::{ExposedListener, load::LoadError},
    error_report::chain,
    protocol::{RpcError, rpc_error::INVALID_PARAMS},
    reconfigure::ServerDiff,
    tls::TlsIdentityError,
};

/// A command to the main loop, with the channel for its outcome.
#[derive(Debug)]
pub enum ControlCommand {
    /// Read the configuration again.
    Reload {
        /// The file to read, now and later; the current one if `None`.
        from: Option<NamedFile>,
        /// Receives the changes, or the error.
        reply: oneshot::Sender<Result<ServerDiff, ReloadError>>,
    },
    /// Stop, as with SIGTERM.
    Stop(oneshot::Sender<()>),
}

/// A configuration file that an operator named, as it was read.
#[derive(Debug)]
pub struct NamedFile {
    /// The file.
    pub path: PathBuf,
    /// Its content, which only root and the service's own user can have written.
    pub bytes: Vec<u8>,
}

/// The reason why the configuration is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// There is no configuration file to read again.
    #[error("the service was started without a configuration file")]
    NoFile,
    /// The file cannot be read, or is invalid.
    #[error(transparent)]
    File(#[from] LoadError),
    /// The file asks for a certificate that cannot be used.
    #[error(transparent)]
    Identity(#[from] TlsIdentityError),
    /// The file asks for a token that cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// An address that the service listens on would be open to all clients.
    #[error(transparent)]
    Exposed(#[from] ExposedListener),
}

impl ReloadError {
    /// Returns the text for the status line, which everyone can read: the place, not the content.
    pub fn notice(&self) -> String {
        match self {
            Self::File(LoadError::Content(found)) => {
                format!("configuration refused, see {}", found.place())
            }
            Self::NoFile
            | Self::File(LoadError::Read { .. })
            | Self::Identity(_)
            | Self::Token(_)
            | Self::Exposed(_) => format!("configuration refused: {}", chain(self)),
        }
    }

    pub(super) fn to_rpc(&self) -> RpcError {
        let refused = |name, message: String| RpcError::new(INVALID_PARAMS, name, message);
        match self {
            Self::NoFile => refused("NO_CONFIG_FILE", self.to_string())
                .suggest("Name a file in `configPath`: it is read from now on."),
            // Without the text of the file, which may contain a secret.
            Self::File(LoadError::Content(found)) => {
                let file = found.source();
                refused("CONFIG_INVALID", format!("{}: {}", found.place(), found.message))
                    .suggest(match found.help.as_deref().map(capitalized) {
                        Some(help) => format!("{help}. The old configuration stays in force."),
                        None => "Fix it and reload. The old configuration stays in force.".into(),
                    })
                    .context(json!({ "file": file, "line": found.line, "column": found.column }))
            }
            Self::File(LoadError::Read { path, .. }) => refused("CONFIG_INVALID", chain(self))
                .suggest("Make the file readable. The old configuration stays in force.")
                .context(json!({ "file": path.display().to_string() })),
            Self::Identity(error) => refused("CONFIG_INVALID", chain(self)).suggest(error.hint()),
            Self::Token(error) => refused("CONFIG_INVALID", chain(self)).suggest(error.hint()),
            Self::Exposed(error) => refused("CONFIG_INVALID", chain(self)).suggest(error.hint()),
        }
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// Makes the main loop read the configuration again, and returns the changes.
///
/// # Errors
///
/// [`RpcError`] if the reload fails, or the service stops.
///
/// # Cancel safety
///
/// If dropped early, the reload may or may not happen.
pub(super) async fn reload(
    commands: &mpsc::Sender<ControlCommand>,
    from: Option<NamedFile>,
) -> Result<ServerDiff, Box<RpcError>> {
    let reloaded = send(commands, |reply| ControlCommand::Reload { from, reply }).await?;
    reloaded.map_err(|error| error.to_rpc().into())
}

/// Makes the main loop stop the service.
///
/// # Errors
///
/// [`RpcError`] if the service is already stopping.
///
/// # Cancel safety
///
/// As [`reload`].
pub(super) async fn stop(commands: &mpsc::Sender<ControlCommand>) -> Result<(), Box<RpcError>> {
    send(commands, ControlCommand::Stop).await
}

async fn send<T>(
    commands: &mpsc::Sender<ControlCommand>,
    command: impl FnOnce(oneshot::Sender<T>) -> ControlCommand,
) -> Result<T, Box<RpcError>> {
    let (reply, outcome) = oneshot::channel();
    commands.send(command(reply)).await.map_err(|_| RpcError::stopping(false))?;
    outcome.await.map_err(|_| RpcError::stopping(false).into())
}
