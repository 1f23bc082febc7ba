//! The refusal of one value of the configuration.

use std::fmt;

/// Stands in a message for the key of the refused value, which only the text of the file names.
pub(super) const KEY: &str = "\u{1}";

/// Precedes each part of a refusal that serde carries as its message.
const PART: char = '\u{2}';

/// A mistake in one value, and its remedy. Serde adds the place.
#[derive(Debug)]
pub struct Refusal {
    /// The description of the mistake.
    pub(super) message: String,
    /// The remedy.
    pub(super) help: String,
}

impl Refusal {
    pub(super) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into() }
    }

    /// Reads a refusal from the message of serde; `key` returns the key of the value.
    pub(super) fn from_serde(message: &str, key: impl Fn() -> String) -> Option<Self> {
        let (message, help) = message.strip_prefix(PART)?.rsplit_once(PART)?;
        let message =
            if message.contains(KEY) { message.replace(KEY, &key()) } else { message.into() };
        Some(Self::new(message, help))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PART}{}{PART}{}", self.message, self.help)
    }
}
