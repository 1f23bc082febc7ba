//! The proof that the login which received a code is the one that started. Source: RFC 7636.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use super::secret_text::SecretText;

/// The only method that metamcp uses.
pub(super) const CHALLENGE_METHOD: &str = "S256";

/// The verifier of one login. The authorization server gets its hash first, and itself at the end.
#[derive(Clone, Debug)]
pub(super) struct PkceVerifier(SecretText);

impl PkceVerifier {
    /// Returns a new verifier of 256 random bits.
    pub(super) fn random() -> Self {
        Self(SecretText::random())
    }

    /// Returns a known verifier.
    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        Self(text.to_owned().into())
    }

    /// Returns the verifier itself, for the token request.
    pub(super) fn expose(&self) -> &str {
        self.0.expose()
    }

    /// Returns the challenge for the authorization request.
    pub(super) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.expose()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_the_hash_of_the_verifier() {
        // Source: RFC 7636, appendix B.
        let verifier = PkceVerifier::of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(verifier.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn verifiers_are_random_and_of_legal_length() {
        let (one, other) = (PkceVerifier::random(), PkceVerifier::random());
        assert_ne!(one.expose(), other.expose());
        assert!((43..=128).contains(&one.expose().len()));
    }
}
