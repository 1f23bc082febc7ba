//! The client of a request, as far as its server is told about it.

use std::sync::Arc;

use super::InputRequired;
use crate::protocol::{
    Era, LoggingLevel, ObjectMembers, apps, capability,
    client_meta::{ClientMeta, TASKS},
};

/// Who asks.
#[derive(Clone, Debug)]
pub enum ClientEra {
    /// We do, of our own accord: nobody can be asked anything.
    Ourselves,
    /// A client that has shaken hands.
    Legacy {
        /// What it can be asked for now, JSON text of an object.
        capabilities: Arc<str>,
        /// The least grave log messages that it wants.
        level: Option<LoggingLevel>,
    },
    /// A client that introduces itself with each request.
    Modern(ClientMeta),
}

impl ClientEra {
    /// Returns the era in which it speaks. We speak every server's own.
    pub fn era(&self) -> Option<Era> {
        match self {
            Self::Ourselves => None,
            Self::Legacy { .. } => Some(Era::Legacy),
            Self::Modern(_) => Some(Era::Modern),
        }
    }

    /// Returns the same, as one that takes tasks of the modern era: it has said so in the words of
    /// its own.
    pub(super) fn with_tasks(&self) -> Self {
        let Self::Legacy { capabilities, level } = self else { return self.clone() };
        let mut all = ObjectMembers::read(capabilities).unwrap_or_default();
        all.set_in_object("extensions", TASKS, "{}");
        Self::Legacy { capabilities: all.to_string().into(), level: *level }
    }

    /// Tells whether it has declared all that is asked of it.
    pub fn can_be_asked(&self, input: &InputRequired) -> bool {
        let Some(declared) = self.capabilities() else { return false };
        input.questions.iter().all(|(_, question)| capability::covers(declared, question))
    }

    /// Tells whether it shows the pages of tools: see [`apps`].
    pub fn shows_pages(&self) -> bool {
        self.capabilities().is_none_or(apps::takes_apps)
    }

    /// Returns what it has declared, JSON text of an object; `None` for ourselves.
    fn capabilities(&self) -> Option<&str> {
        match self {
            Self::Ourselves => None,
            Self::Legacy { capabilities, .. } => Some(capabilities),
            Self::Modern(introduction) => Some(&introduction.capabilities),
        }
    }
}
