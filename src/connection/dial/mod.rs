//! The steps that make a connection: start or connect, then the handshake.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    sync::mpsc,
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Announcement, Connection, ConnectionOwner, Link, http, keepalive_driver, stdio, subscription,
};
use crate::{
    backoff::Backoff,
    child::{ChildProgram, HostLauncher, LaunchSite, Launcher, UnitServer},
    config::{EraChoice, LifecycleConfig, SecretValue, ServerConfig, TransportConfig, defaults},
    error_report::chain,
    redact::Redactor,
    server_name::ServerName,
};

mod era_cache;
mod error;
mod handshake;
mod reconnect_window;
mod server_version;
#[cfg(test)]
mod tests;

use era_cache::{EraCache, EraFinding, LegacyEvidence, OpeningOrder};
pub use error::ConnectError;
use handshake::HandshakeFailure;
pub(super) use handshake::discovery;
pub use reconnect_window::ReconnectWindow;
use server_version::ServerVersion;

/// The parts that every attempt to connect needs.
#[derive(Clone, Debug)]
pub struct Dialer {
    credentials: Option<PathBuf>,
    launcher: Arc<dyn Launcher>,
    tasks: TaskTracker,
    announcements: mpsc::Sender<Announcement>,
    n_connected: Arc<AtomicU64>,
    /// The era of each server, if it is known.
    verdicts: Arc<Mutex<EraCache>>,
}

impl Dialer {
    /// Returns a dialer that reads credentials from `credentials` and runs its tasks in `tasks`.
    /// Messages of servers that belong to no request go to `announcements`.
    pub fn new(
        credentials: Option<PathBuf>,
        tasks: TaskTracker,
        announcements: mpsc::Sender<Announcement>,
    ) -> Self {
        let (launcher, n_connected, verdicts) =
            (Arc::new(HostLauncher), Arc::default(), Arc::default());
        Self { credentials, launcher, tasks, announcements, n_connected, verdicts }
    }

    /// Returns the dialer with `launcher` for stdio servers, instead of this host.
    #[must_use]
    pub fn with_launcher(self, launcher: Arc<dyn Launcher>) -> Self {
        Self { launcher, ..self }
    }

    /// Returns the tracker that owns the tasks of every connection.
    pub fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Connects to `server` for `party`. Cancelling `closing` closes the connection, even during
    /// the handshake. An absent server is tried again until the window `patience` ends. Not cancel
    /// safe: a connection that is dropped halfway stays until `closing` is cancelled.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] names the server and the obstacle. No connection remains then.
    pub async fn dial(
        &self,
        server: &ServerName,
        declared: &ServerConfig,
        generation: u64,
        party: ConnectionOwner,
        closing: CancellationToken,
        patience: ReconnectWindow<'_>,
    ) -> Result<Arc<Connection>, ConnectError> {
        let (closing, absent) = (&closing, patience.absent);
        let place = Place { dialer: self, server, declared, generation, party, closing, absent };
        let mut backoff = Backoff::new(defaults::CONNECT_PAUSE);
        loop {
            let error = match place.attempt().await {
                Ok(connection) => {
                    self.n_connected.fetch_add(1, Ordering::Relaxed);
                    let is_kept_alive =
                        matches!(declared.lifecycle, LifecycleConfig::KeepAlive { .. });
                    let watched = Arc::clone(&connection);
                    self.tasks.spawn(keepalive_driver::watch(
                        watched,
                        declared.health,
                        is_kept_alive,
                    ));
                    // A connection for a single answer has no clients to notify of lists.
                    let tells_lists = declared.lifecycle != LifecycleConfig::Ephemeral;
                    self.tasks.spawn(subscription::run(Arc::clone(&connection), tells_lists));
                    return Ok(connection);
                }
                Err(error) => error,
            };
            let pause = backoff.pause(fastrand::f64());
            let may_return =
                error.is_outage() || patience.is_for_return && error.is_socket_unit_down();
            if !may_return || patience.ends < Instant::now() + pause {
                return Err(error);
            }
            tracing::debug!(mcp_server = %server, error = chain(&error), "upstream is not there yet");
            (patience.absent)(&error);
            tokio::select! {
                () = closing.cancelled() => return Err(error),
                () = time::sleep(pause) => {}
            }
        }
    }

    /// Returns the number of connections made so far, to all servers.
    pub fn n_connected(&self) -> u64 {
        self.n_connected.load(Ordering::Relaxed)
    }

    /// Records that `server` was of the legacy era in an earlier run of metamcp. This is used only
    /// for an upstream over HTTP: a program may have been replaced meanwhile, and is probed.
    pub fn remember_legacy(&self, server: &ServerName, declared: &ServerConfig) {
        if matches!(declared.transport, TransportConfig::Http { .. }) {
            let (version, finding) =
                (ServerVersion::of(&declared.transport), EraFinding::Legacy(LegacyEvidence::Harm));
            self.verdicts().connected(server, version, finding, Instant::now());
        }
    }

    fn verdicts(&self) -> MutexGuard<'_, EraCache> {
        // Held for single statements on plain data.
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resolve(
        &self,
        server: &ServerName,
        values: &BTreeMap<String, SecretValue>,
    ) -> Result<BTreeMap<String, String>, ConnectError> {
        values
            .iter()
            .map(|(key, value)| {
                let resolved = value.resolve(self.credentials.as_deref());
                resolved.map(|text| (key.clone(), text)).map_err(|source| ConnectError::Secret {
                    server: server.clone(),
                    key: key.clone(),
                    source,
                })
            })
            .collect()
    }
}

/// The server of an attempt, and the owner of the connection.
struct Place<'a> {
    dialer: &'a Dialer,
    server: &'a ServerName,
    declared: &'a ServerConfig,
    generation: u64,
    party: ConnectionOwner,
    closing: &'a CancellationToken,
    /// Called for an upstream that accepts no connections, while it is still tried.
    absent: &'a (dyn Fn(&ConnectError) + Send + Sync),
}

impl Place<'_> {
    /// Connects once, in the known or assumed era of the server, and a second time if the era turns
    /// out to be the other one. A connection that fails in the handshake is closed, and its end is
    /// waited for.
    async fn attempt(&self) -> Result<Arc<Connection>, ConnectError> {
        let version = ServerVersion::of(&self.declared.transport);
        let (server, choice) = (self.server, self.declared.era);
        let opening = self.dialer.verdicts().opening(server, &version, choice, Instant::now());
        let opened = match self.open(opening).await {
            Err(HandshakeFailure::Reopen(other, error)) if choice == EraChoice::Auto => {
                tracing::debug!(mcp_server = %server, %error, "server is asked in the other era");
                // The server works without the probe, so the probe did harm.
                let spoilt = |(connection, finding): (Arc<Connection>, EraFinding)| {
                    connection.counters.is_second.store(true, Ordering::Relaxed);
                    match finding {
                        EraFinding::Nothing => {
                            (connection, EraFinding::Legacy(LegacyEvidence::Harm))
                        }
                        EraFinding::Modern | EraFinding::Legacy(_) => (connection, finding),
                    }
                };
                self.open(other).await.map(spoilt)
            }
            opened => opened,
        };
        let mut verdicts = self.dialer.verdicts();
        match opened {
            Ok((connection, finding)) => {
                let finding = match finding {
                    EraFinding::Legacy(_) if !connection.is_child() => {
                        EraFinding::Legacy(LegacyEvidence::Harm)
                    }
                    finding => finding,
                };
                if choice == EraChoice::Auto {
                    verdicts.connected(server, version, finding, Instant::now());
                }
                Ok(connection)
            }
            Err(HandshakeFailure::EndedAtProbe(error)) => {
                verdicts.ended(server, version, Instant::now());
                Err(error)
            }
            Err(HandshakeFailure::Failed(error) | HandshakeFailure::Reopen(_, error)) => {
                verdicts.failed(server, &version, error.may_be_era_mismatch());
                Err(error)
            }
        }
    }

    /// Opens one connection.
    async fn open(
        &self,
        opening: OpeningOrder,
    ) -> Result<(Arc<Connection>, EraFinding), HandshakeFailure> {
        match &self.declared.transport {
            TransportConfig::Stdio { command, args, env, cwd } => {
                let program = ChildProgram {
                    command: command.clone(),
                    args: args.clone(),
                    env: self.dialer.resolve(self.server, env)?,
                    cwd: cwd.clone(),
                };
                let secrets = Redactor::of(env, &program.env);
                self.launch(LaunchSite::Program(program), secrets, opening).await
            }
            TransportConfig::Unit { socket, unit } => {
                let unit = UnitServer { socket: socket.clone(), name: unit.as_str().into() };
                self.launch(LaunchSite::Unit(unit), Redactor::default(), opening).await
            }
            TransportConfig::Http { url, headers } => {
                let values = self.dialer.resolve(self.server, headers)?;
                let upstream = http::HttpUpstream::new(url.clone(), &values).map_err(|header| {
                    ConnectError::Header { server: self.server.clone(), header }
                })?;
                let tasks = &self.dialer.tasks;
                let over = |(link, ends): (http::HttpLink, http::HttpReceivers), opening| {
                    let link = Link::Http(Box::new(link));
                    let connection = self.connection(link, Redactor::of(headers, &values));
                    tasks.spawn(http::run(Arc::clone(&connection), ends));
                    self.establish(connection, opening)
                };
                let link = http::HttpLink::new(upstream.clone(), tasks.clone());
                let is_believed =
                    opening == OpeningOrder::Initialize && self.declared.era == EraChoice::Auto;
                let error = match over(link, opening).await {
                    // The upstream may be modern by now, or always was: the probe shows it. An
                    // upstream that refuses the probe too gets here once more.
                    Err(HandshakeFailure::Failed(error))
                        if is_believed && error.may_be_legacy() =>
                    {
                        return Err(HandshakeFailure::Reopen(OpeningOrder::Probe, error));
                    }
                    Err(HandshakeFailure::Failed(error))
                        if error.may_be_legacy() && opening != OpeningOrder::DiscoverOnly =>
                    {
                        error
                    }
                    done => return done,
                };
                match self.open_legacy(&upstream).await? {
                    Some(opened) => {
                        let link = http::HttpLink::legacy(opened, tasks.clone());
                        let (connection, _) = over(link, OpeningOrder::Initialize).await?;
                        // It is certainly not modern, even without a probe.
                        Ok((connection, EraFinding::Legacy(LegacyEvidence::Refusal)))
                    }
                    None => Err(error.into()),
                }
            }
        }
    }

    /// Starts a stdio server and shakes hands.
    async fn launch(
        &self,
        home: LaunchSite,
        secrets: Redactor,
        opening: OpeningOrder,
    ) -> Result<(Arc<Connection>, EraFinding), HandshakeFailure> {
        let launched = self
            .dialer
            .launcher
            .launch(&home)
            .await
            .map_err(|source| ConnectError::Launch { server: self.server.clone(), source })?;
        let (link, started) = stdio::StdioLink::to(launched);
        let connection = self.connection(Link::Stdio(link), secrets);
        started.run(&connection, &self.dialer.tasks);
        self.establish(connection, opening).await
    }

    /// Opens the stream of an upstream that refused a POST.
    async fn open_legacy(
        &self,
        upstream: &http::HttpUpstream,
    ) -> Result<Option<http::LegacyEndpoint>, ConnectError> {
        let opened = tokio::select! {
            () = self.closing.cancelled() => return Ok(None),
            opened = http::open(upstream) => opened,
        };
        opened.map_err(|http::ForeignEndpoint(endpoint)| ConnectError::Endpoint {
            server: self.server.clone(),
            endpoint: Redactor::default().quote(&endpoint),
        })
    }

    fn connection(&self, link: Link, secrets: Redactor) -> Arc<Connection> {
        // A token of its own: an attempt that failed must not cancel the next one.
        let closing = (self.closing.clone(), self.closing.child_token());
        let (server, party) = (self.server.clone(), self.party.clone());
        let announcements = self.dialer.announcements.clone();
        let generation = self.generation;
        let connection =
            Connection::new(server, generation, party, announcements, link, secrets, closing);
        Arc::new(connection)
    }

    /// Shakes hands, and reports an upstream that accepts no connections meanwhile.
    async fn shake_hands(
        &self,
        connection: &Arc<Connection>,
        opening: OpeningOrder,
    ) -> Result<EraFinding, HandshakeFailure> {
        let patience = self.declared.start_timeout;
        let mut shaking = pin!(handshake::shake_hands(connection, opening, patience));
        let Link::Http(link) = &connection.link else { return shaking.await };
        tokio::select! {
            biased;
            shaken = &mut shaking => shaken,
            () = link.wait_until_unreachable() => {
                (self.absent)(&ConnectError::upstream_unreachable(self.server));
                shaking.await
            }
        }
    }

    /// Shakes hands, and reads ahead the lists of an upstream.
    async fn establish(
        &self,
        connection: Arc<Connection>,
        opening: OpeningOrder,
    ) -> Result<(Arc<Connection>, EraFinding), HandshakeFailure> {
        let shaken = self.shake_hands(&connection, opening).await;
        match shaken {
            Ok(finding) => {
                if let Link::Http(_) = &connection.link {
                    connection.warm_up().await;
                }
                Ok((connection, finding))
            }
            Err(halt) => {
                connection.closing.cancel();
                // So that a server that fails repeatedly never has two processes.
                connection.down().await;
                Err(halt)
            }
        }
    }
}
