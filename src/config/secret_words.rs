//! The words that look like secrets, from a file that `nix/secret-lookalikes.nix` reads too.

use std::sync::LazyLock;

use serde::Deserialize;

/// The words that look like secrets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretWords {
    /// The parts of names whose values are secret, even if they are ordinary words.
    pub certain_parts: Vec<String>,
    /// The parts of names whose values may be secret.
    pub name_parts: Vec<String>,
    /// The whole words of names whose values may be secret.
    pub name_words: Vec<String>,
    /// The prefixes of tokens that well-known issuers use.
    pub token_prefixes: Vec<String>,
}

/// The words of this version.
pub static SECRET_WORDS: LazyLock<SecretWords> = LazyLock::new(|| {
    serde_json::from_str(include_str!("secret_words.json")).expect("a file of this crate")
});
