//! The certificate that clients are shown, from its files to the handshake.
//!
//! [`TlsIdentity`] is a certificate with its key, checked; [`CurrentTls`] holds the one that new
//! connections get, so that a renewed one takes nothing but a reload.

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
use pem::PemFile;

/// What we speak inside of TLS, so that a client that could speak HTTP/2 does not. Source: RFC 7301.
const ALPN: &[u8] = b"http/1.1";

/// Who does the cryptography, of what we serve and of what we ask.
pub(crate) static PROVIDER: LazyLock<Arc<CryptoProvider>> =
    LazyLock::new(|| Arc::new(ring::default_provider()));

/// A certificate with its private key.
pub struct TlsIdentity {
    chain: Vec<CertificateDer<'static>>,
    acceptor: TlsAcceptor,
}

impl TlsIdentity {
    /// Reads what the configuration asks for; nothing where it asks for nothing.
    ///
    /// # Errors
    ///
    /// [`TlsIdentityError`] names the file and what is wrong with it.
    pub fn load_configured(
        tls: Option<&TlsConfig>,
        credentials: Option<&Path>,
    ) -> Result<Option<Self>, TlsIdentityError> {
        tls.map(|tls| Self::load(tls, credentials)).transpose()
    }

    /// Reads certificate and key. References lead into the directory `credentials`.
    ///
    /// # Errors
    ///
    /// [`TlsIdentityError`] names the file and what is wrong with it.
    pub fn load(tls: &TlsConfig, credentials: Option<&Path>) -> Result<Self, TlsIdentityError> {
        let chain = PemFile::Certificate.read(&tls.certificate, credentials, pem::chain)?;
        let key = PemFile::Key.read(&tls.key, credentials, |text| pem::key(text, &PROVIDER))?;
        let pair = pair(tls, chain.clone(), key)?;
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&PROVIDER))
            .with_safe_default_protocol_versions()
            .map_err(TlsIdentityError::Provider)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(pair)));
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Self { chain, acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    /// Checks the files, as far as there are any: only the service has the credentials.
    ///
    /// # Errors
    ///
    /// [`TlsIdentityError`] names the file and what is wrong with it.
    pub fn check(tls: &TlsConfig) -> Result<(), TlsIdentityError> {
        let is_file = |source: &PemSource| matches!(source, PemSource::File(_));
        let chain = is_file(&tls.certificate)
            .then(|| PemFile::Certificate.read(&tls.certificate, None, pem::chain))
            .transpose()?;
        let key = is_file(&tls.key)
            .then(|| PemFile::Key.read(&tls.key, None, |text| pem::key(text, &PROVIDER)))
            .transpose()?;
        match (chain, key) {
            (Some(chain), Some(key)) => pair(tls, chain, key).map(drop),
            (None, _) | (_, None) => Ok(()),
        }
    }

    /// Shakes hands with a client.
    ///
    /// # Errors
    ///
    /// What the client or its connection did wrong.
    ///
    /// # Cancel safety
    ///
    /// Not safe: dropped, the connection is lost, which nothing was asked on yet.
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
        f.debug_struct("Identity")
            .field("n_certificates", &self.chain.len())
            .finish_non_exhaustive()
    }
}

/// Puts certificate and key together.
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
        Err(_) => Err(PemFile::Certificate.error(&tls.certificate, PemError::Certificate)),
    }
}

/// What new connections are served with; none is plain HTTP.
#[derive(Debug, Default)]
pub struct CurrentTls(ArcSwapOption<TlsIdentity>);

impl CurrentTls {
    /// Begins with `identity`.
    pub fn new(identity: Option<TlsIdentity>) -> Self {
        Self(ArcSwapOption::from_pointee(identity))
    }

    /// Returns what a connection that comes now is served with.
    pub fn get(&self) -> Option<Arc<TlsIdentity>> {
        self.0.load_full()
    }

    /// Serves new connections with `identity` and tells whether clients see a difference. One that
    /// is the same stays, with what it knows of clients that come back.
    pub fn replace(&self, identity: Option<TlsIdentity>) -> bool {
        let chain = |identity: &TlsIdentity| identity.chain.clone();
        let is_other = self.get().as_deref().map(chain) != identity.as_ref().map(chain);
        if is_other {
            self.0.store(identity.map(Arc::new));
        }
        is_other
    }
}

#[cfg(test)]
mod tests;
