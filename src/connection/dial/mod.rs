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
    Announcement, Connection, ConnectionOwner, Link, ServerDurations, http, keepalive_driver,
    stdio, subscription,
};
use crate::{
    backoff::Backoff,
    child::{ChildProgram, HostLauncher, LaunchSite, Launcher, UnitServer},
    config::{
        EraChoice, LifecycleConfig, SecretValue, ServerConfig, ServerConfigs, TransportConfig,
        defaults,
    },
    error_report::chain,
    oauth::LoginService,
    redact::Redactor,
    server_name::ServerName,
};

mod connector_cache;
mod era_cache;
mod error;
mod handshake;
mod reconnect_window;
mod server_version;
#[cfg(test)]
mod tests;

use connector_cache::ConnectorCache;
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
    /// The durations at the server that this clone connects.
    durations: ServerDurations,
    /// The logins at servers over HTTP.
    logins: Option<Arc<LoginService>>,
    /// The era of each server, if it is known.
    eras: Arc<Mutex<EraCache>>,
    connectors: Arc<ConnectorCache>,
}

impl Dialer {
    /// Returns a dialer that reads credentials from `credentials` and runs its tasks in `tasks`.
    /// Messages of servers that belong to no request go to `announcements`.
    pub fn new(
        credentials: Option<PathBuf>,
        tasks: TaskTracker,
        announcements: mpsc::Sender<Announcement>,
    ) -> Self {
        let (n_connected, eras, connectors) = (Arc::default(), Arc::default(), Arc::default());
        let launcher = Arc::new(HostLauncher);
        Self {
            credentials,
            launcher,
            tasks,
            announcements,
            n_connected,
            durations: ServerDurations::default(),
            logins: None,
            eras,
            connectors,
        }
    }

    /// Returns the dialer with `launcher` for stdio servers, instead of this host.
    #[must_use]
    pub fn with_launcher(self, launcher: Arc<dyn Launcher>) -> Self {
        Self { launcher, ..self }
    }

    /// Returns the dialer that authorizes itself with the tokens of `logins`.
    #[must_use]
    pub fn with_logins(self, logins: Arc<LoginService>) -> Self {
        Self { logins: Some(logins), ..self }
    }

    /// Returns the dialer for one server, at which it measures `durations`.
    #[must_use]
    pub fn measuring(self, durations: ServerDurations) -> Self {
        Self { durations, ..self }
    }

    /// Returns the durations that are measured at the server.
    pub fn durations(&self) -> &ServerDurations {
        &self.durations
    }

    /// Returns the logins at servers, if there are any.
    pub fn logins(&self) -> Option<&Arc<LoginService>> {
        self.logins.as_ref()
    }

    /// Reads the certificates for `servers` again, for new connections.
    pub fn reload_certificates(&self, servers: &ServerConfigs) {
        self.connectors.reload(servers);
    }

    /// Returns the tracker that owns the tasks of every connection.
    pub fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Connects to `server` for `owner`. Cancelling `closing` closes the connection, even during
    /// the handshake. An absent server is tried again until the `window` ends. Not cancel safe: a
    /// connection that is dropped halfway stays until `closing` is cancelled.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] names the server and the obstacle. No connection remains then.
    pub async fn dial(
        &self,
        server: &ServerName,
        declared: &ServerConfig,
        generation: u64,
        owner: ConnectionOwner,
        closing: CancellationToken,
        window: ReconnectWindow<'_>,
    ) -> Result<Arc<Connection>, ConnectError> {
        let (closing, on_absence) = (&closing, window.on_absence);
        let target =
            DialTarget { dialer: self, server, declared, generation, owner, closing, on_absence };
        let mut backoff = Backoff::new(defaults::CONNECT_PAUSE);
        loop {
            let error = match target.connect().await {
                Ok(connection) => {
                    self.established(&connection, declared);
                    return Ok(connection);
                }
                Err(error) => error,
            };
            let pause = backoff.pause(fastrand::f64());
            let may_return =
                error.is_outage() || window.was_connected && error.is_socket_unit_down();
            if !may_return || window.ends < Instant::now() + pause {
                return Err(error);
            }
            let report = chain(&error);
            tracing::debug!(
                mcp_server = %server, error = report,
                "server `{server}` is not available yet, metamcp tries again: {report}"
            );
            on_absence(&error);
            tokio::select! {
                () = closing.cancelled() => return Err(error),
                () = time::sleep(pause) => {}
            }
        }
    }

    /// Counts a new connection, and starts the tasks that watch it.
    fn established(&self, connection: &Arc<Connection>, declared: &ServerConfig) {
        self.n_connected.fetch_add(1, Ordering::Relaxed);
        let is_kept_alive = matches!(declared.lifecycle, LifecycleConfig::KeepAlive { .. });
        let watched = Arc::clone(connection);
        self.tasks.spawn(keepalive_driver::watch(watched, declared.health, is_kept_alive));
        // A connection for a single answer has no clients to notify of lists.
        let wants_lists = declared.lifecycle != LifecycleConfig::Ephemeral;
        self.tasks.spawn(subscription::run(Arc::clone(connection), wants_lists));
    }

    /// Returns the number of connections made so far, to all servers.
    pub fn n_connected(&self) -> u64 {
        self.n_connected.load(Ordering::Relaxed)
    }

    /// Records that `server` was of the legacy era in an earlier run of metamcp. This is used only
    /// for an upstream over HTTP: a program may have been replaced meanwhile, and is probed.
    pub fn remember_legacy(&self, server: &ServerName, declared: &ServerConfig) {
        if matches!(declared.transport, TransportConfig::Http(_)) {
            let version = ServerVersion::of(&declared.transport);
            let finding = EraFinding::Legacy(LegacyEvidence::CostlyProbe);
            self.eras().connected(server, version, finding, Instant::now());
        }
    }

    fn eras(&self) -> MutexGuard<'_, EraCache> {
        // Held for single statements on plain data.
        self.eras.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resolve(
        &self,
        server: &ServerName,
        values: &BTreeMap<String, SecretValue>,
    ) -> Result<BTreeMap<String, String>, ConnectError> {
        let resolve = |(key, value): (&String, &SecretValue)| match value
            .resolve(self.credentials.as_deref())
        {
            Ok(text) => Ok((key.clone(), text)),
            Err(source) => {
                Err(ConnectError::Secret { server: server.clone(), key: key.clone(), source })
            }
        };
        values.iter().map(resolve).collect()
    }
}

/// The server to connect, and the owner of the connection.
struct DialTarget<'a> {
    dialer: &'a Dialer,
    server: &'a ServerName,
    declared: &'a ServerConfig,
    generation: u64,
    owner: ConnectionOwner,
    closing: &'a CancellationToken,
    /// Called for an upstream that accepts no connections, while it is still tried.
    on_absence: &'a (dyn Fn(&ConnectError) + Send + Sync),
}

impl DialTarget<'_> {
    /// Connects once, in the known or assumed era of the server, and a second time if the era turns
    /// out to be the other one. A connection that fails in the handshake is closed, and its end is
    /// waited for.
    async fn connect(&self) -> Result<Arc<Connection>, ConnectError> {
        const COSTLY: EraFinding = EraFinding::Legacy(LegacyEvidence::CostlyProbe);
        let version = ServerVersion::of(&self.declared.transport);
        let (server, choice) = (self.server, self.declared.era);
        let opening = self.dialer.eras().opening(server, &version, choice, Instant::now());
        let opened = match self.open(opening).await {
            Err(HandshakeFailure::Reopen(other, error)) if choice == EraChoice::Auto => {
                tracing::debug!(
                    mcp_server = %server, %error,
                    "metamcp connects to server `{server}` again, with another handshake: {error}"
                );
                self.open(other).await.map(|(connection, finding)| {
                    connection.counters.is_reopened.store(true, Ordering::Relaxed);
                    // The server works without the probe, so the probe did harm.
                    (connection, if finding == EraFinding::Nothing { COSTLY } else { finding })
                })
            }
            opened => opened,
        };
        let mut eras = self.dialer.eras();
        match opened {
            Ok((connection, finding)) => {
                let is_legacy = matches!(finding, EraFinding::Legacy(_));
                let finding = if is_legacy && !connection.is_child() { COSTLY } else { finding };
                if choice == EraChoice::Auto {
                    eras.connected(server, version, finding, Instant::now());
                }
                Ok(connection)
            }
            Err(HandshakeFailure::EndedAtProbe(error)) => {
                eras.ended(server, version, Instant::now());
                Err(error)
            }
            Err(HandshakeFailure::Failed(error) | HandshakeFailure::Reopen(_, error)) => {
                eras.failed(server, &version, error.may_be_era_mismatch());
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
            TransportConfig::Http(http) => {
                let values = self.dialer.resolve(self.server, &http.headers)?;
                let Dialer { connectors, credentials, .. } = self.dialer;
                let connector = connectors.connector(self.server, http, credentials.as_deref())?;
                let upstream =
                    http::HttpUpstream::new(http.url.clone(), connector, &values).map_err(
                        |header| ConnectError::Header { server: self.server.clone(), header },
                    )?;
                let logins = self.dialer.logins.as_ref();
                let authorizer = logins.and_then(|logins| logins.authorizer(self.server));
                let upstream = upstream.authorized(authorizer);
                self.open_upstream(upstream, Redactor::of(&http.headers, &values), opening).await
            }
        }
    }

    /// Opens one connection to an upstream over HTTP.
    async fn open_upstream(
        &self,
        upstream: http::HttpUpstream,
        secrets: Redactor,
        opening: OpeningOrder,
    ) -> Result<(Arc<Connection>, EraFinding), HandshakeFailure> {
        let tasks = &self.dialer.tasks;
        let over = |(link, receivers): (http::HttpLink, http::HttpReceivers), opening| {
            let connection = self.connection(Link::Http(Box::new(link)), secrets.clone());
            tasks.spawn(http::run(Arc::clone(&connection), receivers));
            self.establish(connection, opening)
        };
        let link = http::HttpLink::new(upstream.clone(), None, tasks.clone());
        let error = match over(link, opening).await {
            Err(HandshakeFailure::Failed(error)) if error.may_be_legacy() => error,
            done => return done,
        };
        match opening {
            // The upstream may be modern by now, or always was: the probe shows it. An upstream
            // that refuses the probe too gets here once more.
            OpeningOrder::Initialize if self.declared.era == EraChoice::Auto => {
                return Err(HandshakeFailure::Reopen(OpeningOrder::Probe, error));
            }
            OpeningOrder::DiscoverOnly => return Err(error.into()),
            OpeningOrder::Initialize | OpeningOrder::Discover | OpeningOrder::Probe => {}
        }
        let opened = tokio::select! {
            () = self.closing.cancelled() => return Err(error.into()),
            opened = http::open(&upstream) => opened,
        };
        let opened = opened.map_err(|http::ForeignEndpoint(endpoint)| ConnectError::Endpoint {
            server: self.server.clone(),
            endpoint: secrets.quote(&upstream.without_tokens(&endpoint)),
        })?;
        let Some(opened) = opened else { return Err(error.into()) };
        let link = http::HttpLink::new(opened.upstream, Some(opened.stream), tasks.clone());
        let (connection, _) = over(link, OpeningOrder::Initialize).await?;
        // It is certainly not modern, even without a probe.
        Ok((connection, EraFinding::Legacy(LegacyEvidence::Refusal)))
    }

    /// Starts a stdio server and shakes hands.
    async fn launch(
        &self,
        site: LaunchSite,
        secrets: Redactor,
        opening: OpeningOrder,
    ) -> Result<(Arc<Connection>, EraFinding), HandshakeFailure> {
        let launched = self.dialer.launcher.launch(&site).await;
        let launched = launched
            .map_err(|source| ConnectError::Launch { server: self.server.clone(), source })?;
        let (link, started) = stdio::StdioLink::new(launched);
        let connection = self.connection(Link::Stdio(link), secrets);
        started.run(&connection, &self.dialer.tasks);
        self.establish(connection, opening).await
    }

    fn connection(&self, link: Link, secrets: Redactor) -> Arc<Connection> {
        // A token of its own: an attempt that failed must not cancel the next one.
        let closing = (self.closing.clone(), self.closing.child_token());
        let (server, owner) = (self.server.clone(), self.owner.clone());
        let Dialer { announcements, durations, .. } = self.dialer;
        let outputs = (announcements.clone(), durations.clone());
        let generation = self.generation;
        Arc::new(Connection::new(server, generation, owner, outputs, link, secrets, closing))
    }

    /// Shakes hands, and reports an upstream that accepts no connections meanwhile.
    async fn shake_hands(
        &self,
        connection: &Arc<Connection>,
        opening: OpeningOrder,
    ) -> Result<EraFinding, HandshakeFailure> {
        let timeout = self.declared.start_timeout;
        let mut shaking = pin!(handshake::shake_hands(connection, opening, timeout));
        let Link::Http(link) = &connection.link else { return shaking.await };
        tokio::select! {
            biased;
            shaken = &mut shaking => shaken,
            () = link.wait_until_unreachable() => {
                (self.on_absence)(&ConnectError::upstream_unreachable(self.server));
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
        match self.shake_hands(&connection, opening).await {
            Ok(finding) => {
                if let Link::Http(_) = &connection.link {
                    connection.warm_up().await;
                }
                Ok((connection, finding))
            }
            Err(failure) => {
                connection.closing.cancel();
                // So that a server that fails repeatedly never has two processes.
                connection.down().await;
                Err(failure)
            }
        }
    }
}
