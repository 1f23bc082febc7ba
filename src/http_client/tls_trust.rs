//! The trust in the certificates of others, and the certificate of metamcp.

use std::{
    io,
    path::Path,
    sync::{Arc, OnceLock},
};

use tokio_rustls::rustls::{ClientConfig, RootCertStore, sign::SingleCertAndKey};

use super::DialError;
use crate::{
    config::ClientTlsConfig,
    tls::{self, PROVIDER},
};

/// The ALPN protocols, the preferred one first. Source: RFC 7301.
pub(super) const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// The authorities that the system trusts, once they were read: some hundred kilobytes.
static SYSTEM_ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();

/// Returns the TLS settings for one server. The files are read now.
pub(super) fn client_config(
    tls: &ClientTlsConfig,
    credentials: Option<&Path>,
) -> Result<ClientConfig, DialError> {
    let roots = match (&tls.ca, system_roots()) {
        (None, system) => system?,
        (Some(place), system) => {
            let further = tls::authorities(tls::CLIENT_CA, place, credentials)?;
            // The declared authorities suffice on a system that has none.
            let mut roots = system
                .map(|roots| RootCertStore::clone(&roots))
                .unwrap_or_else(|_| RootCertStore::empty());
            roots.add_parsable_certificates(further);
            Arc::new(roots)
        }
    };
    let identity = tls.identity.as_ref().map(|identity| {
        tls::certified_key(tls::CLIENT_PAIR, &identity.certificate, &identity.key, credentials)
    });
    let config = ClientConfig::builder_with_provider(Arc::clone(&PROVIDER))
        .with_safe_default_protocol_versions()
        .map_err(|error| no_trust(io::Error::other(error)))?
        .with_root_certificates(roots);
    let mut config = match identity.transpose()? {
        Some(pair) => config.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(pair))),
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    Ok(config)
}

/// Returns the authorities that the system trusts: those in `$SSL_CERT_FILE` and `$SSL_CERT_DIR`,
/// or in the usual places of the distribution. They are read once.
fn system_roots() -> Result<Arc<RootCertStore>, DialError> {
    if let Some(roots) = SYSTEM_ROOTS.get() {
        return Ok(Arc::clone(roots));
    }
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // An unreadable certificate is skipped.
    let (n_added, _n_ignored) = roots.add_parsable_certificates(found.certs);
    if n_added == 0 {
        let first = found.errors.into_iter().next();
        let source = first.map_or_else(|| io::ErrorKind::NotFound.into(), io::Error::other);
        return Err(no_trust(source));
    }
    Ok(Arc::clone(SYSTEM_ROOTS.get_or_init(|| Arc::new(roots))))
}

fn no_trust(source: io::Error) -> DialError {
    DialError::NoTrust { source: Arc::new(source) }
}
