//! Whose connection it is.

use std::sync::Arc;

/// A client that can have connections of its own.
#[derive(Clone, Debug)]
pub struct Owner {
    /// Tells clients apart for as long as the service runs.
    pub key: u64,
    /// The capabilities that it declared, as JSON text.
    pub capabilities: Arc<str>,
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
