//! The logins of this host.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::{
    sync::{Notify, broadcast},
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Authorizer, CallbackAnswer, LoginError, LoginId, LoginStatus, PendingLogin, TokenRequestCount,
    client_document,
    login_record::LoginRecord,
    login_settings::LoginSettings,
    oauth_http::OAuthHttpFactory,
    pending_logins::{LoginPhase, PendingLogins},
    person_login::{LoginInvitation, PersonLogin, invite},
    redirect_url::redirect_url,
    server_login::ServerLogin,
    token_keeper::TokenKeeper,
    token_store::TokenStore,
};
use crate::{
    config::{Config, ServerConfigs, TransportConfig, defaults},
    error_report::chain,
    reconfigure::{ConfigChange, Reconfigure},
    server_name::ServerName,
    telemetry::message_id::message_id,
};

/// The largest number of logins whose success was not noted yet.
const SUCCESSES_MAX: usize = 64;

/// The largest number of invitations for one login: a reload during one leads to another.
const INVITATIONS_MAX: u32 = 3;

/// The logins of this host. A login serves all clients.
pub struct LoginService {
    servers: Mutex<BTreeMap<ServerName, ServerLogin>>,
    pending: Mutex<PendingLogins<PersonLogin>>,
    store: Arc<TokenStore>,
    credentials: Option<PathBuf>,
    http: OAuthHttpFactory,
    /// The address that browsers return to.
    redirect_url: ArcSwap<String>,
    /// The address at which the service listens, if systemd or a flag has chosen it.
    address: Option<SocketAddr>,
    /// Clients may log in.
    is_open_to_clients: AtomicBool,
    /// Takes each server at which a login succeeds.
    successes: broadcast::Sender<ServerName>,
    /// Wakes [`LoginService::run`] when a plan changes.
    wake: Arc<Notify>,
    pub(super) tasks: TaskTracker,
    stopping: CancellationToken,
}

impl LoginService {
    /// Returns the logins of `config`, with the tokens in the state directory. Without a directory,
    /// tokens last as long as the process. `credentials` is the directory of `credential:NAME`, and
    /// `address` that at which the service listens, if it is known.
    pub fn new(
        config: &Config,
        address: Option<SocketAddr>,
        state_directory: Option<&Path>,
        credentials: Option<PathBuf>,
        http: OAuthHttpFactory,
    ) -> Arc<Self> {
        let service = Self {
            servers: Mutex::default(),
            pending: Mutex::default(),
            store: Arc::new(TokenStore::new(state_directory)),
            credentials,
            http,
            redirect_url: ArcSwap::from_pointee(redirect_url(config, address)),
            address,
            is_open_to_clients: AtomicBool::new(config.auth.by_clients),
            successes: broadcast::channel(SUCCESSES_MAX).0,
            wake: Arc::default(),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
        };
        service.declare(&config.servers);
        Arc::new(service)
    }

    /// Refreshes tokens before they expire, used or not, until the service closes: a refresh token
    /// that is not used may expire. It ends logins whose time is over, too.
    pub async fn run(&self) {
        loop {
            let next = self.next_event();
            let due = async {
                match next {
                    Some(pause) => time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = self.wake.notified() => {}
                () = due => {}
            }
            for authorizer in self.authorizers() {
                authorizer.refresh_if_due();
            }
            self.pending().sweep(Instant::now());
        }
    }

    /// Ends the waiting for tokens, and waits for requests in flight, so that each token that they
    /// yield is stored.
    pub async fn close(&self) {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Returns the tokens of a server. `None` if it has no URL, no login, or a static
    /// `Authorization`.
    pub fn authorizer(&self, server: &ServerName) -> Option<Arc<Authorizer>> {
        self.servers().get(server)?.authorizer().cloned()
    }

    /// Starts a login, in place of a running one at the same server.
    pub(super) async fn begin(
        self: &Arc<Self>,
        server: &ServerName,
    ) -> Result<PendingLogin, LoginError> {
        for _ in 0..INVITATIONS_MAX {
            let authorizer = self.oauth(server)?;
            let redirect_url = self.redirect_url().to_string();
            let invited = invite(Arc::clone(authorizer.keeper()), redirect_url);
            let invited = Box::pin(invited).await;
            let invitation = invited.inspect_err(|error| authorizer.note_error(error))?;
            if let Some(begun) = self.add(server, invitation)? {
                self.wake.notify_one();
                tracing::info!(mcp_server = %server, "a login at server `{server}` has started");
                return Ok(begun);
            }
        }
        Err(LoginError::Replaced(server.clone()))
    }

    /// Adds a login. Returns `None` if a reload or a logout has come before it.
    fn add(
        &self,
        server: &ServerName,
        invitation: LoginInvitation,
    ) -> Result<Option<PendingLogin>, LoginError> {
        let LoginInvitation { login, state, url } = invitation;
        // A reload changes declarations under this lock, and ends the logins of before.
        let servers = self.servers();
        let mut pending = self.pending();
        let authorizer = servers.get(server).and_then(ServerLogin::authorizer);
        let redirect_url = self.redirect_url();
        match authorizer.is_some_and(|it| login.is_current(it.keeper(), &redirect_url)) {
            true => pending.begin(server, state, login, url, Instant::now()).map(Some),
            false => Ok(None),
        }
    }

    /// Returns the login that waits at a server, or starts one: several clients and operators may
    /// need the same. One that is about to end is not shared.
    ///
    /// # Errors
    ///
    /// [`LoginError`] if the server or its authorization server supports no login.
    pub async fn join(self: &Arc<Self>, server: &ServerName) -> Result<PendingLogin, LoginError> {
        let authorizer = self.oauth(server)?;
        let waiting = || {
            let now = Instant::now();
            let waiting = self.pending().waiting(server, now);
            waiting.filter(|login| login.ends >= now + defaults::LOGIN_TIMEOUT / 2).map(Ok)
        };
        let (service, server) = (Arc::clone(self), server.clone());
        let beginning = authorizer.join_login(waiting, async move { service.begin(&server).await });
        beginning.outcome().await.unwrap_or(Err(LoginError::Stopping))
    }

    /// Finishes the login that the answer belongs to, and returns its server. If the caller leaves,
    /// the login is finished all the same.
    ///
    /// # Errors
    ///
    /// [`LoginError`] if the login is unknown or over, or the authorization server refuses it.
    pub async fn finish(
        self: &Arc<Self>,
        answer: &CallbackAnswer,
    ) -> Result<ServerName, LoginError> {
        let (id, login) = self.pending().take(answer.state(), Instant::now())?;
        let (service, keeper) = (Arc::clone(self), Arc::clone(&login.keeper));
        let (server, answer) = (keeper.server.clone(), answer.clone());
        let finishing = self.tasks.spawn(async move {
            let outcome = login.finish(&answer).await;
            let server = &keeper.server;
            match &outcome {
                Ok(()) => {
                    tracing::info!(mcp_server = %server, "the login at server `{server}` is finished");
                    let _no_receiver = service.successes.send(server.clone());
                }
                Err(error) => {
                    let (reason, hint) = (chain(error), error.hint());
                    tracing::warn!(mcp_server = %server, reason, hint, message_id = message_id(error.code()), "the login at server `{server}` failed: {reason}. {hint}");
                    keeper.facts().last_error = Some(reason.into());
                }
            }
            service.pending().end(&id, outcome.clone());
            outcome
        });
        finishing.await.unwrap_or(Err(LoginError::Stopping)).map(|()| server)
    }

    /// Waits until a login ends, or another one that has taken its place. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`LoginError`] if it fails, or its time is over.
    pub async fn wait(&self, login: &LoginId) -> Result<(), LoginError> {
        let mut id = login.clone();
        loop {
            let ended = self.wait_for(&id).await;
            let Err(LoginError::Replaced(server)) = &ended else { return ended };
            let Some(next) = self.pending().waiting(server, Instant::now()) else { return ended };
            id = next.id;
        }
    }

    async fn wait_for(&self, login: &LoginId) -> Result<(), LoginError> {
        let watched = self.pending().watch(login);
        let (mut phase, ends) = watched.ok_or(LoginError::UnknownLogin)?;
        loop {
            let current = phase.borrow_and_update().clone();
            let changed = match current {
                LoginPhase::Ended(outcome) => return outcome,
                LoginPhase::Exchanging => phase.changed().await,
                LoginPhase::Waiting => tokio::select! {
                    changed = phase.changed() => changed,
                    () = time::sleep_until(ends) => {
                        self.pending().sweep(Instant::now());
                        Ok(())
                    }
                    () = self.stopping.cancelled() => return Err(LoginError::Stopping),
                },
            };
            changed.map_err(|_| LoginError::UnknownLogin)?;
        }
    }

    /// Returns a receiver of the servers at which logins succeed from now on.
    pub fn successes(&self) -> broadcast::Receiver<ServerName> {
        self.successes.subscribe()
    }

    /// Returns whether a server refuses requests until a login.
    pub fn needs_login(&self, server: &ServerName) -> bool {
        self.authorizer(server).is_some_and(|authorizer| authorizer.login_required().is_some())
    }

    /// Returns whether clients may log in: `auth.by_clients`.
    pub fn is_open_to_clients(&self) -> bool {
        self.is_open_to_clients.load(Ordering::Relaxed)
    }

    /// Returns the document that describes metamcp to the authorization server of `server`.
    ///
    /// # Errors
    ///
    /// [`LoginError::NoLogin`] if the server has no login.
    pub fn client_document(&self, server: &ServerName) -> Result<serde_json::Value, LoginError> {
        let settings = self.oauth(server)?.keeper().settings.load_full();
        let url = settings.oauth.client_metadata_url.as_ref();
        Ok(client_document(url, &self.redirect_url()))
    }

    /// Returns the state of all logins, by server.
    pub fn statuses(&self) -> Vec<LoginStatus> {
        let now = Instant::now();
        let servers = self.servers();
        let pending = self.pending();
        let status = |(server, login): (&ServerName, &ServerLogin)| match login {
            ServerLogin::StaticHeader => LoginStatus::of_static_header(server.clone()),
            ServerLogin::OAuth(authorizer) => authorizer.status(pending.is_waiting(server, now)),
        };
        servers.iter().map(status).collect()
    }

    /// Returns the numbers of requests for tokens, by server.
    pub fn token_requests(&self) -> Vec<TokenRequestCount> {
        let authorizers = self.authorizers();
        let keepers = authorizers.iter().map(|authorizer| authorizer.keeper());
        keepers.flat_map(|keeper| keeper.requests.all(&keeper.server)).collect()
    }

    /// Returns the address that browsers return to after a login.
    pub fn redirect_url(&self) -> Arc<String> {
        self.redirect_url.load_full()
    }

    pub(super) fn oauth(&self, server: &ServerName) -> Result<Arc<Authorizer>, LoginError> {
        self.authorizer(server).ok_or_else(|| LoginError::NoLogin(server.clone()))
    }

    fn authorizers(&self) -> Vec<Arc<Authorizer>> {
        self.servers().values().filter_map(ServerLogin::authorizer).cloned().collect()
    }

    /// Returns the time until a token is refreshed or a login ends.
    fn next_event(&self) -> Option<Duration> {
        let authorizers = self.authorizers();
        let refresh = authorizers.iter().filter_map(|authorizer| authorizer.next_refresh()).min();
        let end =
            self.pending().next_end().map(|end| end.saturating_duration_since(Instant::now()));
        // The clock of the host may jump, or the host may sleep.
        let refresh = refresh.map(|due| due.min(defaults::TOKEN_CHECK_INTERVAL));
        [refresh, end].into_iter().flatten().min()
    }

    /// Applies the declarations of servers. One that stays at its address keeps its tokens, so that
    /// no token has two owners.
    fn declare(&self, declared: &ServerConfigs) {
        let mut servers = self.servers();
        let mut before = std::mem::take(&mut *servers);
        let mut stored: Option<Vec<LoginRecord>> = None;
        for (server, config) in declared {
            let TransportConfig::Http(http) = &config.transport else { continue };
            let Some(oauth) = http.oauth() else {
                if http.has_static_authorization() {
                    servers.insert(server.clone(), ServerLogin::StaticHeader);
                }
                continue;
            };
            let known = before.get(server).and_then(ServerLogin::authorizer);
            if let Some(authorizer) = known.filter(|known| known.keeper().is_at(&http.url)).cloned()
            {
                before.remove(server);
                let keeper = authorizer.keeper();
                let is_same = {
                    let current = keeper.settings.load();
                    current.http == *http && current.oauth == oauth
                };
                if !is_same {
                    let settings = LoginSettings::new(http, oauth, &self.http);
                    keeper.redeclare(settings, stored.get_or_insert_with(|| self.store.logins()));
                    self.pending().replace(server);
                }
                servers.insert(server.clone(), ServerLogin::OAuth(authorizer));
                continue;
            }
            let settings = LoginSettings::new(http, oauth, &self.http);
            let (store, credentials) = (Arc::clone(&self.store), self.credentials.clone());
            let wake = Arc::clone(&self.wake);
            let keeper = TokenKeeper::new(server.clone(), settings, store, credentials, wake);
            keeper.adopt(stored.get_or_insert_with(|| self.store.logins()));
            let (tasks, stopping) = (self.tasks.clone(), self.stopping.clone());
            let authorizer = Authorizer::new(Arc::new(keeper), tasks, stopping);
            servers.insert(server.clone(), ServerLogin::OAuth(Arc::new(authorizer)));
        }
        for (server, login) in before {
            self.pending().replace(&server);
            // Connections to the old address may live on: they must get no token for the new one.
            if let Some(authorizer) = login.authorizer() {
                authorizer.keeper().retire();
            }
        }
    }

    fn servers(&self) -> MutexGuard<'_, BTreeMap<ServerName, ServerLogin>> {
        lock(&self.servers)
    }

    pub(super) fn pending(&self) -> MutexGuard<'_, PendingLogins<PersonLogin>> {
        lock(&self.pending)
    }
}

/// Locks for a moment, never across an await.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for LoginService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n_servers = self.servers().len();
        f.debug_struct("LoginService").field("n_servers", &n_servers).finish_non_exhaustive()
    }
}

impl Reconfigure for LoginService {
    fn reconfigure(&self, change: &ConfigChange) {
        let redirect_url = Arc::new(redirect_url(&change.new, self.address));
        if self.redirect_url.swap(Arc::clone(&redirect_url)) != redirect_url {
            // The authorization servers would send browsers to the old address.
            let servers = self.servers();
            servers.keys().for_each(|server| self.pending().replace(server));
        }
        self.is_open_to_clients.store(change.new.auth.by_clients, Ordering::Relaxed);
        self.declare(&change.servers);
        self.wake.notify_one();
    }
}
