//! The lookup of a request's session by the id in the request.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use super::{
    ClientRecord, ClientTransport, ServerScope, Session, SessionKind, SessionRegistry,
    SessionTicket,
};
use crate::{
    call_record::ClientName,
    capacity_holder::Holder,
    config::{SessionMode, defaults},
    connection::SessionOwner,
    protocol::{Era, version},
};

/// The reason why a request has no session although it needs one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionLookupError {
    /// The request has no session id.
    #[error("the request has no session id")]
    Missing,
    /// The id was not issued by metamcp, or the session has ended or expired.
    #[error("the session is unknown, or has ended")]
    Unknown,
}

impl SessionRegistry {
    /// Opens a session for a client that requests protocol version `requested` and declares these
    /// capabilities, JSON text. It belongs to the account of `holder`. Operators see it as `client`.
    pub fn open(
        &self,
        scope: ServerScope,
        requested: Option<&str>,
        capabilities: &str,
        holder: Holder,
        client: Option<Arc<ClientRecord>>,
    ) -> Arc<Session> {
        if self.mode() == SessionMode::Off {
            return Arc::new(Session::new(SessionKind::Anonymous, scope, holder).of_client(client));
        }
        // Capabilities must be an object.
        let capabilities = if capabilities.starts_with('{') { capabilities } else { "{}" };
        let version = version::negotiate(requested);
        let id = self.signer.issue(&SessionTicket::new(unix_now(), version, capabilities));
        self.insert((id.into(), Some(version)), scope, capabilities, holder, client)
    }

    /// Returns the session for `id`, at a view with this scope.
    ///
    /// A session that this process does not know starts with the state in its id, if metamcp issued
    /// that, and belongs to the account of `holder`.
    ///
    /// # Errors
    ///
    /// [`SessionLookupError`] if sessions are strict.
    pub fn find(
        &self,
        id: Option<&str>,
        scope: impl FnOnce() -> ServerScope,
        holder: Holder,
    ) -> Result<Arc<Session>, SessionLookupError> {
        let mode = self.mode();
        let id = match (mode, id) {
            (SessionMode::Off, _) | (SessionMode::Lenient, None) => {
                return Ok(self.sessionless(scope(), holder));
            }
            (SessionMode::Strict, None) => return Err(SessionLookupError::Missing),
            (SessionMode::Lenient | SessionMode::Strict, Some(id)) => id,
        };
        let is_strict = mode == SessionMode::Strict;
        let now = Instant::now();
        if let Some(known) = self.known(id, now)
            && (known.version().is_some() || !is_strict)
        {
            known.touch(now, self.since);
            return Ok(known);
        }
        match self.ticket(id) {
            Some(ticket) if !is_strict || !self.has_ended(&ticket) => {
                let SessionTicket { number: _, issued: _, version, capabilities } = &ticket;
                let session = self.insert(
                    (id.into(), Some(version)),
                    scope(),
                    capabilities,
                    holder,
                    Some(unnamed()),
                );
                // The client may have ended the session meanwhile.
                if is_strict && self.has_ended(&ticket) {
                    self.remove(id);
                    return Err(SessionLookupError::Unknown);
                }
                Ok(session)
            }
            _ if is_strict => Err(SessionLookupError::Unknown),
            _ if is_session_id(id) => {
                Ok(self.insert((id.into(), None), scope(), "{}", holder, Some(unnamed())))
            }
            _ => Ok(self.sessionless(scope(), holder)),
        }
    }

    /// Returns the session of a legacy client over HTTP that names no session.
    fn sessionless(&self, scope: ServerScope, holder: Holder) -> Arc<Session> {
        let client = self.clients.sessionless(holder, ClientName::default(), Era::Legacy);
        Arc::new(Session::new(SessionKind::Anonymous, scope, holder).of_client(Some(client)))
    }

    /// Ends the session `id` at its client's request.
    ///
    /// # Errors
    ///
    /// [`SessionLookupError`] if sessions are strict.
    pub fn delete(&self, id: Option<&str>) -> Result<(), SessionLookupError> {
        let is_strict = self.mode() == SessionMode::Strict;
        match id {
            None if is_strict => Err(SessionLookupError::Missing),
            None => Ok(()),
            Some(id) if self.end(id) || !is_strict => Ok(()),
            Some(_) => Err(SessionLookupError::Unknown),
        }
    }

    /// Ends the session `id`. Returns `false` if it does not exist or has ended.
    pub fn end(&self, id: &str) -> bool {
        if let Some(session) = self.read().get(id) {
            session.touch(Instant::now(), self.since);
        }
        // Before the removal, so that a concurrent request does not restore the session.
        let is_new = self.ticket(id).is_some_and(|ticket| self.remember_ended(&ticket));
        let is_known = self.remove(id);
        is_new || is_known
    }

    /// Returns a session that this process knows and that has not expired.
    fn known(&self, id: &str, now: Instant) -> Option<Arc<Session>> {
        let known = self.read().get(id).cloned()?;
        if self.is_expired(&known, now) {
            tracing::debug!(
                "session expired: its client sent no request within `listen.session_timeout`"
            );
            self.end(id);
            return None;
        }
        Some(known)
    }

    /// Returns the ticket in an id that metamcp issued and that is not too old.
    pub(super) fn ticket(&self, id: &str) -> Option<SessionTicket> {
        let ticket = self.signer.read(id)?;
        // A replica with another clock may issue ids in the future.
        let age = Duration::from_secs(unix_now().saturating_sub(ticket.issued));
        (age <= defaults::SESSION_ID_AGE_MAX).then_some(ticket)
    }

    fn insert(
        &self,
        (id, version): (Arc<str>, Option<&'static str>),
        scope: ServerScope,
        capabilities: &str,
        holder: Holder,
        client: Option<Arc<ClientRecord>>,
    ) -> Arc<Session> {
        let key = self.n_keys.fetch_add(1, Ordering::Relaxed) + 1;
        let owner = SessionOwner::new(key, capabilities);
        let kind = SessionKind::Known { id: Arc::clone(&id), version, owner };
        let session = Session::new(kind, scope, holder).of_client(client);
        session.touch(Instant::now(), self.since);
        let session = Arc::new(session);
        let (session, evicted) = {
            let mut by_id = self.write();
            // Another request may have inserted the same id meanwhile.
            let session = Arc::clone(by_id.entry(id).or_insert(session));
            // The limit on client connections bounds the sessions of running requests and streams.
            let n_ephemeral = self.n_ephemeral.load(Ordering::Relaxed);
            let is_full = by_id.len().saturating_sub(n_ephemeral) > defaults::SESSIONS_MAX;
            let oldest = if is_full { super::registry::oldest(&by_id, &session) } else { None };
            (session, oldest.and_then(|id| by_id.remove(&id)))
        };
        if let Some(evicted) = &evicted {
            tracing::debug!(
                "session dropped to make room for a new one: its client was idle for longest"
            );
            self.close_session(evicted);
        }
        session
    }

    pub(super) fn remove(&self, id: &str) -> bool {
        let forgotten = self.write().remove(id);
        if let Some(session) = &forgotten {
            self.close_session(session);
        }
        forgotten.is_some()
    }
}

/// Returns the record of a client whose handshake was before the start of this process: its name is
/// unknown.
fn unnamed() -> Arc<ClientRecord> {
    Arc::new(ClientRecord::new(ClientName::default(), Era::Legacy, ClientTransport::Http))
}

/// Returns whether an id is valid. Source: MCP, "visible ASCII". The maximum length is metamcp's.
fn is_session_id(id: &str) -> bool {
    (1..=defaults::SESSION_ID_BYTES_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_graphic())
}

fn unix_now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
