//! The TLS certificate of the service, from its files to the handshake.
//!
//! [`TlsIdentity`] is a verified certificate with its key. [`CurrentTls`] holds the one for new
//! connections, so that a renewed certificate needs only a reload.

use std::{
    fmt, io,
    path::Path,
    sync::{Arc, LazyLock},
};

use arc_swap::ArcSwapOption;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        crypto::{CryptoProvider, ring},
        pki_types::CertificateDer,
        sign::{CertifiedKey, SigningKey, SingleCertAndKey},
    },
    server::TlsStream,
};

use crate::config::{TlsConfig, tls::PemSource};

mod error;
mod pem;

pub use error::{PemError, TlsIdentityError};

/// The ALPN protocol, which keeps clients from choosing HTTP/2. Source: RFC 7301.
const ALPN: &[u8] = b"http/1.1";

/// The cryptography provider, for incoming and outgoing connections.
pub(crate) static PROVIDER: LazyLock<Arc<CryptoProvider>> =
    LazyLock::new(|| Arc::new(ring::default_provider()));

/// A certificate with its private key.
pub struct TlsIdentity {
    chain: Vec<CertificateDer<'static>>,
    acceptor: TlsAcceptor,
}

impl TlsIdentity {
    /// Reads the configured certificate and key; `None` if TLS is not configured.
    ///
    /// # Errors
    ///
    /// [`TlsIdentityError`] names the file and the mistake in it.
    pub fn load_configured(
        tls: Option<&TlsConfig>,
        credentials: Option<&Path>,
    ) -> Result<Option<Self>, TlsIdentityError> {
        tls.map(|tls| Self::load(tls, credentials)).transpose()
    }

    /// Reads certificate and key. References are resolved in the directory `credentials`.
    ///
    /// # Errors
    ///
    /// [`TlsIdentityError`] names the file and the mistake in it.
    pub fn load(tls: &TlsConfig, credentials: Option<&Path>) -> Result<Self, TlsIdentityError> {
        let chain = pem::read(pem::CERTIFICATE, &tls.certificate, credentials, pem::chain)?;
        let key = pem::read(pem::KEY, &tls.key, credentials, pem::key)?;
        let pair = pair(tls, chain.clone(), key)?;
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&PROVIDER))
            .with_safe_default_protocol_versions()
            .map_err(TlsIdentityError::Provider)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(pair)));
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Self { chain, acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    /// Checks the files, but no credentials, which only the service can read.
    ///
    /// # Errors
    ///
    /// [`TlsIdentityError`] names the file and the mistake in it.
    pub fn check(tls: &TlsConfig) -> Result<(), TlsIdentityError> {
        let is_file = |place: &PemSource| matches!(place, PemSource::File(_));
        let chain = is_file(&tls.certificate)
            .then(|| pem::read(pem::CERTIFICATE, &tls.certificate, None, pem::chain))
            .transpose()?;
        let key =
            is_file(&tls.key).then(|| pem::read(pem::KEY, &tls.key, None, pem::key)).transpose()?;
        match chain.zip(key) {
            Some((chain, key)) => pair(tls, chain, key).map(drop),
            None => Ok(()),
        }
    }

    /// Performs the handshake with a client. Not cancel safe: the connection is lost, on which no
    /// request was made yet.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the client or its connection fails.
    pub async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> io::Result<TlsStream<S>> {
        self.acceptor.accept(stream).await
    }
}

impl fmt::Debug for TlsIdentity {
    /// Prints nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity")
            .field("n_certificates", &self.chain.len())
            .finish_non_exhaustive()
    }
}

/// Combines certificate and key.
fn pair(
    tls: &TlsConfig,
    chain: Vec<CertificateDer<'static>>,
    key: Arc<dyn SigningKey>,
) -> Result<CertifiedKey, TlsIdentityError> {
    let pair = CertifiedKey::new(chain, key);
    match pair.keys_match() {
        Ok(()) => Ok(pair),
        Err(rustls::Error::InconsistentKeys(_)) => Err(TlsIdentityError::Mismatch {
            certificate: tls.certificate.clone(),
            key: tls.key.clone(),
        }),
        Err(_) => Err(TlsIdentityError::File {
            option: pem::CERTIFICATE,
            place: tls.certificate.clone(),
            source: PemError::Certificate,
        }),
    }
}

/// The TLS identity for new connections; without one, they use plain HTTP.
#[derive(Debug, Default)]
pub struct CurrentTls(ArcSwapOption<TlsIdentity>);

impl CurrentTls {
    /// Creates the cell with `identity`.
    pub fn new(identity: Option<TlsIdentity>) -> Self {
        Self(ArcSwapOption::from_pointee(identity))
    }

    /// Returns the identity for a new connection.
    pub fn get(&self) -> Option<Arc<TlsIdentity>> {
        self.0.load_full()
    }

    /// Serves new connections with `identity` and returns whether clients see a difference. An
    /// identical one is not replaced, which preserves its state for session resumption.
    pub fn replace(&self, identity: Option<Arc<TlsIdentity>>) -> bool {
        let chain = |identity: &TlsIdentity| identity.chain.clone();
        let is_other = self.get().as_deref().map(chain) != identity.as_deref().map(chain);
        if is_other {
            self.0.store(identity);
        }
        is_other
    }
}

#[cfg(test)]
mod tests;
