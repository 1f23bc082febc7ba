//! Texts that have a vector, and their hashes. Pure.

use std::{fmt, sync::Arc};

use sha2::{Digest as _, Sha256};

use crate::{config::defaults, redact::cut};

/// A text with its hash.
#[derive(Clone, PartialEq, Eq)]
pub struct EmbeddingText {
    text: Arc<str>,
    digest: TextDigest,
}

/// A hash that identifies a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TextDigest(pub(super) [u8; TextDigest::BYTES]);

impl EmbeddingText {
    /// Returns `text`, trimmed and cut to the length that models accept.
    pub fn new(text: &str) -> Self {
        let text = cut(text.trim(), defaults::EMBEDDING_TEXT_BYTES_MAX);
        Self { digest: TextDigest::of(&[text.as_bytes()]), text: text.into() }
    }

    /// Returns the text as it is sent.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn digest(&self) -> TextDigest {
        self.digest
    }
}

impl fmt::Debug for EmbeddingText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

impl TextDigest {
    pub(super) const BYTES: usize = 32;

    /// Returns the hash of several parts. Other boundaries give another hash.
    pub(super) fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Debug for TextDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..4].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
