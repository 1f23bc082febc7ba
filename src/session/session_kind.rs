//! The kinds of sessions, by client and lifetime.

use std::sync::{Arc, OnceLock};

use super::{EphemeralSession, Session};
use crate::{
    connection::SessionOwner,
    pool::OneShotClient,
    protocol::{client_meta::ClientMeta, version},
};

#[derive(Debug)]
pub(super) enum SessionKind {
    /// The session of a client that sends an id.
    Known {
        /// The id.
        id: Arc<str>,
        /// The negotiated protocol version, or `None` if metamcp did not issue the id.
        version: Option<&'static str>,
        /// The client as the owner of connections.
        owner: SessionOwner,
    },
    /// The session of a client that metamcp cannot recognise, for one request.
    Anonymous,
    /// The session of one modern-era request.
    Request {
        /// The client metadata of the request.
        client_meta: ClientMeta,
        /// The session that keeps server messages for this request coming.
        ephemeral: OnceLock<EphemeralSession>,
    },
    /// The session of a client that makes several requests and then ends. At a server with a
    /// connection per client, they share one.
    OneShot(OneShotClient),
    /// An internal session that lasts as long as one modern-era request. No client knows its id.
    Ephemeral,
}

impl Session {
    /// Returns the id that the client sends.
    pub fn id(&self) -> Option<&str> {
        let SessionKind::Known { id, .. } = &self.kind else { return None };
        Some(id)
    }

    /// Returns the protocol version that the client speaks, if it is known.
    pub fn version(&self) -> Option<&'static str> {
        match &self.kind {
            SessionKind::Known { version, .. } => *version,
            SessionKind::Request { .. } => Some(version::MODERN),
            SessionKind::Anonymous | SessionKind::OneShot(_) | SessionKind::Ephemeral => None,
        }
    }

    /// Returns the client as the owner of connections, if metamcp recognises it.
    pub fn owner(&self) -> Option<&SessionOwner> {
        match &self.kind {
            SessionKind::Known { owner, .. } => Some(owner),
            SessionKind::OneShot(client) => Some(client.owner()),
            SessionKind::Anonymous | SessionKind::Request { .. } | SessionKind::Ephemeral => None,
        }
    }

    /// Returns the client metadata of a modern-era request.
    pub fn client_meta(&self) -> Option<&ClientMeta> {
        let SessionKind::Request { client_meta, .. } = &self.kind else { return None };
        Some(client_meta)
    }

    /// Returns the capabilities that the client has declared, JSON text. A client without any gets
    /// no questions.
    pub(super) fn capabilities(&self) -> Option<&Arc<str>> {
        match &self.kind {
            SessionKind::Known { owner, .. } => Some(&owner.capabilities),
            SessionKind::Request { client_meta, .. } => Some(&client_meta.capabilities),
            SessionKind::Anonymous | SessionKind::OneShot(_) | SessionKind::Ephemeral => None,
        }
    }

    /// Returns whether the session ends together with its request, however long that takes.
    pub(super) fn is_ephemeral(&self) -> bool {
        matches!(self.kind, SessionKind::Ephemeral)
    }
}
