//! Certificates for sites in tests, and connectors that trust their authority.

use std::{fs, path::PathBuf, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{RootCertStore, ServerConfig, server::WebPkiClientVerifier},
};

use super::test_site::SiteTls;
use crate::{
    config::{ClientIdentity, ClientTlsConfig, PemSource},
    http_client::{Connector, ConnectorSettings},
    tls::PROVIDER,
};

/// An authority, with its certificate in a file.
pub(super) struct TestAuthority {
    roots: RootCertStore,
    issuer: Issuer<'static, KeyPair>,
    directory: TempDir,
}

impl TestAuthority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("it signs itself");
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone()).expect("a root");
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("ca.pem"), pem("CERTIFICATE", certificate.der()))
            .expect("written");
        Self { roots, issuer: Issuer::new(params, key), directory }
    }

    /// Returns the TLS settings of a site with a certificate for `name`, which `change` changes.
    pub(super) fn site(
        &self,
        name: &str,
        is_http2: bool,
        change: impl FnOnce(&mut CertificateParams),
    ) -> SiteTls {
        let config = ServerConfig::builder_with_provider(Arc::clone(&PROVIDER))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth();
        self.finish(config, name, is_http2, change)
    }

    /// Returns the TLS settings of a site for `localhost` that requires a certificate of clients.
    pub(super) fn site_with_mutual_tls(&self, is_http2: bool) -> SiteTls {
        let provider = Arc::clone(&PROVIDER);
        let roots = Arc::new(self.roots.clone());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
        let config = ServerConfig::builder_with_provider(Arc::clone(&PROVIDER))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(verifier.expect("a verifier"));
        self.finish(config, "localhost", is_http2, |_| {})
    }

    fn finish(
        &self,
        config: tokio_rustls::rustls::ConfigBuilder<
            ServerConfig,
            tokio_rustls::rustls::server::WantsServerCert,
        >,
        name: &str,
        is_http2: bool,
        change: impl FnOnce(&mut CertificateParams),
    ) -> SiteTls {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.issuer).expect("it is signed");
        let key = key.serialize_der().try_into().expect("a key");
        let mut config = config.with_single_cert(vec![signed.der().clone()], key).expect("a pair");
        let protocols: &[&[u8]] = if is_http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        SiteTls { acceptor: TlsAcceptor::from(Arc::new(config)), streams_max: 100 }
    }

    /// Returns the settings of a client that trusts this authority.
    pub(super) fn trust(&self) -> ClientTlsConfig {
        ClientTlsConfig { ca: Some(PemSource::File(self.path("ca.pem"))), identity: None }
    }

    /// Issues a certificate for clients, and returns the settings of a client that shows it.
    pub(super) fn identity(&self, file: &str) -> ClientTlsConfig {
        let params = CertificateParams::new(["client".to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.issuer).expect("it is signed");
        let (certificate, key_file) = (format!("{file}.pem"), format!("{file}.key"));
        fs::write(self.path(&certificate), pem("CERTIFICATE", signed.der())).expect("written");
        fs::write(self.path(&key_file), pem("PRIVATE KEY", key.serialized_der())).expect("written");
        let identity = ClientIdentity {
            certificate: PemSource::File(self.path(&certificate)),
            key: PemSource::File(self.path(&key_file)),
        };
        ClientTlsConfig { identity: Some(identity), ..self.trust() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// Returns a connector with these settings for TLS.
pub(super) fn connector(tls: ClientTlsConfig) -> Arc<Connector> {
    let settings = ConnectorSettings { tls, ..ConnectorSettings::default() };
    Connector::new(settings).expect("a connector")
}

fn pem(label: &str, der: &[u8]) -> String {
    let base64 = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{base64}\n-----END {label}-----\n")
}
