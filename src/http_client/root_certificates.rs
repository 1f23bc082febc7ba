//! The root certificates that TLS connections are verified against.

use std::{io, sync::Arc};

use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::WebError;
use crate::tls;

/// Trusts the issuers that the system trusts: those in `$SSL_CERT_FILE` and `$SSL_CERT_DIR`, or in
/// the usual places of the distribution.
pub(super) fn system() -> Result<ClientConfig, WebError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // An unreadable certificate is skipped.
    let (n_added, _n_ignored) = roots.add_parsable_certificates(found.certs);
    if n_added == 0 {
        let first = found.errors.into_iter().next();
        let source = first.map_or_else(|| io::ErrorKind::NotFound.into(), io::Error::other);
        return Err(WebError::NoTrust { source });
    }
    with(roots)
}

/// Trusts no issuer, for connections without TLS.
pub(super) fn trust_none() -> Result<ClientConfig, WebError> {
    with(RootCertStore::empty())
}

/// Trusts the issuers in `roots`.
pub(super) fn with(roots: RootCertStore) -> Result<ClientConfig, WebError> {
    let config = ClientConfig::builder_with_provider(Arc::clone(&tls::PROVIDER))
        .with_safe_default_protocol_versions()
        .map_err(|error| WebError::NoTrust { source: io::Error::other(error) })?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
