//! The kinds of sessions, by client and lifetime.

use std::sync::{Arc, OnceLock};

use super::EphemeralSession;
use crate::{
    connection::SessionOwner,
    protocol::{client_meta::ClientMeta, version},
};

/// The kind of a session.
#[derive(Debug)]
pub(super) enum SessionScope {
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
        introduction: ClientMeta,
        /// The session that keeps server messages for this request coming.
        told: OnceLock<EphemeralSession>,
    },
    /// An internal session that lasts as long as one modern-era request. No client knows its id.
    Passing,
}

impl SessionScope {
    /// Returns the id that the client sends.
    pub(super) fn id(&self) -> Option<&str> {
        match self {
            Self::Known { id, .. } => Some(id),
            Self::Anonymous | Self::Request { .. } | Self::Passing => None,
        }
    }

    /// Returns the protocol version that the client speaks, if it is known.
    pub(super) fn version(&self) -> Option<&'static str> {
        match self {
            Self::Known { version, .. } => *version,
            Self::Request { .. } => Some(version::MODERN),
            Self::Anonymous | Self::Passing => None,
        }
    }

    /// Returns the client as the owner of connections, if metamcp recognises it.
    pub(super) fn owner(&self) -> Option<&SessionOwner> {
        match self {
            Self::Known { owner, .. } => Some(owner),
            Self::Anonymous | Self::Request { .. } | Self::Passing => None,
        }
    }

    /// Returns the client metadata of a modern-era request.
    pub(super) fn introduction(&self) -> Option<&ClientMeta> {
        match self {
            Self::Request { introduction, .. } => Some(introduction),
            Self::Known { .. } | Self::Anonymous | Self::Passing => None,
        }
    }

    /// Returns the capabilities that the client has declared, JSON text. A client without any gets
    /// no questions.
    pub(super) fn capabilities(&self) -> Option<&Arc<str>> {
        match self {
            Self::Known { owner, .. } => Some(&owner.capabilities),
            Self::Request { introduction, .. } => Some(&introduction.capabilities),
            Self::Anonymous | Self::Passing => None,
        }
    }

    /// Returns whether the session ends together with its request, however long that takes.
    pub(super) fn is_ephemeral(&self) -> bool {
        matches!(self, Self::Passing)
    }
}
