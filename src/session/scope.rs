//! Whose session it is, and for how long.

use std::sync::{Arc, OnceLock};

use super::EphemeralSession;
use crate::{
    connection::SessionOwner,
    protocol::{client_meta::ClientMeta, version},
};

/// Whose session it is.
#[derive(Debug)]
pub(super) enum SessionScope {
    /// That of a client that sends an id.
    Known {
        /// The id.
        id: Arc<str>,
        /// The protocol version that was negotiated; absent where the id is none of ours.
        version: Option<&'static str>,
        /// The client as the owner of connections.
        owner: SessionOwner,
    },
    /// That of a client that cannot be told from others, for one request.
    Anonymous,
    /// That of one request of the modern era.
    Request {
        /// What the client has said with it.
        introduction: ClientMeta,
        /// What keeps a server telling what the request wants to know.
        told: OnceLock<EphemeralSession>,
    },
    /// One that lasts as long as a request of the modern era, and that nobody knows the id of.
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

    /// Returns the protocol version in which the client speaks, where that is known.
    pub(super) fn version(&self) -> Option<&'static str> {
        match self {
            Self::Known { version, .. } => *version,
            Self::Request { .. } => Some(version::MODERN),
            Self::Anonymous | Self::Passing => None,
        }
    }

    /// Returns the client as the owner of connections, if it can be told from others.
    pub(super) fn owner(&self) -> Option<&SessionOwner> {
        match self {
            Self::Known { owner, .. } => Some(owner),
            Self::Anonymous | Self::Request { .. } | Self::Passing => None,
        }
    }

    /// Returns what a client of the modern era has said with its request.
    pub(super) fn introduction(&self) -> Option<&ClientMeta> {
        match self {
            Self::Request { introduction, .. } => Some(introduction),
            Self::Known { .. } | Self::Anonymous | Self::Passing => None,
        }
    }

    /// Returns the capabilities that the client has declared, JSON text; without any, it cannot be
    /// asked anything.
    pub(super) fn capabilities(&self) -> Option<&Arc<str>> {
        match self {
            Self::Known { owner, .. } => Some(&owner.capabilities),
            Self::Request { introduction, .. } => Some(&introduction.capabilities),
            Self::Anonymous | Self::Passing => None,
        }
    }

    /// Tells whether it ends with the request that it is for, however long that takes.
    pub(super) fn is_ephemeral(&self) -> bool {
        matches!(self, Self::Passing)
    }
}
