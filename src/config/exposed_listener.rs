//! The rule for listen addresses: only this host reaches them, or a token and TLS protect them.

use std::net::SocketAddr;

use super::{ListenConfig, diagnostic::ConfigProblem};

/// The error for an address that other hosts reach without TLS and a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{address}` is not a loopback address, and {} not set", self.lacking())]
pub struct ExposedListener {
    /// The address.
    pub address: SocketAddr,
    /// `true` if `listen.tls` is set.
    pub has_tls: bool,
    /// `true` if `listen.token` is set.
    pub has_token: bool,
}

impl ExposedListener {
    fn lacking(&self) -> &'static str {
        match (self.has_tls, self.has_token) {
            (true, _) => "`listen.token` is",
            (false, true) => "`listen.tls` is",
            (false, false) => "`listen.tls` and `listen.token` are",
        }
    }

    /// Returns the remedy for the operator.
    pub fn hint(&self) -> &'static str {
        "Set both `listen.tls` and `listen.token`, or write 127.0.0.1 in `listen.http` and in `ListenStream=` of the socket unit. Otherwise everyone who reaches the port may run every tool."
    }

    /// Returns the error as a mistake at `place`.
    pub(super) fn at(self, place: std::ops::Range<usize>) -> ConfigProblem {
        ConfigProblem::at(place, self.to_string()).help(
            "set both `listen.tls` and `listen.token`, or listen on 127.0.0.1: everyone who reaches the port may run every tool",
        )
    }
}

impl ListenConfig {
    /// Refuses an address that other hosts reach, unless both TLS and the token are set.
    ///
    /// # Errors
    ///
    /// [`ExposedListener`] says which of the two is missing.
    pub fn may_use(&self, address: SocketAddr) -> Result<(), ExposedListener> {
        let (has_tls, has_token) = (self.tls.is_some(), self.token.is_some());
        if address.ip().to_canonical().is_loopback() || has_tls && has_token {
            return Ok(());
        }
        Err(ExposedListener { address, has_tls, has_token })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::load::tests::{bad, good};

    /// A certificate and key that the test never reads.
    const TLS: &str = "tls = { certificate = \"/c\", key = \"/k\" }\n";

    #[test]
    fn an_address_that_other_hosts_reach_requires_tls_and_a_token() {
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
                let shown = bad(&listen(&more));
                assert!(shown.contains(lacking) && shown.contains("set both"), "{shown}");
            }
            let both = good(&listen(&format!("{TLS}{token}"))).listen;
            assert_eq!(both.http.to_string(), address);
        }
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            good(&format!("[listen]\nhttp = {address:?}\n"));
        }
    }
}
