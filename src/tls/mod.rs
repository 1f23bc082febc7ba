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

use crate::config::{ClientTlsConfig, TlsConfig, tls::PemSource};

mod error;
mod pem;

pub use error::{PemError, TlsIdentityError};

/// The ALPN protocol, which keeps clients from choosing HTTP/2. Source: RFC 7301.
const ALPN: &[u8] = b"http/1.1";

/// The configuration keys of the authorities of a server over HTTP, and of metamcp's certificate and
/// key for it.
pub(crate) const CLIENT_CA: &str = "tls.ca";
pub(crate) const CLIENT_PAIR: (&str, &str) = ("tls.certificate", "tls.key");

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
        let options = (pem::CERTIFICATE, pem::KEY);
        let pair = certified_key(options, &tls.certificate, &tls.key, credentials)?;
        let chain = pair.cert.clone();
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
        check_pair((pem::CERTIFICATE, pem::KEY), &tls.certificate, &tls.key)
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

/// Reads a certificate and its key, which the configuration keys `options` name.
pub(crate) fn certified_key(
    options: (&'static str, &'static str),
    certificate: &PemSource,
    key: &PemSource,
    credentials: Option<&Path>,
) -> Result<CertifiedKey, TlsIdentityError> {
    let chain = pem::read(options.0, certificate, credentials, pem::chain)?;
    let signing = pem::read(options.1, key, credentials, pem::key)?;
    pair((options.0, certificate), key, chain, signing)
}

/// Reads the certificates of authorities, which the configuration key `option` names.
pub(crate) fn authorities(
    option: &'static str,
    place: &PemSource,
    credentials: Option<&Path>,
) -> Result<Vec<CertificateDer<'static>>, TlsIdentityError> {
    pem::read(option, place, credentials, pem::chain)
}

/// Checks the files for connections to a server, but no credentials.
///
/// # Errors
///
/// [`TlsIdentityError`] names the file and the mistake in it.
pub fn check_client(tls: &ClientTlsConfig) -> Result<(), TlsIdentityError> {
    if let Some(place @ PemSource::File(_)) = &tls.ca {
        authorities(CLIENT_CA, place, None)?;
    }
    let identity = tls.identity.as_ref();
    identity.map_or(Ok(()), |own| check_pair(CLIENT_PAIR, &own.certificate, &own.key))
}

/// Checks a certificate and its key, as far as they are files.
fn check_pair(
    options: (&'static str, &'static str),
    certificate: &PemSource,
    key: &PemSource,
) -> Result<(), TlsIdentityError> {
    let is_file = |place: &PemSource| matches!(place, PemSource::File(_));
    let chain = is_file(certificate)
        .then(|| pem::read(options.0, certificate, None, pem::chain))
        .transpose()?;
    let signing = is_file(key).then(|| pem::read(options.1, key, None, pem::key)).transpose()?;
    match chain.zip(signing) {
        Some((chain, signing)) => pair((options.0, certificate), key, chain, signing).map(drop),
        None => Ok(()),
    }
}

/// Combines certificate and key.
fn pair(
    (option, certificate): (&'static str, &PemSource),
    key: &PemSource,
    chain: Vec<CertificateDer<'static>>,
    signing: Arc<dyn SigningKey>,
) -> Result<CertifiedKey, TlsIdentityError> {
    let pair = CertifiedKey::new(chain, signing);
    let (certificate, key) = (certificate.clone(), key.clone());
    match pair.keys_match() {
        Ok(()) => Ok(pair),
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err(TlsIdentityError::Mismatch { certificate, key })
        }
        Err(_) => Err(TlsIdentityError::File {
            option,
            place: certificate,
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
