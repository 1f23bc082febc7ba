//! Texts that have a vector, and how they are told apart. Pure.

use std::{fmt, sync::Arc};

use sha2::{Digest as _, Sha256};

use crate::{config::defaults, redact::cut};

/// A text, with what it is known by.
#[derive(Clone, PartialEq, Eq)]
pub struct EmbeddingText {
    text: Arc<str>,
    digest: TextDigest,
}

/// A hash over a text, to tell it from any other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TextDigest(pub(super) [u8; TextDigest::BYTES]);

impl EmbeddingText {
    /// Returns `text` without what is beyond the length that models take in.
    pub fn new(text: &str) -> Self {
        let text = cut(text.trim(), defaults::EMBEDDING_TEXT_BYTES_MAX);
        Self { digest: TextDigest::of(&[text.as_bytes()]), text: text.into() }
    }

    /// Returns the text as it is sent.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns what it is known by.
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

    /// Returns that of several parts, which are told apart.
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
