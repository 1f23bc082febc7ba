//! Establishes a connection: start or connect, then the handshake.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Announcement, Connection, Failure, Limits, Link, Party, http, stdio};
use crate::{
    child::{Program, SpawnError},
    config::{Secret, Server, Transport, defaults, secret::SecretError},
    name::ServerName,
    protocol::{
        Message,
        jsonrpc::Part,
        mcp::{self, Profile, ProfileError, method},
    },
    redact::Redactor,
};

/// What every dial needs.
#[derive(Clone, Debug)]
pub struct Dialer {
    credentials: Option<PathBuf>,
    tasks: TaskTracker,
    client: http::HttpClient,
    announcements: mpsc::Sender<Announcement>,
    n_connected: Arc<AtomicU64>,
}

/// Why a server could not be connected.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// A credential or variable that the server needs is not there.
    #[error("connect to server `{server}`: its `{key}` cannot be read")]
    Secret {
        /// The server.
        server: ServerName,
        /// The variable or header.
        key: String,
        /// What is not there.
        source: SecretError,
    },
    /// Its program did not start.
    #[error("connect to server `{server}`")]
    Spawn {
        /// The server.
        server: ServerName,
        /// Why.
        source: SpawnError,
    },
    /// A header's value has characters that HTTP forbids.
    #[error("connect to server `{server}`: the value of header `{header}` cannot be sent")]
    Header {
        /// The server.
        server: ServerName,
        /// The header.
        header: String,
    },
    /// It did not get through the handshake.
    #[error("connect to server `{server}`: it did not answer `initialize`")]
    Handshake {
        /// The server.
        server: ServerName,
        /// Why.
        source: Failure,
    },
    /// It refused the handshake.
    #[error("connect to server `{server}`: it refused `initialize`: {answer}")]
    Refused {
        /// The server.
        server: ServerName,
        /// Its error object.
        answer: String,
    },
    /// What it answered is of no use.
    #[error("connect to server `{server}`: its answer to `initialize` is of no use")]
    Profile {
        /// The server.
        server: ServerName,
        /// Why.
        source: ProfileError,
    },
}

impl DialError {
    /// Returns the stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Secret { .. } => "SECRET_MISSING",
            Self::Spawn { .. } => "SERVER_NOT_STARTED",
            Self::Header { .. } => "HEADER_INVALID",
            Self::Handshake { source, .. } => source.code(),
            Self::Refused { .. } => "HANDSHAKE_REFUSED",
            Self::Profile { .. } => "HANDSHAKE_UNUSABLE",
        }
    }

    /// Returns what the operator can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Secret { source, .. } => source.hint(),
            Self::Spawn { source, .. } => source.hint(),
            Self::Header { .. } => {
                "Remove line breaks and other control characters from the value."
            }
            Self::Handshake { source: Failure::Exited { .. }, .. } => {
                "Run its command in a shell: it ended before it answered. Its own log is in the journal under MCP_SERVER."
            }
            Self::Handshake { source: Failure::Timeout { .. }, .. } => {
                "Check that the command speaks MCP over standard input and output."
            }
            Self::Handshake { source, .. } => source.hint(),
            Self::Refused { .. } | Self::Profile { .. } => {
                "Check that the server supports protocol version 2024-11-05 or one of its successors up to 2025-11-25."
            }
        }
    }
}

impl Dialer {
    /// Returns a dialer that reads credentials from `credentials` and owns its tasks in `tasks`.
    /// What servers say to nobody in particular goes to `announcements`.
    pub fn new(
        credentials: Option<PathBuf>,
        tasks: TaskTracker,
        announcements: mpsc::Sender<Announcement>,
    ) -> Self {
        let (client, n_connected) = (http::client(), Arc::default());
        Self { credentials, tasks, client, announcements, n_connected }
    }

    /// Returns the tracker that owns the tasks of every connection.
    pub fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Connects to `server` for `party` and shakes hands. `closing` closes the connection, in the middle of the
    /// handshake too.
    ///
    /// # Errors
    ///
    /// [`DialError`] names the server and what stood in the way. Nothing is left behind then.
    ///
    /// # Cancel safety
    ///
    /// Not safe: a connection that is dropped halfway stays until `closing` is cancelled.
    pub async fn dial(
        &self,
        server: &ServerName,
        declared: &Server,
        generation: u64,
        party: Party,
        closing: CancellationToken,
    ) -> Result<Arc<Connection>, DialError> {
        let connection = self.open(server, declared, generation, party, closing.clone())?;
        let shaken = shake_hands(&connection, defaults::START_TIMEOUT).await;
        if let Err(error) = shaken {
            closing.cancel();
            // So that a server that fails again and again never has two processes.
            connection.down().await;
            return Err(error);
        }
        self.n_connected.fetch_add(1, Ordering::Relaxed);
        Ok(connection)
    }

    /// Returns how many connections were made so far, all servers together.
    pub fn n_connected(&self) -> u64 {
        self.n_connected.load(Ordering::Relaxed)
    }

    fn resolve(
        &self,
        server: &ServerName,
        values: &BTreeMap<String, Secret>,
    ) -> Result<BTreeMap<String, String>, DialError> {
        values
            .iter()
            .map(|(key, value)| {
                let resolved = value.resolve(self.credentials.as_deref());
                resolved.map(|text| (key.clone(), text)).map_err(|source| DialError::Secret {
                    server: server.clone(),
                    key: key.clone(),
                    source,
                })
            })
            .collect()
    }

    fn open(
        &self,
        server: &ServerName,
        declared: &Server,
        generation: u64,
        party: Party,
        closing: CancellationToken,
    ) -> Result<Arc<Connection>, DialError> {
        let connect = |link, secrets| {
            let (server, announcements) = (server.clone(), self.announcements.clone());
            let connection =
                Connection::new(server, generation, party, announcements, link, secrets, closing);
            Arc::new(connection)
        };
        match &declared.transport {
            Transport::Stdio { command, args, env, cwd } => {
                let program = Program {
                    command: command.clone(),
                    args: args.clone(),
                    env: self.resolve(server, env)?,
                    cwd: cwd.clone(),
                };
                let secrets = secrets(env, &program.env);
                let (link, started) = stdio::Link::start(&program)
                    .map_err(|source| DialError::Spawn { server: server.clone(), source })?;
                let connection = connect(Link::Stdio(link), secrets);
                started.run(&connection, &self.tasks);
                Ok(connection)
            }
            Transport::Http { url, headers } => {
                let values = self.resolve(server, headers)?;
                let (link, aside) =
                    http::Link::new(self.client.clone(), url.clone(), &values, self.tasks.clone())
                        .map_err(|header| DialError::Header { server: server.clone(), header })?;
                let connection = connect(Link::Http(Box::new(link)), secrets(headers, &values));
                self.tasks.spawn(http::run(Arc::clone(&connection), aside));
                Ok(connection)
            }
        }
    }
}

/// What came from a reference is a secret, wherever it turns up.
fn secrets(declared: &BTreeMap<String, Secret>, values: &BTreeMap<String, String>) -> Redactor {
    let references = declared.iter().filter(|(_, value)| value.is_reference());
    Redactor::new(references.filter_map(|(key, _)| values.get(key)))
}

async fn shake_hands(connection: &Arc<Connection>, patience: Duration) -> Result<(), DialError> {
    let server = connection.server();
    let failed = |source| DialError::Handshake { server: server.clone(), source };
    let request = Message::request(
        method::INITIALIZE,
        Some(&mcp::initialize_params(connection.party.capabilities())),
    );
    let limits = Limits { silence: patience, total: patience };
    let answered = match connection.call(&request, limits).await {
        Ok(call) => call.finish().await,
        Err(failure) => Err(failure),
    };
    let answer = match answered {
        Ok(answer) => answer,
        // A child that has ended before it was written to: how it ended is known a little later.
        Err(Failure::Gone) => {
            connection.down().await;
            return Err(failed(connection.reason().cloned().unwrap_or(Failure::Gone)));
        }
        Err(failure) => return Err(failed(failure)),
    };
    let Some(result) = answer.part(Part::Result) else {
        let answer = connection.quote(answer.part(Part::Error).unwrap_or_default());
        return Err(DialError::Refused { server: server.clone(), answer });
    };
    let profile = Profile::read(result)
        .map_err(|source| DialError::Profile { server: server.clone(), source })?;
    if let Link::Http(link) = &connection.link {
        link.settled(&profile);
    }
    let _set_before = connection.profile.set(profile);
    connection.notify(&Message::notification(method::INITIALIZED, None)).await;
    Ok(())
}
