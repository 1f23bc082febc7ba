//! The service from its start to its end.
//!
//! ```text
//!  build ──▶ warm up ──▶ accept ──▶ READY=1 ──┬── SIGHUP, config/reload ──▶ reload ──┐
//!                                             │◀─────────────────────────────────────┘
//!                                             └── SIGTERM, daemon/stop, unused for idle_exit
//!                                                  ─▶ STOPPING=1, stop accepting,
//!                                                     drain, cut off, close servers
//! ```

use std::sync::{Arc, Weak};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
    time,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    bearer_token::{self, BearerToken},
    call::CallError,
    catalog::{Catalog, DiskCache},
    child::{self, orphan_reaper},
    config::{Config, ConfigSources, defaults, secret::credentials_directory},
    connection::{Announcement, Dialer},
    control, descriptor_limit,
    forward::Forwarder,
    ingress::{
        self, ControlDispatch, IngressContext,
        stdio_pipe::{self, ClientPipe},
    },
    memory_budget::{self, MemoryBudget},
    meta::{MetaView, OperatorScripts},
    oauth::{self, LoginService},
    pool::Pool,
    provision::Provisioner,
    script::{ScriptRecords, ScriptServices},
    server_name::ServerName,
    session::{SessionRegistry, SessionSigner, state_directory},
    status::StatusBoard,
    systemd::notify,
    task::{TaskDriver, TaskFiles},
    telemetry::{liveness::Liveness, log::LogControl},
    tls::{self, TlsIdentity},
    tool::{ArgumentChecker, ToolDirectory},
    view::{OperatorView, ViewChoice, Views},
};

mod call_records;
mod catalog_upkeep;
pub mod control_socket;
mod drain;
mod idle_exit;
pub mod instance_lock;
pub mod listeners;
mod main_loop;
mod reload;
mod signals;
pub mod start_error;

use call_records::RecordWriting;
use catalog_upkeep::CatalogUpkeep;
use drain::{close, drain};
pub use listeners::Listeners;
use reload::IsolationWarning;
use signals::{SignalRequest, SignalStreams};
pub use start_error::StartError;

/// The service, built and listening.
#[derive(Debug)]
pub struct Daemon {
    source: ConfigSources,
    log: LogControl,
    memory: &'static MemoryBudget,
    pool: Arc<Pool>,
    provisioner: Arc<Provisioner>,
    sessions: Arc<SessionRegistry>,
    catalog: Arc<Catalog>,
    forwarder: Arc<Forwarder>,
    upkeep: Arc<CatalogUpkeep>,
    views: Arc<Views>,
    operators: Arc<OperatorView>,
    /// The logins at servers.
    logins: Arc<LoginService>,
    /// The calls that continue without their callers.
    tasks: Arc<TaskDriver>,
    records: Arc<ScriptRecords>,
    /// The announcements of servers, until the task that handles them starts.
    server_announcements: Option<mpsc::Receiver<Announcement>>,
    /// The announcements to clients, until the task that sends them starts.
    client_announcements: Option<mpsc::Receiver<Announcement>>,
    board: Arc<StatusBoard>,
    /// The certificate for new connections.
    tls: Arc<tls::CurrentTls>,
    /// The token that new requests must carry.
    token: Arc<bearer_token::CurrentToken>,
    liveness: Arc<Liveness>,
    listeners: Listeners,
    signals: SignalStreams,
    command_sender: mpsc::Sender<control::ControlCommand>,
    commands: mpsc::Receiver<control::ControlCommand>,
    /// The control interface, once clients are served.
    control: Option<Arc<control::ControlService>>,
    /// Information for operators that is appended to the status line.
    notice: Option<String>,
    /// A command started the service, and does not wait for its servers.
    is_launched: bool,
}

impl Daemon {
    /// Builds the service. Clients that connect from now on wait in the backlog.
    ///
    /// `source` is what a reload reads again. `identity` and `token` are the certificate and the
    /// client token that `config` declares.
    ///
    /// # Errors
    ///
    /// [`StartError`] if signals cannot be caught, or the key for session ids cannot be used.
    pub fn build(
        config: Config,
        source: ConfigSources,
        identity: Option<TlsIdentity>,
        token: Option<BearerToken>,
        listeners: Listeners,
        log: LogControl,
    ) -> Result<Self, StartError> {
        // First of all: other bounds depend on it.
        descriptor_limit::raise_limit();
        // Before READY=1: systemd checks then for a handler of SIGHUP.
        let signals = SignalStreams::install().map_err(StartError::Signals)?;
        let memory = memory_budget::global();
        memory.configure(&config.service);
        IsolationWarning::log(&config.execute);
        let config = Arc::new(config);
        let credentials = credentials_directory();
        let signer = SessionSigner::of_service(&config.listen.session(), credentials.as_deref())?;
        let tasks = TaskTracker::new();
        let (sender, server_announcements) = mpsc::channel(defaults::ANNOUNCEMENT_QUEUE);
        let state = state_directory();
        let logins = LoginService::new(
            &config,
            listeners.addresses().first().copied(),
            state.as_deref(),
            credentials.clone(),
            oauth::web_clients(credentials.clone()),
        );
        let dialer =
            Dialer::new(credentials, tasks.clone(), sender).with_logins(Arc::clone(&logins));
        let pool = Arc::new(Pool::new(dialer, &config));
        let sessions = SessionRegistry::new(Arc::clone(&pool), signer, &config);
        let (command_sender, commands) = mpsc::channel(defaults::CONTROL_COMMAND_QUEUE);
        let (sender, client_announcements) = mpsc::channel(defaults::ANNOUNCEMENT_QUEUE);
        let cache = DiskCache::declared(&config.catalog.cache);
        let (slots, clients) = (Arc::clone(&pool), Arc::clone(&sessions));
        let catalog = Arc::new(Catalog::new(slots, clients, tasks, sender, cache));
        catalog.configure(&config);
        let liveness = Liveness::new();
        let (slots, clients) = (Arc::clone(&pool), Arc::clone(&sessions));
        let addresses = listeners.addresses().to_vec();
        let (lists, signs) = (Arc::clone(&catalog), Arc::clone(&liveness));
        let board = StatusBoard::new(slots, clients, lists, signs, addresses);
        board.follow_config(source.file.as_deref());
        let (slots, clients) = (Arc::clone(&pool), Arc::clone(&sessions));
        let provisioner = Arc::new(Provisioner::new(slots, clients, Arc::clone(&catalog), &config));
        let forwarder = Forwarder::new(Arc::clone(&pool), Arc::clone(&sessions), config);
        let directory = Arc::new(ToolDirectory::new(Arc::clone(&forwarder), Arc::clone(&catalog)));
        let checker = Arc::new(ArgumentChecker::new(forwarder.computer().clone()));
        let records = ScriptRecords::in_directory(state.as_deref());
        let meta = MetaView::new(
            Arc::clone(&forwarder),
            Arc::clone(&directory),
            Arc::clone(&checker),
            Arc::clone(&provisioner),
            ScriptServices::new(Arc::clone(&records)),
        );
        let (scripts, services) = (OperatorScripts::of_view(&meta), Arc::clone(&forwarder));
        let views = Arc::new(Views::new(services, Arc::clone(&catalog), meta));
        let (services, lists) = (Arc::clone(&forwarder), Arc::clone(&catalog));
        let operators = OperatorView::new(services, lists, directory, checker, scripts);
        let operators = Arc::new(operators);
        let upkeep = CatalogUpkeep::new(Arc::clone(&catalog), Arc::clone(&forwarder));
        let files = TaskFiles::in_directory(state.as_deref());
        let tasks = TaskDriver::new(Arc::clone(&operators), files);
        Ok(Self {
            source,
            log,
            memory,
            pool,
            provisioner,
            sessions,
            forwarder,
            catalog,
            upkeep,
            views,
            operators,
            logins,
            tasks,
            records,
            server_announcements: Some(server_announcements),
            client_announcements: Some(client_announcements),
            board,
            tls: Arc::new(tls::CurrentTls::new(identity)),
            token: Arc::new(bearer_token::CurrentToken::new(token)),
            liveness,
            listeners,
            signals,
            command_sender,
            commands,
            control: None,
            notice: None,
            is_launched: false,
        })
    }

    /// Makes the service behave as one that a command started. It answers before its servers are
    /// ready, and exits after a while without use, even if no time is declared.
    #[must_use]
    pub fn launched(self) -> Self {
        Self { is_launched: true, ..self }
    }

    /// Serves until it is asked to stop or unused for too long, and leaves nothing behind. Not
    /// cancel safe: children may be left behind.
    pub async fn run(mut self) {
        orphan_reaper::adopt();
        // Before servers start: they may need resources that orphans hold, and their fresh lists
        // must replace the cached ones.
        tokio::join!(child::terminate_orphans(), self.upkeep.restore());
        // After that: a script that goes on calls tools at once.
        self.tasks.restore().await;
        let pool = Arc::clone(&self.pool);
        let warm_up = pool.warm_up();
        tokio::pin!(warm_up);
        let mut is_warm = false;
        let mut status_ticks = time::interval(defaults::WARM_UP_STATUS_PERIOD);
        while !is_warm && !self.is_launched {
            tokio::select! {
                biased;
                () = &mut warm_up => is_warm = true,
                _ = status_ticks.tick() => notify::status(&waiting_for(&self.pool.awaited())),
                signal = self.signals.next() => match signal {
                    SignalRequest::Stop => {
                        return drain(&mut self.signals, &self.listeners, close(&self.pool)).await;
                    }
                    // Not a reload for the manager, which knows no service before READY=1.
                    SignalRequest::Reload => {
                        let _noted_in_the_status_line = self.replace_config(None);
                    }
                },
            }
        }
        let (stop, drain_deadline) = (CancellationToken::new(), CancellationToken::new());
        let records = RecordWriting::start(
            self.forwarder.calls(),
            &self.forwarder.config(),
            state_directory().as_deref(),
        );
        let (clients, _) = self.accept(&stop, &drain_deadline);
        clients.spawn(Arc::clone(&self.upkeep).prime(stop.clone()));
        self.board.serving(true);
        let line = self.status_line();
        notify::ready(&line);
        tracing::info!(status = line, pid = std::process::id(), "serving: {line}");
        {
            let main_loop = self.run_main_loop(line);
            tokio::pin!(main_loop);
            tokio::select! {
                () = &mut main_loop => {}
                // If it was not awaited above.
                () = &mut warm_up, if !is_warm => main_loop.await,
            }
        }
        self.shut_down(stop, drain_deadline, clients).await;
        records.finish().await;
    }

    /// Serves the chosen view to one client at the other end of `pipe`, until the client goes or a
    /// signal asks to stop. Leaves nothing behind. Not cancel safe: children may be left behind.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the chosen view cannot be served.
    pub async fn run_for_client<R, W>(
        mut self,
        choice: ViewChoice<'_>,
        pipe: ClientPipe<R, W>,
    ) -> Result<(), CallError>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let view = self.views.choose(choice)?;
        tokio::join!(child::terminate_orphans(), self.upkeep.restore());
        let (stop, drain_deadline) = (CancellationToken::new(), CancellationToken::new());
        let (clients, context) = self.accept(&stop, &drain_deadline);
        self.board.serving(true);
        {
            let pool = Arc::clone(&self.pool);
            let serving = stdio_pipe::serve(context, view, pipe);
            let warm_up = pool.warm_up();
            tokio::pin!(serving, warm_up);
            let mut is_warm = false;
            loop {
                tokio::select! {
                    _end = &mut serving => break,
                    () = &mut warm_up, if !is_warm => is_warm = true,
                    signal = self.signals.next() => match signal {
                        SignalRequest::Stop => {
                            stop.cancel();
                            let timeout = self.forwarder.config().service.shutdown_timeout;
                            if time::timeout(timeout, &mut serving).await.is_err() {
                                drain_deadline.cancel();
                                let rest = defaults::DRAIN_DEADLINE;
                                let _cut_off = time::timeout(rest, &mut serving).await;
                            }
                            break;
                        }
                        SignalRequest::Reload => drop(self.reload(None)),
                    },
                }
            }
        }
        self.shut_down(stop, drain_deadline, clients).await;
        Ok(())
    }

    /// Starts to accept connections on every listener.
    fn accept(
        &mut self,
        stop: &CancellationToken,
        drain_deadline: &CancellationToken,
    ) -> (TaskTracker, Arc<IngressContext>) {
        let clients = TaskTracker::new();
        let (views, board) = (Arc::clone(&self.views), Arc::clone(&self.board));
        let (token, deadline) = (Arc::clone(&self.token), drain_deadline.clone());
        let context = IngressContext::new(
            views,
            board,
            token,
            Arc::clone(&self.logins),
            stop.clone(),
            deadline,
            clients.clone(),
        );
        let announcements = (self.server_announcements.take(), self.client_announcements.take());
        if let (Some(of_servers), Some(to_clients)) = announcements {
            let sessions = Arc::clone(&self.sessions);
            clients.spawn(Arc::clone(&self.upkeep).run_announcements(of_servers, stop.clone()));
            clients.spawn(Arc::clone(&self.upkeep).keep(stop.clone()));
            let refreshing = Arc::clone(&self.logins);
            let refreshing = async move { refreshing.run().await };
            clients.spawn(stop.clone().run_until_cancelled_owned(refreshing));
            let logins = self.logins.successes();
            clients.spawn(Arc::clone(&self.upkeep).follow_logins(logins, stop.clone()));
            clients.spawn(sessions.run(to_clients, stop.clone()));
        }
        clients.spawn(Arc::clone(&self.tasks).supervise(stop.clone(), drain_deadline.clone()));
        clients.spawn(Arc::clone(&self.records).supervise(stop.clone()));
        self.accept_http(&context, stop, &clients);
        let parts = control::ControlParts {
            board: Arc::clone(&self.board),
            views: Arc::clone(&self.views),
            operators: Arc::clone(&self.operators),
            ingress: Arc::clone(&context),
            task_driver: Arc::clone(&self.tasks),
            logins: Arc::clone(&self.logins),
            log_ring: Arc::clone(self.log.ring()),
            commands: self.command_sender.clone(),
        };
        let (stop, deadline) = (stop.clone(), drain_deadline.clone());
        let service = control::ControlService::new(parts, stop, deadline, clients.clone());
        let dispatch: Weak<dyn ControlDispatch> =
            Arc::<control::ControlService>::downgrade(&service);
        context.set_control(dispatch);
        for listener in std::mem::take(&mut self.listeners.control) {
            let pulse = self.liveness.pulse("control accept loop");
            clients.spawn(control::serve(listener, Arc::clone(&service), pulse));
        }
        self.control = Some(service);
        (clients, context)
    }

    /// Starts to accept clients, and readers of metrics.
    fn accept_http(
        &mut self,
        context: &Arc<IngressContext>,
        stop: &CancellationToken,
        clients: &TaskTracker,
    ) {
        for listener in std::mem::take(&mut self.listeners.http) {
            let pulse = self.liveness.pulse("http accept loop");
            let (context, tls) = (Arc::clone(context), Arc::clone(&self.tls));
            let (stop, tasks) = (stop.clone(), clients.clone());
            clients.spawn(ingress::serve(listener, context, tls, pulse, stop, tasks));
        }
        for listener in std::mem::take(&mut self.listeners.metrics) {
            if let Ok(address) = listener.local_addr() {
                tracing::info!(%address, "metrics are at http://{address}/metrics");
            }
            let pulse = self.liveness.pulse("metrics accept loop");
            let (context, stop, tasks) = (Arc::clone(context), stop.clone(), clients.clone());
            clients.spawn(ingress::serve_metrics(listener, context, pulse, stop, tasks));
        }
    }

    fn status_line(&self) -> String {
        let line = self.board.status().line();
        match &self.notice {
            Some(notice) => format!("{line}; {notice}"),
            None => line,
        }
    }
}

/// Returns the status line during the start.
fn waiting_for(servers: &[ServerName]) -> String {
    let names: Vec<&str> = servers.iter().map(ServerName::as_str).collect();
    if names.is_empty() { "starting".into() } else { format!("waiting for {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::child::escalation;

    #[test]
    fn the_unit_allows_more_time_than_a_stop_may_take() {
        let unit = include_str!("../../systemd/metamcp.service");
        let allowed = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec="));
        let allowed = crate::config::duration::parse(allowed.expect("it is there"));
        let worst =
            defaults::SHUTDOWN_TIMEOUT + defaults::DRAIN_DEADLINE + defaults::SERVERS_END_TIMEOUT;
        assert!(allowed.expect("a duration") >= worst + Duration::from_secs(2), "{worst:?}");
        // A child that ends only when it is killed, and the rest of its output in the pipes.
        let child =
            escalation::total_time() + defaults::AFTER_KILL + 6 * defaults::PIPE_DRAIN_TIMEOUT;
        assert!(
            defaults::SERVERS_END_TIMEOUT >= child
                && defaults::SERVERS_END_TIMEOUT > defaults::SESSION_END_TIMEOUT
        );
    }
}
