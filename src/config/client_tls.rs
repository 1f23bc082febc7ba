//! TLS towards one server: `servers.NAME.tls`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    PemSource,
    refusal::Refusal,
    tls::{PEM, PEM_PATTERN},
};

/// TLS towards one server. By default, metamcp trusts the authorities that the system trusts, and
/// shows no certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ClientTlsTable")]
pub struct ClientTlsConfig {
    /// The certificates of further trusted authorities.
    pub ca: Option<PemSource>,
    /// The certificate that metamcp shows to the server.
    pub identity: Option<ClientIdentity>,
}

/// A certificate of metamcp, and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The certificate, followed by those of its issuers.
    pub certificate: PemSource,
    /// The private key of the first certificate.
    pub key: PemSource,
}

/// [`ClientTlsConfig`] as written in the file, because each half of an identity needs the other.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("dependentRequired" = { "certificate": ["key"], "key": ["certificate"] }))]
pub(super) struct ClientTlsTable {
    /// The certificates of authorities that metamcp trusts for this server besides those of the
    /// system: the absolute path of a PEM file, or `credential:NAME`.
    #[schemars(with = "String", title = PEM, regex(pattern = PEM_PATTERN))]
    ca: Option<PemSource>,
    /// The certificate that metamcp shows to this server, in the same form.
    #[schemars(with = "String", title = PEM, regex(pattern = PEM_PATTERN))]
    certificate: Option<PemSource>,
    /// The private key of `certificate`, in the same form.
    #[schemars(with = "String", title = PEM, regex(pattern = PEM_PATTERN))]
    key: Option<PemSource>,
}

impl TryFrom<ClientTlsTable> for ClientTlsConfig {
    type Error = Refusal;

    fn try_from(table: ClientTlsTable) -> Result<Self, Refusal> {
        let identity = match (table.certificate, table.key) {
            (Some(certificate), Some(key)) => Some(ClientIdentity { certificate, key }),
            (None, None) => None,
            (found, _) => {
                let missing = if found.is_some() { "key" } else { "certificate" };
                let help = "give both `certificate` and `key`, or neither";
                return Err(Refusal::new(format!("`tls` has no `{missing}`"), help));
            }
        };
        Ok(Self { ca: table.ca, identity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{
        TransportConfig,
        load::tests::{bad, good},
    };

    fn server(tls: &str) -> String {
        format!("[servers.a]\nurl = \"https://h/\"\ntls = {tls}\n")
    }

    #[test]
    fn further_authorities_and_a_client_certificate_are_files_or_credentials() {
        let text = server(
            r#"{ ca = "/etc/ca.pem", certificate = "credential:cert", key = "credential:key" }"#,
        );
        let TransportConfig::Http(http) = &good(&text).servers["a"].transport else {
            panic!("an endpoint")
        };
        assert_eq!(http.tls.ca, Some(PemSource::File("/etc/ca.pem".into())));
        let identity = http.tls.identity.as_ref().expect("a certificate");
        assert_eq!(identity.key, PemSource::Credential("key".into()));
    }

    #[test]
    fn half_an_identity_or_a_relative_path_is_refused() {
        insta::assert_snapshot!(bad(&server("{ certificate = \"/c.pem\" }")), @r#"
        `tls` has no `key`
         --> c.toml:3:7
          |
        3 | tls = { certificate = "/c.pem" }
          |       ^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: give both `certificate` and `key`, or neither
        "#);
        insta::assert_snapshot!(bad(&server("{ key = \"/k.pem\" }")), @r#"
        `tls` has no `certificate`
         --> c.toml:3:7
          |
        3 | tls = { key = "/k.pem" }
          |       ^^^^^^^^^^^^^^^^^^
          = help: give both `certificate` and `key`, or neither
        "#);
        insta::assert_snapshot!(bad(&server("{ ca = \"ca.pem\" }")), @r#"
        `ca` is not an absolute path
         --> c.toml:3:14
          |
        3 | tls = { ca = "ca.pem" }
          |              ^^^^^^^^
          = help: write the absolute path of a PEM file, or the name of a credential as in "credential:tls"
        "#);
        let pasted = bad(&server("{ ca = \"-----BEGIN CERTIFICATE-----hunter2\" }"));
        assert!(!pasted.contains("hunter2"), "{pasted}");
    }
}
