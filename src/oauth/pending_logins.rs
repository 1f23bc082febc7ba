//! The logins that have started.
//!
//! ```text
//!  begin ──▶ waiting ──take──▶ exchanging ──end──▶ ended ──▶ forgotten
//!               └── time over, replaced ───────────▶─┘
//! ```
//!
//! The caller reads the clock.

use std::{collections::HashMap, time::Duration};

use tokio::{sync::watch, time::Instant};

use super::{LoginError, LoginId, PendingLogin, secret_text::SecretText};
use crate::{config::defaults, server_name::ServerName};

/// The time for which the outcome of a login is kept for those that ask late.
const OUTCOME_KEPT: Duration = Duration::from_secs(60);

/// The largest number of logins with their outcomes.
const OUTCOMES_MAX: usize = 4 * defaults::PENDING_LOGINS_MAX;

/// The phase of a login that has started.
#[derive(Clone, Debug)]
pub(super) enum LoginPhase {
    /// A person has yet to agree.
    Waiting,
    /// The answer has arrived, and metamcp gets the tokens.
    Exchanging,
    /// The login is over.
    Ended(Result<(), LoginError>),
}

/// One login that has started, with the secrets `T` that its end needs.
#[derive(Debug)]
struct StartedLogin<T> {
    server: ServerName,
    state: SecretText,
    /// The address that the person opens.
    url: String,
    secrets: Option<T>,
    ends: Instant,
    phase: watch::Sender<LoginPhase>,
}

/// The logins that have started, by id.
#[derive(Debug)]
pub(super) struct PendingLogins<T> {
    logins: HashMap<LoginId, StartedLogin<T>>,
}

impl<T> Default for PendingLogins<T> {
    fn default() -> Self {
        Self { logins: HashMap::new() }
    }
}

impl<T> PendingLogins<T> {
    /// Adds a login at `url`, in place of one at the same server.
    ///
    /// # Errors
    ///
    /// [`LoginError::TooManyLogins`] at the limit.
    pub(super) fn begin(
        &mut self,
        server: &ServerName,
        state: SecretText,
        secrets: T,
        url: String,
        now: Instant,
    ) -> Result<PendingLogin, LoginError> {
        self.replace(server);
        self.sweep(now);
        let n_waiting = self.logins.values().filter(|login| login.secrets.is_some()).count();
        if n_waiting >= defaults::PENDING_LOGINS_MAX {
            return Err(LoginError::TooManyLogins(n_waiting));
        }
        if self.logins.len() >= OUTCOMES_MAX {
            self.logins.retain(|_, login| !matches!(*login.phase.borrow(), LoginPhase::Ended(_)));
        }
        let (id, ends) = (LoginId::random(), now + defaults::LOGIN_TIMEOUT);
        let phase = watch::channel(LoginPhase::Waiting).0;
        let login = StartedLogin {
            server: server.clone(),
            state,
            url,
            secrets: Some(secrets),
            ends,
            phase,
        };
        let begun = login.pending(&id);
        self.logins.insert(id, login);
        Ok(begun)
    }

    /// Takes the secrets of the login with `state`, which works once.
    ///
    /// # Errors
    ///
    /// [`LoginError::UnknownLogin`] if there is no such login, or it is over.
    pub(super) fn take(
        &mut self,
        state: &SecretText,
        now: Instant,
    ) -> Result<(LoginId, T), LoginError> {
        self.sweep(now);
        let found = self.logins.iter_mut().find(|(_, login)| login.state == *state);
        let (id, login) = found.ok_or(LoginError::UnknownLogin)?;
        let secrets = login.secrets.take().ok_or(LoginError::UnknownLogin)?;
        login.phase.send_replace(LoginPhase::Exchanging);
        Ok((id.clone(), secrets))
    }

    /// Records the outcome of a login.
    pub(super) fn end(&mut self, id: &LoginId, outcome: Result<(), LoginError>) {
        if let Some(login) = self.logins.get_mut(id) {
            login.end(outcome);
        }
    }

    /// Ends the login that waits at a server.
    pub(super) fn replace(&mut self, server: &ServerName) {
        for login in self.logins.values_mut().filter(|login| login.server == *server) {
            if login.secrets.take().is_some() {
                login.end(Err(LoginError::Replaced(server.clone())));
            }
        }
    }

    /// Returns the phase of a login, and the time at which it ends without an answer.
    pub(super) fn watch(&self, id: &LoginId) -> Option<(watch::Receiver<LoginPhase>, Instant)> {
        self.logins.get(id).map(|login| (login.phase.subscribe(), login.ends))
    }

    /// Returns the phases of the logins at a server for which metamcp gets the tokens.
    pub(super) fn exchanging(&self, server: &ServerName) -> Vec<watch::Receiver<LoginPhase>> {
        let at_server = self.logins.values().filter(|login| login.server == *server);
        let phases = at_server.map(|login| login.phase.subscribe());
        phases.filter(|phase| matches!(*phase.borrow(), LoginPhase::Exchanging)).collect()
    }

    /// Returns the login that waits at a server.
    pub(super) fn waiting(&self, server: &ServerName, now: Instant) -> Option<PendingLogin> {
        let is_waiting = |login: &StartedLogin<T>| {
            login.server == *server && login.secrets.is_some() && now < login.ends
        };
        let (id, login) = self.logins.iter().find(|(_, login)| is_waiting(login))?;
        Some(login.pending(id))
    }

    /// Returns whether a login waits at a server.
    pub(super) fn is_waiting(&self, server: &ServerName, now: Instant) -> bool {
        self.waiting(server, now).is_some()
    }

    /// Ends the logins whose time is over, and forgets those that ended a while ago.
    pub(super) fn sweep(&mut self, now: Instant) {
        self.logins.retain(|_, login| {
            if now >= login.ends && login.secrets.take().is_some() {
                login.end(Err(LoginError::Expired(login.server.clone())));
            }
            now < login.ends + OUTCOME_KEPT
        });
    }

    /// Returns the next time at which a login ends without an answer.
    pub(super) fn next_end(&self) -> Option<Instant> {
        let waiting = self.logins.values().filter(|login| login.secrets.is_some());
        waiting.map(|login| login.ends).min()
    }
}

impl<T> StartedLogin<T> {
    fn pending(&self, id: &LoginId) -> PendingLogin {
        let (server, url) = (self.server.clone(), self.url.clone());
        PendingLogin { id: id.clone(), server, url, ends: self.ends }
    }

    fn end(&mut self, outcome: Result<(), LoginError>) {
        self.phase.send_replace(LoginPhase::Ended(outcome));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str) -> ServerName {
        ServerName::new(name).expect("a name")
    }

    fn url() -> String {
        "https://as.example.com/authorize".to_owned()
    }

    fn state(text: &str) -> SecretText {
        text.to_owned().into()
    }

    fn outcome<T>(logins: &PendingLogins<T>, id: &LoginId) -> Option<&'static str> {
        let (phase, _) = logins.watch(id)?;
        let phase = phase.borrow();
        match &*phase {
            LoginPhase::Waiting => Some("waiting"),
            LoginPhase::Exchanging => Some("exchanging"),
            LoginPhase::Ended(Ok(())) => Some("done"),
            LoginPhase::Ended(Err(error)) => Some(error.code()),
        }
    }

    #[test]
    fn a_login_is_finished_once() {
        let (mut logins, now) = (PendingLogins::default(), Instant::now());
        let id = logins.begin(&server("git"), state("s"), 7, url(), now).expect("begun").id;
        assert_eq!(logins.take(&state("other"), now).expect_err("unknown").code(), "LOGIN_UNKNOWN");
        assert_eq!(logins.take(&state("s"), now).expect("known"), (id.clone(), 7));
        assert_eq!(outcome(&logins, &id), Some("exchanging"));
        assert_eq!(logins.take(&state("s"), now).expect_err("used").code(), "LOGIN_UNKNOWN");
        logins.end(&id, Ok(()));
        assert_eq!(outcome(&logins, &id), Some("done"));
        logins.sweep(now + defaults::LOGIN_TIMEOUT + OUTCOME_KEPT);
        assert_eq!(outcome(&logins, &id), None);
    }

    #[test]
    fn a_login_ends_after_ten_minutes() {
        let (mut logins, now) = (PendingLogins::default(), Instant::now());
        let begun = logins.begin(&server("git"), state("s"), (), url(), now).expect("begun");
        let (id, ends) = (begun.id, begun.ends);
        assert_eq!((ends - now, logins.next_end()), (Duration::from_secs(600), Some(ends)));
        assert_eq!(logins.take(&state("s"), ends).expect_err("late").code(), "LOGIN_UNKNOWN");
        assert_eq!(outcome(&logins, &id), Some("LOGIN_EXPIRED"));
        assert_eq!(logins.next_end(), None);
    }

    #[test]
    fn a_second_login_at_a_server_replaces_the_first() {
        let (mut logins, now) = (PendingLogins::default(), Instant::now());
        let first = logins.begin(&server("git"), state("1"), (), url(), now).expect("begun").id;
        let other = logins.begin(&server("web"), state("2"), (), url(), now).expect("begun").id;
        let second = logins.begin(&server("git"), state("3"), (), url(), now).expect("begun").id;
        assert_eq!(outcome(&logins, &first), Some("LOGIN_REPLACED"));
        assert_eq!(logins.take(&state("1"), now).expect_err("replaced").code(), "LOGIN_UNKNOWN");
        assert_eq!(outcome(&logins, &other), Some("waiting"));
        assert_eq!(logins.take(&state("3"), now).expect("current").0, second);
    }

    #[test]
    fn the_number_of_logins_is_limited() {
        let (mut logins, now) = (PendingLogins::default(), Instant::now());
        for n in 0..defaults::PENDING_LOGINS_MAX {
            logins
                .begin(&server(&format!("s{n}")), state(&n.to_string()), (), url(), now)
                .expect("room");
        }
        let refused =
            logins.begin(&server("more"), state("x"), (), url(), now).expect_err("no room");
        assert_eq!(refused.code(), "TOO_MANY_LOGINS");
        logins
            .begin(&server("more"), state("x"), (), url(), now + defaults::LOGIN_TIMEOUT)
            .expect("room");
    }
}
