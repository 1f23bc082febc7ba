//! The current token of one server, and its renewal.
//!
//! A renewal is a request for the next tokens. They are stored before they are used, so that a token
//! which the authorization server has replaced is never the only one on disk.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::{ArcSwap, ArcSwapOption};
use hyper::{Uri, header::HeaderValue};
use tokio::{sync::Notify, task, time::Instant};
use zeroize::Zeroizing;

use super::{
    AuthorizationFailure, LoginError, LoginRequired, challenge::BearerChallenge,
    login_record::LoginRecord, login_settings::LoginSettings, moment::Moment,
    refresh_schedule::RefreshSchedule, registration::OAuthClient, resource_metadata::canonical_uri,
    scope_selection::ScopeSet, server_metadata::ServerMetadata,
    token_request_counts::TokenRequestCounts, token_store::TokenStore,
};
use crate::{
    backoff::Backoff, config::defaults, error_report::chain, redact::Redactor,
    server_name::ServerName,
};

/// The part of a token's life after which a refused token was valid once, so that another one may
/// help.
const REFUSED_PART_MIN: f64 = 0.25;

/// The current token.
pub(super) struct IssuedToken {
    /// The value of `Authorization`.
    pub(super) header: HeaderValue,
    pub(super) schedule: RefreshSchedule,
    /// It took the place of a token that the server had refused.
    is_after_refusal: bool,
}

impl IssuedToken {
    /// Returns whether the token is the answer to a refusal, and so new that its successor would be
    /// refused, too. Otherwise, each call of a method that refuses all tokens would cost a refresh.
    pub(super) fn is_last_resort(&self, now: Moment) -> bool {
        let age_min = self.schedule.lifetime().map_or(defaults::TOKEN_REFUSED_AGE_MIN, |life| {
            life.mul_f64(REFUSED_PART_MIN).min(defaults::TOKEN_REFUSED_AGE_MIN)
        });
        self.is_after_refusal && self.schedule.age(now) < age_min
    }
}

/// The changing facts about a login.
pub(super) struct LoginFacts {
    pub(super) record: Option<Arc<LoginRecord>>,
    /// The last challenge of the server for a token.
    pub(super) challenge: Option<BearerChallenge>,
    /// The scopes that the last refused request lacked.
    pub(super) lacking: Option<ScopeSet>,
    /// The number of logins for scopes that the previous login had requested already.
    pub(super) n_futile: u32,
    /// The number of logouts. A login that began before one of them does not count.
    pub(super) n_logouts: u64,
    /// The server has refused the current token, and metamcp gets another one.
    pub(super) is_refused: bool,
    /// The reason why a person must log in.
    pub(super) needs_login: Option<Arc<str>>,
    pub(super) last_error: Option<Arc<str>>,
    /// The authorization server has refused finally to renew the token.
    pub(super) is_renewal_refused: bool,
    pub(super) backoff: Backoff,
    /// The earliest time of the next renewal, after one that failed.
    pub(super) retry_at: Option<Instant>,
}

/// The current token of one server, and its renewal.
pub(super) struct TokenKeeper {
    pub(super) server: ServerName,
    pub(super) settings: ArcSwap<LoginSettings>,
    pub(super) store: Arc<TokenStore>,
    pub(super) requests: TokenRequestCounts,
    /// The directory of credentials.
    credentials: Option<PathBuf>,
    pub(super) current: ArcSwapOption<IssuedToken>,
    /// The token before it, which a server may still repeat in an answer.
    previous: ArcSwapOption<IssuedToken>,
    facts: Mutex<LoginFacts>,
    /// The server is declared at another address now, so that there are no further tokens.
    is_retired: AtomicBool,
    /// Held while a token is stored, so that files and memory change in the same order.
    commits: Mutex<()>,
    /// Wakes the service, which plans the next refresh.
    wake: Arc<Notify>,
}

impl TokenKeeper {
    pub(super) fn new(
        server: ServerName,
        settings: LoginSettings,
        store: Arc<TokenStore>,
        credentials: Option<PathBuf>,
        wake: Arc<Notify>,
    ) -> Self {
        Self {
            server,
            settings: ArcSwap::from_pointee(settings),
            store,
            requests: TokenRequestCounts::default(),
            credentials,
            current: ArcSwapOption::empty(),
            previous: ArcSwapOption::empty(),
            facts: Mutex::new(LoginFacts {
                record: None,
                challenge: None,
                lacking: None,
                n_futile: 0,
                n_logouts: 0,
                is_refused: false,
                needs_login: None,
                last_error: None,
                is_renewal_refused: false,
                backoff: Backoff::new(defaults::TOKEN_REFRESH_PAUSES),
                retry_at: None,
            }),
            is_retired: AtomicBool::new(false),
            commits: Mutex::new(()),
            wake,
        }
    }

    /// Returns the facts. The lock is never held across an await.
    pub(super) fn facts(&self) -> MutexGuard<'_, LoginFacts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the redactor of the tokens that the server was sent last.
    pub(super) fn redactor(&self) -> Redactor {
        let sent = [self.current.load(), self.previous.load()];
        let sent = sent.iter().filter_map(|token| token.as_ref()?.header.to_str().ok());
        let tokens = sent.map(|value| value.strip_prefix("Bearer ").unwrap_or(value).to_owned());
        Redactor::new(Zeroizing::new(tokens.collect::<Vec<String>>()).iter())
    }

    pub(super) fn record(&self) -> Option<Arc<LoginRecord>> {
        self.facts().record.clone()
    }

    /// Returns the client that an operator has registered, if any.
    pub(super) fn configured_client(
        &self,
        metadata: Option<&ServerMetadata>,
    ) -> Result<Option<OAuthClient>, LoginError> {
        let (settings, credentials) = (self.settings.load(), self.credentials.as_deref());
        OAuthClient::configured(&settings.oauth, &self.server, credentials, metadata)
    }

    /// Makes `record` the current login, or forgets the current one.
    pub(super) fn install(&self, record: Option<LoginRecord>) {
        let mut facts = self.facts();
        let is_after_refusal = std::mem::take(&mut facts.is_refused);
        let current = record.as_ref().and_then(|record| {
            let (issued, lifetime) = (record.issued(), record.lifetime());
            let schedule = RefreshSchedule::new(issued, lifetime, Moment::now(), fastrand::f64());
            Some(IssuedToken { header: record.bearer()?, schedule, is_after_refusal })
        });
        facts.record = record.map(Arc::new);
        facts.needs_login = None;
        facts.last_error = None;
        facts.is_renewal_refused = false;
        facts.retry_at = None;
        facts.backoff = Backoff::new(defaults::TOKEN_REFRESH_PAUSES);
        if let Some(last) = self.current.swap(current.map(Arc::new)) {
            self.previous.store(Some(last));
        }
        drop(facts);
        self.wake.notify_one();
    }

    /// Makes the newest stored login of this server the current one. Blocks only briefly.
    pub(super) fn adopt(&self, stored: &[LoginRecord]) {
        let settings = self.settings.load();
        let own = stored
            .iter()
            .filter(|stored| stored.is_of(&self.server, &settings.http, &settings.oauth));
        self.install(own.max_by_key(|stored| stored.issued()).cloned());
    }

    /// Applies another declaration of the server. The login is kept if it fits.
    pub(super) fn redeclare(&self, settings: LoginSettings, stored: &[LoginRecord]) {
        let _in_order = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        let record = self.record();
        let fits = record
            .is_some_and(|record| record.is_of(&self.server, &settings.http, &settings.oauth));
        self.settings.store(Arc::new(settings));
        if !fits {
            self.facts().challenge = None;
            self.adopt(stored);
        }
    }

    /// Returns whether the server is declared at `url`.
    pub(super) fn is_at(&self, url: &Uri) -> bool {
        canonical_uri(&self.settings.load().http.url) == canonical_uri(url)
    }

    /// Leaves the token to the last requests: the server is declared at another address now.
    pub(super) fn retire(&self) {
        let _in_order = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_retired.store(true, Ordering::Relaxed);
    }

    /// Stores a record durably, and then makes it the current one. A record that cannot be stored is
    /// used until the process ends: the one before it is worthless already.
    ///
    /// # Errors
    ///
    /// [`LoginError::Replaced`] if the current record is no longer `expected`, or the server is
    /// declared differently now.
    pub(super) fn commit(
        &self,
        expected: Option<&Arc<LoginRecord>>,
        record: LoginRecord,
    ) -> Result<(), LoginError> {
        let _in_order = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.record();
        if current.as_ref().map(Arc::as_ptr) != expected.map(Arc::as_ptr) {
            return Err(LoginError::Replaced(self.server.clone()));
        }
        self.put(record, current.as_deref())
    }

    /// Stores the record of a new login, and makes it the current one. `is_futile` if the previous
    /// login had requested the same scopes, and the server refused them. There were `n_logouts` when
    /// it began.
    ///
    /// # Errors
    ///
    /// [`LoginError::Replaced`] if there was a logout, or the server is declared differently now.
    pub(super) fn replace(
        &self,
        record: LoginRecord,
        is_futile: bool,
        n_logouts: u64,
    ) -> Result<(), LoginError> {
        let _in_order = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_retired.load(Ordering::Relaxed) || self.facts().n_logouts != n_logouts {
            return Err(LoginError::Replaced(self.server.clone()));
        }
        let current = self.record();
        self.put(record, current.as_deref())?;
        let mut facts = self.facts();
        facts.lacking = None;
        facts.n_futile = if is_futile { facts.n_futile + 1 } else { 0 };
        Ok(())
    }

    fn put(&self, record: LoginRecord, current: Option<&LoginRecord>) -> Result<(), LoginError> {
        let settings = self.settings.load();
        // A token must not reach another server than the one that it was issued for.
        if !record.is_of(&self.server, &settings.http, &settings.oauth) {
            return Err(LoginError::Replaced(self.server.clone()));
        }
        let stored = self.store.put_login(&record, current);
        self.install(Some(record));
        if let Err(source) = stored {
            let error = LoginError::Store { server: self.server.clone(), source: source.into() };
            let (server, reason) = (&self.server, chain(&error));
            tracing::error!(
                mcp_server = %server, reason,
                "the login at server `{server}` lasts only until the service ends: {reason}. {}", error.hint()
            );
            self.facts().last_error = Some(reason.into());
        }
        Ok(())
    }

    /// Forgets the current login and its file. Returns it.
    pub(super) fn forget(&self) -> Result<Option<Arc<LoginRecord>>, LoginError> {
        let _in_order = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        let record = self.record();
        self.install(None);
        {
            let mut facts = self.facts();
            (facts.lacking, facts.n_futile) = (None, 0);
            facts.n_logouts += 1;
        }
        let settings = self.settings.load();
        let client_id = settings.oauth.client_id.as_deref();
        let unbound = client_id.map_or(Ok(()), |id| self.store.remove_binding(&self.server, id));
        // Earlier declarations may have left others, which must not come back.
        let others = self.store.remove_logins(&self.server);
        let removed = record.as_ref().map_or(Ok(()), |record| self.store.remove_login(record));
        let removed = removed.and(others);
        removed.and(unbound).map_err(|source| LoginError::Store {
            server: self.server.clone(),
            source: source.into(),
        })?;
        Ok(record)
    }

    /// Returns whether metamcp can get another token without a person.
    pub(super) fn can_renew(&self) -> bool {
        let settings = self.settings.load();
        let facts = self.facts();
        let has_grant = facts.record.as_ref().is_some_and(|record| record.renewal().is_some());
        !self.is_retired.load(Ordering::Relaxed)
            && (settings.is_client_credentials() || (has_grant && !facts.is_renewal_refused))
    }

    /// Commits a record off the event loops. Once started, it is completed.
    pub(super) async fn commit_in_background(
        self: &Arc<Self>,
        expected: Option<Arc<LoginRecord>>,
        record: LoginRecord,
    ) -> Result<(), LoginError> {
        self.in_background(move |keeper| keeper.commit(expected.as_ref(), record)).await?
    }

    /// Runs work that blocks.
    pub(super) async fn in_background<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, LoginError> {
        let keeper = Arc::clone(self);
        task::spawn_blocking(move || work(&keeper)).await.map_err(|_| LoginError::Stopping)
    }

    pub(super) fn login_required(&self, why: Arc<str>) -> AuthorizationFailure {
        LoginRequired { server: self.server.clone(), why }.into()
    }

    pub(super) fn unavailable(&self, why: Arc<str>) -> AuthorizationFailure {
        AuthorizationFailure::Unavailable { server: self.server.clone(), why }
    }
}
