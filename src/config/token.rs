//! The location of the token that clients must send: `listen.token`.

use std::{fmt, path::Path};

use toml::Spanned;

use super::{SecretValue, diagnostic::ConfigProblem, secret::SecretError};

/// The location of the token. It is never in the file itself, which others may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenLocation(SecretValue);

impl TokenLocation {
    /// Reads the token. References to credentials lead into the directory `credentials`.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if it cannot be read.
    pub fn resolve(&self, credentials: Option<&Path>) -> Result<String, SecretError> {
        self.0.resolve(credentials)
    }

    /// Returns whether the token is in the variable `name`.
    pub(super) fn is_variable(&self, name: &str) -> bool {
        matches!(&self.0, SecretValue::Env(variable) if variable == name)
    }
}

impl fmt::Display for TokenLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A reference prints as written; `checked` refuses literals.
        write!(f, "{:?}", self.0)
    }
}

/// The help that shows how to write a location.
const EXAMPLES: &str =
    "others could read it here: write \"credential:NAME\", or \"env:NAME\" for a variable";

/// Checks `listen.token`.
pub(super) fn checked(
    token: Option<Spanned<String>>,
) -> Result<Option<TokenLocation>, ConfigProblem> {
    let Some(token) = token else { return Ok(None) };
    let place = token.span();
    let problem = |message: String, help: &str| Err(ConfigProblem::at(place, message).help(help));
    match SecretValue::from(token.into_inner()) {
        SecretValue::Credential(name) if !SecretValue::is_credential_name(&name) => problem(
            format!("`credential:{name}` is not a credential name"),
            "write the plain name of a file, as in \"credential:token\"",
        ),
        SecretValue::Env(name) if name.is_empty() || name.contains(['=', '\0']) => problem(
            "`token` names no variable".to_owned(),
            "write the name of one, as in \"env:METAMCP_TOKEN\"",
        ),
        // Not shown: it may be the token.
        SecretValue::Literal(_) => problem("`token` is not a reference".to_owned(), EXAMPLES),
        reference @ (SecretValue::Credential(_) | SecretValue::Env(_)) => {
            Ok(Some(TokenLocation(reference)))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::load::tests::{bad, good};

    #[test]
    fn a_token_is_named_and_never_written() {
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
          = help: others could read it here: write "credential:NAME", or "env:NAME" for a variable
        "#);
        for wrong in ["credential:", "credential:../token", "env:", "env:A=B", "", "CREDENTIAL:a"] {
            let said = bad(&format!("[listen]\ntoken = {wrong:?}\n"));
            assert!(said.contains("= help: ") && said.contains("write "), "{said}");
        }
    }
}
