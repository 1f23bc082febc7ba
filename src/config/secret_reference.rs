//! References to secrets: the location of a token or key.

use std::{fmt, path::Path};

use serde::Deserialize;

use super::{
    SecretValue,
    refusal::{KEY, Refusal},
    secret::{REFERENCE_HELP, SecretError},
};

/// The pattern of a reference.
pub(super) const PATTERN: &str = "^(credential:[^./][^/]*|env:[A-Za-z_][A-Za-z0-9_]*)$";

/// The location of a secret, which is never in the file itself: others may read that.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct SecretReference(SecretValue);

impl SecretReference {
    /// Returns a reference to the credential `name`.
    #[cfg(test)]
    pub(crate) fn credential(name: &str) -> Self {
        Self(SecretValue::Credential(name.to_owned()))
    }

    /// Reads the secret. References to credentials lead into the directory `credentials`.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if it cannot be read.
    pub fn resolve(&self, credentials: Option<&Path>) -> Result<String, SecretError> {
        self.0.resolve(credentials)
    }

    /// Returns whether the secret is in the variable `name`.
    pub(super) fn is_variable(&self, name: &str) -> bool {
        matches!(&self.0, SecretValue::Env(variable) if variable == name)
    }
}

impl fmt::Display for SecretReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A reference prints as written; no literal is read.
        write!(f, "{:?}", self.0)
    }
}

impl TryFrom<String> for SecretReference {
    type Error = Refusal;

    fn try_from(text: String) -> Result<Self, Refusal> {
        match SecretValue::checked(text)? {
            // Not shown: it may be the secret.
            SecretValue::Literal(_) => {
                Err(Refusal::new(format!("`{KEY}` is not a reference"), REFERENCE_HELP))
            }
            reference => Ok(Self(reference)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::load::tests::{bad, good};

    #[test]
    fn a_token_is_a_reference_and_never_a_literal() {
        let place = |text: &str| good(&format!("[listen]\n{text}\n")).listen.token;
        assert_eq!(place(""), None);
        for text in ["credential:token", "env:METAMCP_TOKEN"] {
            let found = place(&format!("token = {text:?}")).expect("a place");
            assert_eq!(found.to_string(), text);
        }
        insta::assert_snapshot!(bad("[listen]\ntoken = \"hunter2-hunter2-hunter2\"\n"), @r#"
        `token` is not a reference
         --> c.toml:2:9
          |
        2 | token = "***********************"
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: write "credential:NAME" or "env:NAME", because other users may read the file
        "#);
        for wrong in ["credential:", "credential:../token", "env:", "env:A=B", "", "CREDENTIAL:a"] {
            let shown = bad(&format!("[listen]\ntoken = {wrong:?}\n"));
            assert!(shown.contains("= help: ") && shown.contains("write "), "{shown}");
        }
    }
}
