//! The cursors of searches: the position of the next page, and the question it belongs to.
//!
//! A cursor is valid only for the same question to the same catalog. In another list, the same
//! position is another item, so a client would miss items or see them twice. Its text is opaque.
//!
//! Pure.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use crate::protocol::{RpcError, rpc_error::INVALID_PARAMS};

/// The question that a cursor is valid for, as a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorScope(u64);

/// The reason that a cursor is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// metamcp did not create it.
    #[error("metamcp did not issue it")]
    Broken,
    /// It belongs to another request.
    #[error("it belongs to a request with other arguments")]
    Foreign,
    /// Its list has changed since.
    #[error("the tools have changed since metamcp issued it")]
    Stale,
    /// Its result is no longer kept.
    #[error("its result has expired")]
    Expired,
}

impl CursorError {
    /// Returns the remedy for the caller.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Broken => "Copy `nextCursor` exactly, or leave `cursor` out to start again.",
            Self::Foreign => {
                "Repeat the other arguments unchanged, or leave `cursor` out to start again."
            }
            Self::Stale => "Leave `cursor` out and search again.",
            Self::Expired => "Leave `cursor` out and call the tool again.",
        }
    }

    /// Returns the error as a client sees it.
    pub fn to_rpc(self) -> RpcError {
        RpcError::new(INVALID_PARAMS, "INVALID_CURSOR", format!("invalid cursor: {self}"))
            .suggest(self.hint())
    }
}

impl CursorScope {
    /// Returns the scope of a question; `parts` must include all that the answer depends on.
    pub fn new(parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            // Without the length, different lists of parts could have one hash.
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        let mut digest = [0; 8];
        digest.copy_from_slice(&hash.finalize()[..8]);
        Self(u64::from_le_bytes(digest))
    }

    /// Returns the cursor of the page that begins at `offset` in the catalog `generation`.
    pub fn cursor(self, generation: u64, offset: usize) -> String {
        let text = format!("{generation:x}.{offset:x}.{:x}", self.0);
        BASE64_URL_SAFE_NO_PAD.encode(text)
    }

    /// Returns the offset of the page that `cursor` leads to.
    ///
    /// # Errors
    ///
    /// [`CursorError`] if it is invalid, or of another question or another `generation`.
    pub fn offset(self, generation: u64, cursor: &str) -> Result<usize, CursorError> {
        let (issued_in, offset, scope) = read(cursor).ok_or(CursorError::Broken)?;
        if scope != self.0 {
            return Err(CursorError::Foreign);
        }
        if issued_in != generation {
            return Err(CursorError::Stale);
        }
        usize::try_from(offset).map_err(|_| CursorError::Broken)
    }
}

fn read(cursor: &str) -> Option<(u64, u64, u64)> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let mut parts = text.split('.').map(|part| u64::from_str_radix(part, 16).ok());
    let found = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cursor_is_valid_only_for_its_question_and_its_catalog() {
        let question = CursorScope::new(&["log", "git"]);
        let cursor = question.cursor(7, 20);
        assert_eq!(question.offset(7, &cursor), Ok(20));
        assert_eq!(question.offset(8, &cursor), Err(CursorError::Stale));
        for other in [&["log"][..], &["lo", "ggit"], &["log", "git", ""], &["git", "log"]] {
            assert_eq!(CursorScope::new(other).offset(7, &cursor), Err(CursorError::Foreign));
        }
        let three_parts = BASE64_URL_SAFE_NO_PAD.encode("1.2.3.4");
        for odd in ["", "20", "x", &cursor[1..], &three_parts, &format!("{cursor}=")] {
            assert!(question.offset(7, odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn an_invalid_cursor_has_a_remedy() {
        let all =
            [CursorError::Broken, CursorError::Foreign, CursorError::Stale, CursorError::Expired];
        for error in all {
            let error = error.to_rpc();
            assert_eq!((error.code, error.name), (INVALID_PARAMS, "INVALID_CURSOR"));
            assert!(error.message.starts_with("invalid cursor"), "{}", error.message);
            assert!(error.suggestion.is_some_and(|hint| hint.contains("cursor")));
        }
    }

    proptest! {
        #[test]
        fn a_cursor_returns_its_offset(generation: u64, offset: u32, part in ".{0,20}") {
            let question = CursorScope::new(&[&part]);
            let cursor = question.cursor(generation, offset as usize);
            prop_assert_eq!(question.offset(generation, &cursor), Ok(offset as usize));
        }

        #[test]
        fn any_other_text_is_an_invalid_cursor(text in ".{0,40}") {
            prop_assert!(CursorScope::new(&[]).offset(0, &text).is_err());
        }
    }
}
