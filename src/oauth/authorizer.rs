//! The tokens of one server, as connections use them.

use std::sync::Arc;

use hyper::{StatusCode, header::HeaderValue};
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    AuthorizationFailure, LoginError, LoginKind, LoginRequired, LoginState, LoginStatus,
    PendingLogin, challenge::BearerChallenge, moment::Moment, token_keeper::TokenKeeper,
};
use crate::{
    config::defaults,
    redact::Redactor,
    single_flight::{FlightWaiter, SingleFlight},
};

type RenewalOutcome = Result<HeaderValue, AuthorizationFailure>;

/// A login that has started, or the reason why there is none.
type LoginStart = Result<PendingLogin, LoginError>;

/// The tokens of one server. All requests share one renewal, which runs in a task of its own.
pub struct Authorizer {
    keeper: Arc<TokenKeeper>,
    renewals: Arc<SingleFlight<RenewalOutcome>>,
    /// The start of a login that several clients need.
    logins: Arc<SingleFlight<LoginStart>>,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

/// The answer of a server that refuses a request for want of a token.
#[derive(Clone, Debug)]
pub struct AuthRefusal {
    /// The status of the answer: 401, or 403.
    pub status: StatusCode,
    /// The `WWW-Authenticate` headers of the answer.
    pub challenges: Vec<HeaderValue>,
}

impl AuthRefusal {
    /// Returns whether another token may help: after 401, and after 403 for insufficient scopes.
    pub fn is_about_tokens(&self) -> bool {
        let lacks_scope = || {
            BearerChallenge::parse(&self.challenges)
                .is_some_and(|challenge| challenge.is_insufficient_scope())
        };
        self.status == StatusCode::UNAUTHORIZED
            || (self.status == StatusCode::FORBIDDEN && lacks_scope())
    }
}

impl Authorizer {
    pub(super) fn new(
        keeper: Arc<TokenKeeper>,
        tasks: TaskTracker,
        stopping: CancellationToken,
    ) -> Self {
        let (renewals, logins) = (SingleFlight::new(), SingleFlight::new());
        Self { keeper, renewals, logins, tasks, stopping }
    }

    /// Returns the current token as a sensitive header value. It may have expired: the server
    /// decides.
    pub fn bearer(&self) -> Option<HeaderValue> {
        self.keeper.current.load().as_ref().map(|current| current.header.clone())
    }

    /// Returns the token for a request, refreshed if it has expired. With client credentials, the
    /// first token is fetched. Cancel safe.
    pub async fn before_request(&self) -> Option<HeaderValue> {
        match self.usable() {
            Some(header) => Some(header),
            None if self.keeper.can_renew() => {
                let renewed = self.renew(|| self.usable()).outcome().await;
                // An expired token leads to a refusal, which says more.
                renewed.and_then(Result::ok).or_else(|| self.bearer())
            }
            None => self.bearer(),
        }
    }

    /// Returns another token after a refusal, for one more try. `sent` is the refused value. Cancel
    /// safe: a renewal continues.
    ///
    /// # Errors
    ///
    /// [`AuthorizationFailure`] if only a login yields such a token, or the authorization server is
    /// down for too long.
    pub async fn after_refusal(
        &self,
        refusal: &AuthRefusal,
        sent: Option<&HeaderValue>,
    ) -> Result<HeaderValue, AuthorizationFailure> {
        // The token was replaced while the request was on its way.
        let replaced = || self.bearer().filter(|current| Some(current) != sent);
        if let Some(current) = replaced() {
            return Ok(current);
        }
        let challenge = BearerChallenge::parse(&refusal.challenges);
        if refusal.status == StatusCode::FORBIDDEN {
            self.note_missing_scopes(challenge.unwrap_or_default())?;
        } else {
            self.keeper.facts().challenge = challenge;
            self.check_renewal()?;
        }
        let renewed = self.renew(replaced).outcome().await;
        renewed.unwrap_or_else(|| {
            Err(self.keeper.unavailable(LoginError::Stopping.to_string().into()))
        })
    }

    /// Records that the server has answered a request without a token: it requires no login now.
    pub fn note_open(&self) {
        let mut facts = self.keeper.facts();
        if facts.record.is_none() {
            facts.needs_login = None;
        }
    }

    /// Returns foreign text without the tokens that the server was sent: it may repeat them.
    pub fn redact(&self, text: &str) -> String {
        self.redactor().redact(text)
    }

    /// Returns the redactor of the tokens that the server was sent last.
    pub fn redactor(&self) -> Redactor {
        self.keeper.redactor()
    }

    /// Returns the login that the server waits for, if any.
    pub fn login_required(&self) -> Option<LoginRequired> {
        let why = self.keeper.facts().needs_login.clone()?;
        Some(LoginRequired { server: self.keeper.server.clone(), why })
    }

    pub(super) fn keeper(&self) -> &Arc<TokenKeeper> {
        &self.keeper
    }

    /// Checks that another token can be had, and that it may help.
    fn check_renewal(&self) -> Result<(), AuthorizationFailure> {
        let current = self.keeper.current.load();
        let is_machine = self.keeper.settings.load().is_client_credentials();
        let why = match current.as_deref() {
            Some(current) if current.is_last_resort(Moment::now()) => "it refuses each new token",
            _ if self.keeper.can_renew() => {
                self.keeper.facts().is_refused = true;
                return Ok(());
            }
            Some(_) => "it refuses the token, which cannot be refreshed",
            None => "there is no token",
        };
        let mut facts = self.keeper.facts();
        // The reason of a failed refresh says more.
        let failed = facts.needs_login.clone().filter(|_| facts.is_renewal_refused);
        let why = failed.unwrap_or_else(|| why.into());
        facts.needs_login = Some(Arc::clone(&why));
        drop(facts);
        match is_machine {
            true => Err(self.keeper.unavailable(why)),
            false => Err(self.keeper.login_required(why)),
        }
    }

    /// Notes the scopes that a request lacked. A machine can get a token for them by itself.
    fn note_missing_scopes(&self, challenge: BearerChallenge) -> Result<(), AuthorizationFailure> {
        let lacking = challenge.scopes.unwrap_or_default();
        let why: Arc<str> = match lacking.is_empty() {
            true => "the request lacks scopes".into(),
            false => {
                // A server may repeat the token here.
                let lacking = self.keeper.redactor().quote(&lacking.joined());
                format!("the request lacks the scopes `{lacking}`").into()
            }
        };
        let is_machine = self.keeper.settings.load().is_client_credentials();
        let mut facts = self.keeper.facts();
        let requested = facts.record.as_ref().map(|record| record.basis.requested.clone());
        let is_new = !requested.unwrap_or_default().contains_all(&lacking);
        facts.last_error = Some(Arc::clone(&why));
        if !is_machine || is_new {
            facts.lacking = Some(lacking);
        }
        drop(facts);
        match (is_machine, is_new) {
            (true, true) => Ok(()),
            (true, false) => Err(self.keeper.unavailable(why)),
            (false, _) => Err(self.keeper.login_required(why)),
        }
    }

    /// Returns the current token unless it has expired.
    fn usable(&self) -> Option<HeaderValue> {
        let current = self.keeper.current.load();
        let current =
            current.as_ref().filter(|current| !current.schedule.has_expired(Moment::now()));
        current.map(|current| current.header.clone())
    }

    /// Joins the renewal that runs, or starts one unless `ready` has the token.
    fn renew(&self, ready: impl FnOnce() -> Option<HeaderValue>) -> FlightWaiter<RenewalOutcome> {
        let (keeper, stopping) = (Arc::clone(&self.keeper), self.stopping.clone());
        self.renewals.join(&self.tasks, || ready().map(Ok), || keeper.renew(stopping))
    }

    /// Joins the start of a login by another client, or starts one unless one is `waiting`.
    pub(super) fn join_login(
        &self,
        waiting: impl FnOnce() -> Option<LoginStart>,
        start: impl Future<Output = LoginStart> + Send + 'static,
    ) -> FlightWaiter<LoginStart> {
        self.logins.join(&self.tasks, waiting, || start)
    }

    /// Records the failure of a login for operators.
    pub(super) fn note_error(&self, error: &LoginError) {
        self.keeper.facts().last_error = Some(crate::error_report::chain(error).into());
    }

    /// Waits for a renewal that runs.
    pub(super) async fn settle(&self) {
        let nothing = || Some(Err(self.keeper.unavailable("".into())));
        let waiter = self.renewals.join(&self.tasks, nothing, std::future::pending);
        let _its_outcome_is_in_the_keeper = waiter.outcome().await;
    }

    /// Returns the time until the next refresh, or until the next look at one that runs; `None` if
    /// none is planned.
    pub(super) fn next_refresh(&self) -> Option<std::time::Duration> {
        if self.renewals.is_running() {
            return Some(defaults::TOKEN_REFRESH_PAUSES.0);
        }
        if !self.keeper.can_renew() {
            return None;
        }
        let due = self.keeper.current.load().as_ref()?.schedule.due_in(Moment::now())?;
        let pause =
            self.keeper.facts().retry_at.map(|at| at.saturating_duration_since(Instant::now()));
        Some(due.max(pause.unwrap_or_default()))
    }

    /// Starts a refresh if one is due.
    pub(super) fn refresh_if_due(&self) {
        if self.next_refresh().is_some_and(|due| due.is_zero()) {
            drop(self.renew(|| None));
        }
    }

    /// Returns the state of the login. `is_pending` if a person was asked to log in.
    pub(super) fn status(&self, is_pending: bool) -> LoginStatus {
        let is_machine = self.keeper.settings.load().is_client_credentials();
        let facts = self.keeper.facts();
        let record = facts.record.as_deref();
        LoginStatus {
            server: self.keeper.server.clone(),
            kind: match is_machine {
                true => LoginKind::ClientCredentials,
                false => LoginKind::AuthorizationCode,
            },
            state: match record {
                _ if is_pending => LoginState::Pending,
                _ if facts.needs_login.is_some() => LoginState::NeedsLogin,
                Some(_) => LoginState::LoggedIn,
                None => LoginState::NotAsked,
            },
            issuer: record.map(|record| record.basis.issuer.clone()),
            scopes: record.map(|record| record.granted.as_slice().to_vec()).unwrap_or_default(),
            expires: record.and_then(|record| record.issued().checked_add(record.lifetime()?)),
            refreshed: record.map(|record| record.issued()),
            error: facts.last_error.as_deref().or(facts.needs_login.as_deref()).map(str::to_owned),
        }
    }
}

impl std::fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authorizer")
            .field("server", &self.keeper.server)
            .field("has_token", &self.bearer().is_some())
            .finish_non_exhaustive()
    }
}
