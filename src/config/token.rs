//! The token that clients must bring: where it is, `listen.token`, and which addresses need one.

use std::{fmt, net::SocketAddr, path::Path};

use toml::Spanned;

use super::{Listen, Secret, diagnostic::Problem, secret::SecretError};

/// Where the token is: never in the file itself, which others may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenPlace(Secret);

impl TokenPlace {
    /// Reads the value. References lead into the directory `credentials`.
    ///
    /// # Errors
    ///
    /// [`SecretError`] when there is nothing to be read.
    pub fn resolve(&self, credentials: Option<&Path>) -> Result<String, SecretError> {
        self.0.resolve(credentials)
    }

    /// Tells whether it is in the variable `name`.
    pub(super) fn is_variable(&self, name: &str) -> bool {
        matches!(&self.0, Secret::Env(variable) if variable == name)
    }
}

impl fmt::Display for TokenPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // References print as they are written; a literal is none of ours.
        write!(f, "{:?}", self.0)
    }
}

/// How a place is written.
const EXAMPLES: &str =
    "others could read it here: write \"credential:NAME\", or \"env:NAME\" for a variable";

/// Checks `listen.token`.
pub(super) fn checked(token: Option<Spanned<String>>) -> Result<Option<TokenPlace>, Problem> {
    let Some(token) = token else { return Ok(None) };
    let place = token.span();
    let problem = |message: String, help: &str| Err(Problem::at(place, message).help(help));
    match Secret::from(token.into_inner()) {
        Secret::Credential(name) if !Secret::is_credential_name(&name) => problem(
            format!("`credential:{name}` is not a credential name"),
            "write the plain name of a file, as in \"credential:token\"",
        ),
        Secret::Env(name) if name.is_empty() || name.contains(['=', '\0']) => problem(
            "`token` names no variable".to_owned(),
            "write the name of one, as in \"env:METAMCP_TOKEN\"",
        ),
        // Not shown: it may be the token.
        Secret::Literal(_) => problem("`token` is not a reference".to_owned(), EXAMPLES),
        reference @ (Secret::Credential(_) | Secret::Env(_)) => Ok(Some(TokenPlace(reference))),
    }
}

/// Others than this host reach an address, and what keeps them out is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{address}` is not a loopback address, and {} not set", self.lacking())]
pub struct Exposed {
    /// The address.
    pub address: SocketAddr,
    /// `listen.tls` is set.
    pub has_tls: bool,
    /// `listen.token` is set.
    pub has_token: bool,
}

impl Exposed {
    fn lacking(&self) -> &'static str {
        match (self.has_tls, self.has_token) {
            (true, _) => "`listen.token` is",
            (false, true) => "`listen.tls` is",
            (false, false) => "`listen.tls` and `listen.token` are",
        }
    }

    /// What the operator can do about it.
    pub fn hint(&self) -> &'static str {
        "Anyone who reaches the port may run every tool: set both `listen.tls` and `listen.token`, or have `listen.http` and `ListenStream=` of the socket unit name 127.0.0.1."
    }

    /// Returns it as a mistake at `place`.
    pub(super) fn at(self, place: std::ops::Range<usize>) -> Problem {
        Problem::at(place, self.to_string()).help(
            "anyone who reaches the port may run every tool: set both `listen.tls` and `listen.token`, or listen on 127.0.0.1",
        )
    }
}

impl Listen {
    /// Refuses an address that others than this host reach, unless clients there speak TLS and must
    /// bring the token.
    ///
    /// # Errors
    ///
    /// [`Exposed`] says which of the two is missing.
    pub fn may_use(&self, address: SocketAddr) -> Result<(), Exposed> {
        permitted(address, self.tls.is_some(), self.token.is_some())
    }
}

pub(super) fn permitted(
    address: SocketAddr,
    has_tls: bool,
    has_token: bool,
) -> Result<(), Exposed> {
    if address.ip().to_canonical().is_loopback() || has_tls && has_token {
        return Ok(());
    }
    Err(Exposed { address, has_tls, has_token })
}

#[cfg(test)]
mod tests {
    use crate::config::load::tests::{bad, good};

    /// A certificate that nobody looks for.
    const TLS: &str = "tls = { certificate = \"/c\", key = \"/k\" }\n";

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

    #[test]
    fn an_address_that_others_reach_takes_tls_and_a_token() {
        let token = "token = \"env:T\"\n";
        for address in
            ["0.0.0.0:1", "192.0.2.7:1", "[::]:1", "[2001:db8::7]:1", "[::ffff:10.0.0.1]:1"]
        {
            let listen = |more: &str| format!("[listen]\nhttp = {address:?}\n{more}");
            for (more, lacking) in [
                (String::new(), "`listen.tls` and `listen.token` are not set"),
                (TLS.to_owned(), "and `listen.token` is not set"),
                (token.to_owned(), "and `listen.tls` is not set"),
            ] {
                let said = bad(&listen(&more));
                assert!(said.contains(lacking) && said.contains("set both"), "{said}");
            }
            let both = good(&listen(&format!("{TLS}{token}"))).listen;
            assert_eq!(both.http.to_string(), address);
        }
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            good(&format!("[listen]\nhttp = {address:?}\n"));
        }
    }
}
