//! What operators want the service as a whole to do. Its main loop does it, one order after the other.

use std::path::PathBuf;

use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use crate::{
    bearer_token::TokenError,
    config::{ExposedListener, diff::ServerDiff, load::LoadError},
    error_report::chain,
    protocol::{RpcError, rpc_error::INVALID_PARAMS},
    tls::TlsIdentityError,
};

/// What the main loop is to do, and whom it tells.
#[derive(Debug)]
pub enum ControlCommand {
    /// Read the configuration again.
    Reload {
        /// The file that it is read from, now and later; the one that it came from where there is none.
        from: Option<NamedFile>,
        /// Takes what has changed.
        told: oneshot::Sender<Result<ServerDiff, ReloadError>>,
    },
    /// Stop, as with SIGTERM.
    Stop {
        /// Takes the word that it will be done.
        told: oneshot::Sender<()>,
    },
}

/// A configuration file that an operator has named, as it was read.
#[derive(Debug)]
pub struct NamedFile {
    /// The file.
    pub path: PathBuf,
    /// What it held, of which no other user than root and ours can have written anything.
    pub bytes: Vec<u8>,
}

/// Why the configuration stays as it was.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// There is none to be read again.
    #[error("the service was started without a configuration file")]
    NoFile,
    /// The file cannot be read, or says something that is not meant.
    #[error(transparent)]
    File(#[from] LoadError),
    /// The file asks for a certificate that cannot be used.
    #[error(transparent)]
    Identity(#[from] TlsIdentityError),
    /// The file asks for a token that cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// An address that the service listens on would be open to everybody.
    #[error(transparent)]
    Exposed(#[from] ExposedListener),
}

impl ReloadError {
    /// Returns the words for the status line, which is for everybody: where, not what.
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
            // Without the text of the file, which may have a secret in it.
            Self::File(LoadError::Content(found)) => {
                let file = found.path.display().to_string();
                refused("CONFIG_INVALID", format!("{}: {}", found.place(), found.message))
                    .suggest(match &found.help {
                        Some(help) => {
                            format!("{}. The old configuration stays in force.", capital(help))
                        }
                        None => "Mend it, then reload again: the old configuration stays in force."
                            .to_owned(),
                    })
                    .context(json!({ "file": file, "line": found.line, "column": found.column }))
            }
            Self::File(LoadError::Read { path, .. }) => refused("CONFIG_INVALID", chain(self))
                .suggest(
                    "See that the service may read the file; the old configuration stays in force.",
                )
                .context(json!({ "file": path.display().to_string() })),
            Self::Identity(error) => refused("CONFIG_INVALID", chain(self)).suggest(error.hint()),
            Self::Token(error) => refused("CONFIG_INVALID", chain(self)).suggest(error.hint()),
            Self::Exposed(error) => refused("CONFIG_INVALID", chain(self)).suggest(error.hint()),
        }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// Has the main loop read the configuration again, and returns what has changed.
///
/// # Errors
///
/// [`RpcError`] where nothing has, or the service stops.
///
/// # Cancel safety
///
/// Dropped halfway, it is done all the same, or not.
pub(super) async fn reload(
    orders: &mpsc::Sender<ControlCommand>,
    from: Option<NamedFile>,
) -> Result<ServerDiff, Box<RpcError>> {
    let (told, outcome) = oneshot::channel();
    give(orders, ControlCommand::Reload { from, told }, outcome)
        .await?
        .map_err(|error| error.to_rpc().into())
}

/// Has the main loop stop the service.
///
/// # Errors
///
/// [`RpcError`] where it does so already.
///
/// # Cancel safety
///
/// As [`reload`].
pub(super) async fn stop(orders: &mpsc::Sender<ControlCommand>) -> Result<(), Box<RpcError>> {
    let (told, outcome) = oneshot::channel();
    give(orders, ControlCommand::Stop { told }, outcome).await
}

async fn give<T>(
    orders: &mpsc::Sender<ControlCommand>,
    order: ControlCommand,
    outcome: oneshot::Receiver<T>,
) -> Result<T, Box<RpcError>> {
    orders.send(order).await.map_err(|_| RpcError::stopping(false))?;
    outcome.await.map_err(|_| RpcError::stopping(false).into())
}
