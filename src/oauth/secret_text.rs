//! A text that is secret.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize, Serializer};
use zeroize::Zeroizing;

/// A text that is secret: a token, code, verifier or password. It is cleared from memory when
/// dropped, and never printed.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(super) struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Returns the text itself, for a request or a private file.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// Returns a text of 256 random bits that fits into a URL.
    pub(super) fn random() -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(bytes.as_mut_slice()).expect("a system without randomness runs no service");
        URL_SAFE_NO_PAD.encode(bytes.as_slice()).into()
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl Serialize for SecretText {
    /// Writes the text itself: only files of the token store are written with it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.expose())
    }
}
