//! Sessions that last as long as one modern-era request. Their demand on shared servers is combined
//! with that of other sessions, and ends with the request.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use super::{ServerScope, Session, SessionKind, SessionRegistry};
use crate::{
    capacity_holder::Holder,
    connection::SessionOwner,
    pool::{OneShotClient, ServerSlot},
    protocol::LoggingLevel,
};

/// A session that ends when it is dropped.
pub struct EphemeralSession {
    sessions: Arc<SessionRegistry>,
    session: Arc<Session>,
    key: Arc<str>,
}

impl SessionRegistry {
    /// Opens a session without a client id and without calls. Its client wants log messages of this
    /// `level` from the servers in `scope`.
    pub fn open_ephemeral(
        self: &Arc<Self>,
        scope: ServerScope,
        level: Option<LoggingLevel>,
    ) -> EphemeralSession {
        let number = self.n_keys.fetch_add(1, Ordering::Relaxed) + 1;
        // No header value can contain a NUL byte.
        let key: Arc<str> = format!("\0{number}").into();
        let session = Session::new(SessionKind::Ephemeral, scope, Holder::SERVICE);
        if level.is_some() {
            session.memory().level = level;
            self.n_levels.fetch_add(1, Ordering::Relaxed);
        }
        let session = Arc::new(session);
        self.n_ephemeral.fetch_add(1, Ordering::Relaxed);
        self.write().insert(Arc::clone(&key), Arc::clone(&session));
        EphemeralSession { sessions: Arc::clone(self), session, key }
    }

    /// Returns a client with a unique owner and these capabilities, JSON text.
    pub fn one_shot_client(&self, capabilities: &str) -> OneShotClient {
        let key = self.n_keys.fetch_add(1, Ordering::Relaxed) + 1;
        OneShotClient::new(Arc::clone(&self.pool), SessionOwner::new(key, capabilities))
    }

    /// Sends a server the current demand of its clients. Cancel safe: the server still gets the
    /// demand.
    pub async fn reconcile(&self, session: &Session, slot: &ServerSlot) {
        slot.set_demand(session.owner(), || self.client_demand(slot, session)).await;
    }
}

impl EphemeralSession {
    /// Returns the session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }
}

impl Drop for EphemeralSession {
    fn drop(&mut self) {
        self.sessions.remove(&self.key);
        self.sessions.n_ephemeral.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for EphemeralSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EphemeralSession").field("key", &self.key).finish_non_exhaustive()
    }
}
