//! The client of a request, as far as its server is told about it.

use std::sync::Arc;

use crate::protocol::{Era, Level, modern::Introduction};

/// Who asks.
#[derive(Clone, Debug)]
pub enum Client {
    /// We do, of our own accord: nobody can be asked anything.
    Ourselves,
    /// A client that has shaken hands.
    Legacy {
        /// What it can be asked for now, JSON text of an object.
        capabilities: Arc<str>,
        /// The least grave log messages that it wants.
        level: Option<Level>,
    },
    /// A client that introduces itself with each request.
    Modern(Introduction),
}

impl Client {
    /// Returns the era in which it speaks. We speak every server's own.
    pub fn era(&self) -> Option<Era> {
        match self {
            Self::Ourselves => None,
            Self::Legacy { .. } => Some(Era::Legacy),
            Self::Modern(_) => Some(Era::Modern),
        }
    }
}
