//! The visitor of values that are texts.

use std::fmt;

use serde::de::{Error, Visitor};

/// Reads a text with `parse`; `expected` describes it.
pub(super) struct TextVisitor<T, E> {
    pub(super) expected: &'static str,
    pub(super) parse: fn(&str) -> Result<T, E>,
}

impl<T, E: fmt::Display> Visitor<'_> for TextVisitor<T, E> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<X: Error>(self, text: &str) -> Result<T, X> {
        (self.parse)(text).map_err(X::custom)
    }
}
