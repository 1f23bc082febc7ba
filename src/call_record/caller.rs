//! The client of a call, as its record names it.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use super::{PeerProtocol, PeerTransport};
use crate::{
    capacity_holder::{Account, AccountMember, Holder},
    config::defaults,
    protocol::ObjectMembers,
    redact,
    server_name::ServerName,
};

/// The name and version that a client gives itself in `clientInfo`, cut to a bounded length. Both
/// are empty if the client gives none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientName {
    /// The name of the program.
    pub name: String,
    /// The version of the program.
    pub version: String,
}

/// The client of a call.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The name that the client gives itself.
    pub name: Arc<ClientName>,
    /// The user or the token, and the session.
    pub holder: Holder,
    /// The view that the client uses.
    pub view: CallView,
    /// The protocol between the client and metamcp.
    pub protocol: PeerProtocol,
}

/// The view through which a call came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallView {
    /// All servers.
    Direct,
    /// All tools behind the meta-tools.
    Meta,
    /// One server.
    Server(ServerName),
    /// The command line of an operator.
    Operator,
}

impl ClientName {
    /// Reads a `clientInfo`, JSON text.
    pub fn read(client_info: Option<&str>) -> Self {
        let Some(members) = client_info.and_then(ObjectMembers::read) else {
            return Self::default();
        };
        let text = |member: &str, bytes_max: usize| {
            let text = members.string(member).unwrap_or_default();
            redact::sanitize(redact::cut(&text, bytes_max)).replace(['\n', '\t'], " ")
        };
        Self {
            name: text("name", defaults::CLIENT_NAME_BYTES_MAX),
            version: text("version", defaults::CLIENT_VERSION_BYTES_MAX),
        }
    }
}

impl fmt::Display for ClientName {
    /// Prints the name and, if there is one, the version.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { "a client without a name" } else { &self.name };
        match self.version.as_str() {
            "" => f.write_str(name),
            version => write!(f, "{name} {version}"),
        }
    }
}

impl Caller {
    /// Returns an operator, whose calls come from the command line.
    pub fn operator(holder: Holder) -> Self {
        static METAMCP: LazyLock<Arc<ClientName>> = LazyLock::new(|| {
            let version = env!("CARGO_PKG_VERSION").to_owned();
            Arc::new(ClientName { name: "metamcp".to_owned(), version })
        });
        let protocol = PeerProtocol::new(Some(PeerTransport::Unix), None);
        Self { name: Arc::clone(&METAMCP), holder, view: CallView::Operator, protocol }
    }

    /// Returns the user id, if the client is a local user without a token.
    pub fn uid(&self) -> Option<u32> {
        if let Account::User(uid) = self.holder.account { Some(uid) } else { None }
    }

    /// Returns the fingerprint of the client's token, in hexadecimal digits.
    pub fn token(&self) -> Option<String> {
        let Account::Token(fingerprint) = self.holder.account else { return None };
        Some(format!("{fingerprint:016x}"))
    }

    /// Returns the number of the client's session. It is not the id, which is a secret.
    pub fn session(&self) -> Option<u64> {
        if let AccountMember::Session(number) = self.holder.member { Some(number) } else { None }
    }
}

impl CallView {
    /// Returns the word for records. That of a server's own view is `server`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Meta => "meta",
            Self::Server(_) => "server",
            Self::Operator => "operator",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_may_give_no_name() {
        for info in [None, Some("7"), Some("{}"), Some(r#"{"name":7,"version":null}"#)] {
            assert_eq!(ClientName::read(info), ClientName::default(), "{info:?}");
        }
    }

    #[test]
    fn the_name_of_a_client_is_bounded_and_has_no_control_characters() {
        let long = "x".repeat(10_000);
        let info = serde_json::json!({ "name": format!("a\u{1b}[2J{long}"), "version": long });
        let read = ClientName::read(Some(&info.to_string()));
        assert!(read.name.len() <= defaults::CLIENT_NAME_BYTES_MAX, "{}", read.name.len());
        assert!(read.version.len() <= defaults::CLIENT_VERSION_BYTES_MAX);
        assert!(!read.name.contains('\u{1b}') && read.name.starts_with('a'), "{}", read.name);
    }
}
