//! The bearer token that clients must send, from its source to its comparison.
//!
//! The token itself is not kept: [`BearerToken`] is a keyed hash, which is useless to an attacker.
//! [`CurrentToken`] holds the required token, so that a new one needs only a reload.

use std::{
    fmt,
    path::Path,
    sync::{Arc, LazyLock},
};

use arc_swap::ArcSwapOption;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::config::{SecretReference, defaults, secret::SecretError};

/// The HMAC with a random key of this process; without the key, a tag reveals nothing.
static KEYED_HMAC: LazyLock<Hmac<Sha256>> = LazyLock::new(|| {
    let mut key = [0; TAG_BYTES];
    getrandom::fill(&mut key).expect("a system without randomness runs no service");
    Hmac::new_from_slice(&key).expect("a key may have any length")
});

const TAG_BYTES: usize = 32;

/// The reason why the token is unusable. Never holds the content.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The token cannot be read.
    #[error("cannot read `listen.token`")]
    Reference(#[source] SecretError),
    /// The token is short enough to be guessed.
    #[error(
        "the client token `{location}` has {n_bytes} characters and needs at least {}",
        defaults::TOKEN_BYTES_MIN
    )]
    TooShort {
        /// The location of the token.
        location: SecretReference,
        /// The number of characters it has.
        n_bytes: usize,
    },
    /// The token is longer than a client could send.
    #[error("the client token `{location}` has more than {} characters", defaults::TOKEN_BYTES_MAX)]
    TooLong {
        /// The location of the token.
        location: SecretReference,
    },
    /// The token has a character that no client could send.
    #[error("the client token `{location}` has a character that is not printable ASCII")]
    Unprintable {
        /// The location of the token.
        location: SecretReference,
    },
}

impl TokenError {
    /// Returns the remedy for the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Reference(error) => error.hint(),
            Self::TooShort { .. } | Self::TooLong { .. } | Self::Unprintable { .. } => {
                "Generate a token with `openssl rand -hex 32`: it is one line without spaces."
            }
        }
    }
}

/// The text that distinguishes the tag of the cookie from that of a token.
const PAGE_COOKIE: &[u8] = b"the page of the service";

/// The tag of a token, which suffices to recognize it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BearerToken([u8; TAG_BYTES]);

impl BearerToken {
    /// Reads the configured token; `None` if none is configured.
    ///
    /// # Errors
    ///
    /// [`TokenError`] names the location and the mistake.
    pub fn load_configured(
        location: Option<&SecretReference>,
        credentials: Option<&Path>,
    ) -> Result<Option<Self>, TokenError> {
        let Some(location) = location else { return Ok(None) };
        let text = location.resolve(credentials).map_err(TokenError::Reference)?;
        let location = || location.clone();
        match text.len() {
            n_bytes if n_bytes > defaults::TOKEN_BYTES_MAX => {
                Err(TokenError::TooLong { location: location() })
            }
            _ if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err(TokenError::Unprintable { location: location() })
            }
            n_bytes if n_bytes < defaults::TOKEN_BYTES_MIN => {
                Err(TokenError::TooShort { location: location(), n_bytes })
            }
            _ => {
                Ok(Some(Self(KEYED_HMAC.clone().chain_update(text).finalize().into_bytes().into())))
            }
        }
    }

    /// Returns whether a client sent this token, in a time that reveals nothing about its content.
    pub fn matches(&self, sent: &[u8]) -> bool {
        sent.len() <= defaults::TOKEN_BYTES_MAX
            && KEYED_HMAC.clone().chain_update(sent).verify_slice(&self.0).is_ok()
    }

    /// Returns the value of the cookie that opens the page of the service, until the service starts
    /// again or has another token. The token does not follow from it.
    pub fn page_cookie(&self) -> String {
        let tag = KEYED_HMAC.clone().chain_update(PAGE_COOKIE).chain_update(self.0).finalize();
        tag.into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns whether a browser sent this cookie, in a time that reveals nothing about its value.
    pub fn matches_page_cookie(&self, sent: &str) -> bool {
        let expected = KEYED_HMAC.clone().chain_update(self.page_cookie()).finalize().into_bytes();
        KEYED_HMAC.clone().chain_update(sent).verify(&expected).is_ok()
    }

    /// Returns a number that identifies the token within this process without revealing it.
    pub fn fingerprint(&self) -> u64 {
        self.0.first_chunk().map_or(0, |first| u64::from_ne_bytes(*first))
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken")
    }
}

/// The token that clients must send from now on, if any.
#[derive(Debug, Default)]
pub struct CurrentToken(ArcSwapOption<BearerToken>);

impl CurrentToken {
    /// Creates the cell with `token`.
    pub fn new(token: Option<BearerToken>) -> Self {
        Self(ArcSwapOption::from_pointee(token))
    }

    /// Returns the token that a new request must have.
    pub fn get(&self) -> Option<BearerToken> {
        self.0.load().as_deref().copied()
    }

    /// Requires `token` from now on, and returns whether it differs from the previous one.
    pub fn replace(&self, token: Option<BearerToken>) -> bool {
        self.0.swap(token.map(Arc::new)).as_deref().copied() != token
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::parsed;

    /// Loads a token from a credential with this content.
    fn read(content: &[u8]) -> Result<BearerToken, TokenError> {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("t"), content).expect("written");
        let location = parsed("[listen]\ntoken = \"credential:t\"\n").listen.token;
        let token = BearerToken::load_configured(location.as_ref(), Some(directory.path()))?;
        Ok(token.expect("one is asked for"))
    }

    #[test]
    fn a_token_matches_only_as_a_whole() {
        let token = read(b"0123456789abcdef\n").expect("long enough");
        assert!(token.matches(b"0123456789abcdef"));
        for sent in [&b""[..], b"0123456789abcde", b"0123456789abcdef ", b"0123456789abcdeF"] {
            assert!(!token.matches(sent), "{sent:?}");
        }
        assert!(!token.matches(&[b'a'; defaults::TOKEN_BYTES_MAX + 1]));
        assert_eq!(format!("{token:?}"), "BearerToken");
        assert!(BearerToken::load_configured(None, None).expect("nothing to read").is_none());
    }

    #[test]
    fn a_guessable_or_unsendable_token_is_refused_without_being_quoted() {
        let longest = [b'a'; defaults::TOKEN_BYTES_MAX];
        assert!(read(&longest).expect("not too long").matches(&longest));
        for (content, expected) in [
            (
                &b"hunter2"[..],
                "the client token `credential:t` has 7 characters and needs at least 16",
            ),
            (b"", "has 0 characters"),
            (b"hunter2 hunter2 hunter2", "has a character that is not printable"),
            (b"hunter2hunter2hunter2\r\n", "has a character that is not printable"),
            (b"hunter2hunter2hunter2\n\n", "has a character that is not printable"),
            ("hunter2hunter2hünter2".as_bytes(), "has a character that is not printable"),
            (&[b'a'; defaults::TOKEN_BYTES_MAX + 1], "has more than 4096 characters"),
            (b"\xff\xffhunter2hunter2hunter2", "read `listen.token`"),
        ] {
            let error = read(content).expect_err(expected);
            let text = crate::error_report::chain(&error);
            assert!(text.contains(expected), "{text}");
            assert!(!text.contains("hunter2") && !format!("{error:?}").contains("hunter2"));
            assert!(error.hint().ends_with('.'));
        }
    }

    #[test]
    fn replacing_the_token_reports_whether_it_differs() {
        let (one, other) = (read(b"0123456789abcdef"), read(b"0123456789abcdeg"));
        let (one, other) = (one.expect("good"), other.expect("good"));
        let current = CurrentToken::new(Some(one));
        assert!(!current.replace(read(b"0123456789abcdef").ok()));
        assert!(current.replace(Some(other)) && current.get() == Some(other));
        assert!(current.replace(None) && current.get().is_none());
    }
}
