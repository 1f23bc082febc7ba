//! Establishes a connection: start or connect, then the handshake.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    sync::mpsc,
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Announcement, Connection, Link, Party, health, http, stdio};
use crate::{
    backoff::Backoff,
    child::{Home, Host, Launcher, Program, Unit},
    config::{Lifecycle, Secret, Server, Transport, defaults},
    name::ServerName,
    redact::Redactor,
};

mod error;
mod handshake;

pub use error::DialError;

/// What every dial needs.
#[derive(Clone, Debug)]
pub struct Dialer {
    credentials: Option<PathBuf>,
    launcher: Arc<dyn Launcher>,
    tasks: TaskTracker,
    announcements: mpsc::Sender<Announcement>,
    n_connected: Arc<AtomicU64>,
}

impl Dialer {
    /// Returns a dialer that reads credentials from `credentials` and owns its tasks in `tasks`.
    /// What servers say to nobody in particular goes to `announcements`.
    pub fn new(
        credentials: Option<PathBuf>,
        tasks: TaskTracker,
        announcements: mpsc::Sender<Announcement>,
    ) -> Self {
        let (launcher, n_connected) = (Arc::new(Host), Arc::default());
        Self { credentials, launcher, tasks, announcements, n_connected }
    }

    /// Returns the dialer with stdio servers that `launcher` brings to life, and not this host.
    #[must_use]
    pub fn with_launcher(self, launcher: Arc<dyn Launcher>) -> Self {
        Self { launcher, ..self }
    }

    /// Returns the tracker that owns the tasks of every connection.
    pub fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Connects to `server` for `party` and shakes hands. `closing` closes the connection, in the middle of the
    /// handshake too. An upstream that is not there yet is tried again until `patience_ends`.
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
        patience_ends: Instant,
    ) -> Result<Arc<Connection>, DialError> {
        let place = Place { dialer: self, server, declared, generation, party, closing: &closing };
        let mut backoff = Backoff::new(defaults::CONNECT_PAUSE);
        loop {
            let error = match place.attempt().await {
                Ok(connection) => {
                    self.n_connected.fetch_add(1, Ordering::Relaxed);
                    let is_kept_alive = matches!(declared.lifecycle, Lifecycle::KeepAlive { .. });
                    let watched = Arc::clone(&connection);
                    self.tasks.spawn(health::watch(watched, declared.health, is_kept_alive));
                    return Ok(connection);
                }
                Err(error) => error,
            };
            let pause = backoff.pause(fastrand::f64());
            if !error.is_outage() || patience_ends < Instant::now() + pause {
                return Err(error);
            }
            tracing::debug!(mcp_server = %server, %error, "upstream is not there yet");
            tokio::select! {
                () = closing.cancelled() => return Err(error),
                () = time::sleep(pause) => {}
            }
        }
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
}

/// What is dialled, and for whom.
struct Place<'a> {
    dialer: &'a Dialer,
    server: &'a ServerName,
    declared: &'a Server,
    generation: u64,
    party: Party,
    closing: &'a CancellationToken,
}

impl Place<'_> {
    /// Dials once. What did not get through the handshake is closed and waited for.
    async fn attempt(&self) -> Result<Arc<Connection>, DialError> {
        match &self.declared.transport {
            Transport::Stdio { command, args, env, cwd } => {
                let program = Program {
                    command: command.clone(),
                    args: args.clone(),
                    env: self.dialer.resolve(self.server, env)?,
                    cwd: cwd.clone(),
                };
                let secrets = secrets(env, &program.env);
                self.launch(Home::Program(program), secrets).await
            }
            Transport::Unit { socket, unit } => {
                let unit = Unit { socket: socket.clone(), name: unit.as_str().into() };
                self.launch(Home::Unit(unit), Redactor::default()).await
            }
            Transport::Http { url, headers } => {
                let values = self.dialer.resolve(self.server, headers)?;
                let upstream = http::Upstream::new(url.clone(), &values)
                    .map_err(|header| DialError::Header { server: self.server.clone(), header })?;
                let tasks = &self.dialer.tasks;
                let over = |(link, ends): (http::Link, http::Ends)| {
                    let link = Link::Http(Box::new(link));
                    let connection = self.connection(link, secrets(headers, &values));
                    tasks.spawn(http::run(Arc::clone(&connection), ends));
                    self.establish(connection)
                };
                let error = match over(http::Link::new(upstream.clone(), tasks.clone())).await {
                    Err(error) if error.may_be_legacy() => error,
                    done => return done,
                };
                match self.open_legacy(&upstream).await? {
                    Some(opened) => over(http::Link::legacy(opened, tasks.clone())).await,
                    None => Err(error),
                }
            }
        }
    }

    /// Brings a stdio server to life and shakes hands.
    async fn launch(&self, home: Home, secrets: Redactor) -> Result<Arc<Connection>, DialError> {
        let launched = self
            .dialer
            .launcher
            .launch(&home)
            .await
            .map_err(|source| DialError::Launch { server: self.server.clone(), source })?;
        let (link, started) = stdio::Link::to(launched);
        let connection = self.connection(Link::Stdio(link), secrets);
        started.run(&connection, &self.dialer.tasks);
        self.establish(connection).await
    }

    /// Opens the stream of an upstream that refused to be posted to.
    async fn open_legacy(
        &self,
        upstream: &http::Upstream,
    ) -> Result<Option<http::Opened>, DialError> {
        let opened = tokio::select! {
            () = self.closing.cancelled() => return Ok(None),
            opened = http::open(upstream) => opened,
        };
        opened.map_err(|http::Foreign(endpoint)| DialError::Endpoint {
            server: self.server.clone(),
            endpoint: Redactor::default().quote(&endpoint),
        })
    }

    fn connection(&self, link: Link, secrets: Redactor) -> Arc<Connection> {
        // A token of its own: an attempt that failed must not take the next one along.
        let closing = self.closing.child_token();
        let (server, party) = (self.server.clone(), self.party.clone());
        let announcements = self.dialer.announcements.clone();
        let generation = self.generation;
        let connection =
            Connection::new(server, generation, party, announcements, link, secrets, closing);
        Arc::new(connection)
    }

    /// Shakes hands, and readies an upstream for those who wait.
    async fn establish(&self, connection: Arc<Connection>) -> Result<Arc<Connection>, DialError> {
        let patience = self.declared.start_timeout;
        if let Err(error) = handshake::shake_hands(&connection, patience).await {
            connection.closing.cancel();
            // So that a server that fails again and again never has two processes.
            connection.down().await;
            return Err(error);
        }
        if let Link::Http(_) = &connection.link {
            connection.warm_up().await;
        }
        Ok(connection)
    }
}

/// What came from a reference is a secret, wherever it turns up.
fn secrets(declared: &BTreeMap<String, Secret>, values: &BTreeMap<String, String>) -> Redactor {
    let references = declared.iter().filter(|(_, value)| value.is_reference());
    Redactor::new(references.filter_map(|(key, _)| values.get(key)))
}
