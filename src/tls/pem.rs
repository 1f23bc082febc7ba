//! The parser of PEM files, with diagnostics.

use std::{fs::File, io::Read as _, path::Path, sync::Arc};

use tokio_rustls::rustls::{
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject as _},
    },
    server::ParsedCertificate,
    sign::SigningKey,
};

use super::{PROVIDER, PemError, TlsIdentityError};
use crate::config::{defaults, tls::PemSource};

/// The configuration keys of the two files.
pub(super) const CERTIFICATE: &str = "listen.tls.certificate";
pub(super) const KEY: &str = "listen.tls.key";

/// Finds, reads and parses the file that the configuration key `option` names.
pub(super) fn read<T>(
    option: &'static str,
    place: &PemSource,
    credentials: Option<&Path>,
    parse: impl FnOnce(&str) -> Result<T, PemError>,
) -> Result<T, TlsIdentityError> {
    let path =
        place.path(credentials).map_err(|source| TlsIdentityError::Reference { option, source })?;
    text(&path).and_then(|text| parse(&text)).map_err(|source| TlsIdentityError::File {
        option,
        place: place.clone(),
        source,
    })
}

fn text(path: &Path) -> Result<String, PemError> {
    // Checked first: opening a pipe would block until another process writes to it.
    if !path.metadata().map_err(PemError::Read)?.is_file() {
        return Err(PemError::NotAFile);
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(PemError::Read)?;
    file.take(defaults::PEM_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(PemError::Read)?;
    if bytes.len() as u64 > defaults::PEM_BYTES_MAX {
        return Err(PemError::TooLarge);
    }
    // PEM is ASCII, but comments around it may be anything.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if text.contains("-----BEGIN ") { Ok(text) } else { Err(PemError::NotPem) }
}

/// Returns the certificates in a PEM text, at least one.
pub(super) fn chain(text: &str) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let chain = chain.map_err(|error| damage(&error))?;
    let Some(first) = chain.first() else { return Err(PemError::NoCertificate(sections(text))) };
    ParsedCertificate::try_from(first).map_err(|_| PemError::Certificate)?;
    Ok(chain)
}

/// Returns the first private key in a PEM text, ready to sign.
pub(super) fn key(text: &str) -> Result<Arc<dyn SigningKey>, PemError> {
    let mut keys = PrivateKeyDer::pem_slice_iter(text.as_bytes());
    match keys.next() {
        // One kind of encryption has its own section label, the other has a line in the section.
        None | Some(Err(_)) if text.contains("ENCRYPTED") => Err(PemError::Encrypted),
        None => Err(PemError::NoKey(sections(text))),
        Some(Err(error)) => Err(damage(&error)),
        Some(Ok(key)) => PROVIDER.key_provider.load_private_key(key).map_err(|_| PemError::Key),
    }
}

/// Describes an error in fixed words: the library's messages quote the content of the file.
fn damage(error: &pem::Error) -> PemError {
    PemError::Damaged(match error {
        pem::Error::MissingSectionEnd { .. } => "a section has no end",
        pem::Error::IllegalSectionStart { .. } => "a section has no proper beginning",
        pem::Error::Base64Decode(_) => "a section is not base64",
        _ => "a section cannot be read",
    })
}

/// Names the sections of a text. Only well-known labels are named; others might be secret.
fn sections(text: &str) -> &'static str {
    const LABELS: [(&str, &str); 5] = [
        ("PRIVATE KEY-----", "a private key"),
        ("CERTIFICATE REQUEST-----", "a request for a certificate"),
        ("CERTIFICATE-----", "a certificate"),
        ("PUBLIC KEY-----", "a public key"),
        ("PARAMETERS-----", "parameters"),
    ];
    let found = LABELS.into_iter().find(|(label, _)| text.contains(label));
    found.map_or("something else", |(_, name)| name)
}
