//! Hashes that distinguish definitions. Pure.

use std::{collections::BTreeMap, fmt};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::config::{
    EraChoice, HttpServerConfig, OAuthGrant, SecretValue, ServerAuth, ServerConfig, TransportConfig,
};

/// A SHA-256 hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CatalogDigest([u8; 32]);

impl CatalogDigest {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the hash of those parts of a declaration that decide which program answers, and what
    /// it receives. Another program of the same name must not keep the tools of the old one.
    ///
    /// References to secrets count, their values do not: a value may change daily.
    pub(super) fn of_declaration(server: &ServerConfig) -> Self {
        let transport = match &server.transport {
            TransportConfig::Stdio { command, args, env, cwd } => {
                let cwd = cwd.as_ref().map(|cwd| cwd.to_string_lossy());
                json!(["stdio", command, args, variables(env), cwd])
            }
            TransportConfig::Unit { socket, unit } => {
                json!(["unit", socket.to_string_lossy(), unit])
            }
            TransportConfig::Http(http) => {
                json!(["http", http.url.to_string(), variables(&http.headers), identity(http)])
            }
        };
        let era = match server.era {
            EraChoice::Auto => "auto",
            EraChoice::Legacy => "legacy",
            EraChoice::Modern => "modern",
        };
        // The sharing decides what the server learns about its clients.
        Self::of(json!([transport, server.sharing.name(), era]).to_string().as_bytes())
    }

    /// Returns the first eight bytes as a number.
    pub(super) fn as_u64(self) -> u64 {
        let mut first = [0; 8];
        first.copy_from_slice(&self.0[..8]);
        u64::from_be_bytes(first)
    }
}

/// Returns what decides as which client an endpoint knows metamcp. The way to it is not part of that,
/// nor are headers of clients: metamcp reads the lists on its own behalf.
fn identity(http: &HttpServerConfig) -> Value {
    let login = match &http.auth {
        ServerAuth::Auto => json!("auto"),
        ServerAuth::None => json!("none"),
        ServerAuth::OAuth(oauth) => {
            let document = oauth.client_metadata_url.as_ref().map(ToString::to_string);
            let is_machine = oauth.grant == OAuthGrant::ClientCredentials;
            json!([oauth.client_id, document, oauth.scopes, is_machine])
        }
    };
    let certificate = http.tls.identity.as_ref().map(|own| own.certificate.to_string());
    json!([login, certificate])
}

fn variables(all: &BTreeMap<String, SecretValue>) -> Value {
    let secret = |secret: &SecretValue| match secret {
        SecretValue::Literal(value) => json!(["literal", value]),
        SecretValue::Credential(name) => json!(["credential", name]),
        SecretValue::Env(name) => json!(["env", name]),
    };
    all.iter().map(|(name, value)| (name.clone(), secret(value))).collect()
}

impl fmt::Display for CatalogDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::SharingMode, connection::in_process::declared};

    #[test]
    fn each_setting_that_decides_which_program_answers_changes_the_digest() {
        let plain = declared("a");
        let with = |change: &dyn Fn(&mut ServerConfig)| {
            let mut server = declared("a");
            change(&mut server);
            CatalogDigest::of_declaration(&server)
        };
        let variable = |secret: &str| {
            with(&|server| {
                if let TransportConfig::Stdio { env, .. } = &mut server.transport {
                    env.insert("A".to_owned(), SecretValue::from(secret.to_owned()));
                }
            })
        };
        let mut digests = vec![
            CatalogDigest::of_declaration(&plain),
            CatalogDigest::of_declaration(&declared("b")),
            with(&|server| server.era = EraChoice::Legacy),
            with(&|server| server.sharing = SharingMode::Exclusive { max_connections: 2 }),
            with(&|server| {
                server.transport =
                    TransportConfig::Unit { socket: "/a".into(), unit: "a".to_owned() };
            }),
            with(&|server| {
                let url = "http://a/".parse().expect("a URL");
                server.transport = TransportConfig::Http(HttpServerConfig::new(url));
            }),
            variable("x"),
            variable("env:x"),
            variable("credential:x"),
        ];
        let n_digests = digests.len();
        digests.sort_by_key(ToString::to_string);
        digests.dedup();
        assert_eq!(digests.len(), n_digests);

        let later = with(&|server| server.start_timeout *= 2);
        assert_eq!(
            later,
            CatalogDigest::of_declaration(&plain),
            "how long it may take is no matter"
        );
    }
    #[test]
    fn the_identity_at_an_endpoint_changes_the_digest_and_the_way_to_it_does_not() {
        let digest = |text: &str| {
            let text = format!("[servers.a]\nurl = \"https://h/\"\n{text}\n");
            CatalogDigest::of_declaration(&crate::config::load::parsed(&text).servers["a"])
        };
        let plain = digest("");
        for way in [
            "forward_headers = [\"X-Project\"]",
            "tls = { ca = \"/ca.pem\" }",
            "proxy = \"http://proxy:3128\"",
            "auth = \"auto\"",
        ] {
            assert_eq!(digest(way), plain, "{way}");
        }
        let mut identities = vec![
            plain,
            digest("auth = \"none\""),
            digest("auth = {}"),
            digest("auth = { client_id = \"a\" }"),
            digest("auth = { scopes = [\"a\"] }"),
            digest("auth = { client_metadata_url = \"https://h/a\" }"),
            digest(
                "auth = { client_id = \"a\", client_secret = \"env:A\", grant = \"client_credentials\" }",
            ),
            digest("tls = { certificate = \"/c.pem\", key = \"/k.pem\" }"),
        ];
        let n_identities = identities.len();
        identities.sort_by_key(ToString::to_string);
        identities.dedup();
        assert_eq!(identities.len(), n_identities);
    }
}
