//! The client of a request, with the properties that servers learn about it.

use std::sync::Arc;

use super::InputRequired;
use crate::protocol::{
    Era, LoggingLevel, Message, ObjectMembers, capability,
    client_meta::{ClientMeta, TASKS},
    mcp_apps,
    payloads::method,
};

/// The sender of a request.
#[derive(Clone, Debug)]
pub enum ClientEra {
    /// metamcp itself, which answers no requests of servers.
    Metamcp,
    /// A client with a handshake.
    Legacy {
        /// The client's current capabilities, JSON text of an object.
        capabilities: Arc<str>,
        /// The lowest level of the log messages that the client wants.
        level: Option<LoggingLevel>,
    },
    /// A client that describes itself in each request.
    Modern(ClientMeta),
}

impl ClientEra {
    /// Returns the era of the client; `None` for metamcp, which adopts the era of each server.
    pub fn era(&self) -> Option<Era> {
        match self {
            Self::Metamcp => None,
            Self::Legacy { .. } => Some(Era::Legacy),
            Self::Modern(_) => Some(Era::Modern),
        }
    }

    /// Returns the client with the task capability of the modern era added. It declared the support
    /// in the terms of the legacy era.
    pub(super) fn with_tasks(&self) -> Self {
        let Self::Legacy { capabilities, level } = self else { return self.clone() };
        let mut all = ObjectMembers::read(capabilities).unwrap_or_default();
        all.set_in_object("extensions", TASKS, "{}");
        Self::Legacy { capabilities: all.to_string().into(), level: *level }
    }

    /// Returns whether the client has declared all capabilities that `input` requires.
    pub fn can_be_asked(&self, input: &InputRequired) -> bool {
        let Some(declared) = self.capabilities() else { return false };
        input.questions.iter().all(|(_, question)| capability::covers(declared, question))
    }

    /// Returns whether the client has declared that it can show a person an address to open.
    pub fn can_open_urls(&self) -> bool {
        let question = Message::request(method::ELICITATION, Some(r#"{"mode":"url"}"#));
        self.capabilities().is_some_and(|declared| capability::covers(declared, &question))
    }

    /// Returns whether the client shows the pages of tools: see [`mcp_apps`].
    pub fn shows_pages(&self) -> bool {
        self.capabilities().is_none_or(mcp_apps::supports_apps)
    }

    /// Returns the declared capabilities, JSON text of an object; `None` for metamcp.
    fn capabilities(&self) -> Option<&str> {
        match self {
            Self::Metamcp => None,
            Self::Legacy { capabilities, .. } => Some(capabilities),
            Self::Modern(client_meta) => Some(&client_meta.capabilities),
        }
    }
}
