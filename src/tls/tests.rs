//! Tests with valid and invalid files of operators.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use tempfile::TempDir;

use super::*;
use crate::error_report::chain;

const EC_CERTIFICATE: &str = include_str!("fixtures/ec-certificate.pem");
const EC_SEC1: &str = include_str!("fixtures/ec-sec1.pem");
const EC_PKCS8: &str = include_str!("fixtures/ec-pkcs8.pem");
const EC_ENCRYPTED: &str = include_str!("fixtures/ec-encrypted.pem");
const EC_SEC1_ENCRYPTED: &str = include_str!("fixtures/ec-sec1-encrypted.pem");
const RSA_CERTIFICATE: &str = include_str!("fixtures/rsa-certificate.pem");
const RSA_PKCS1: &str = include_str!("fixtures/rsa-pkcs1.pem");
const ED25519_CERTIFICATE: &str = include_str!("fixtures/ed25519-certificate.pem");
const ED25519_PKCS8: &str = include_str!("fixtures/ed25519-pkcs8.pem");
const P521_SEC1: &str = include_str!("fixtures/p521-sec1.pem");

/// A directory with `chain.pem` and `key.pem`.
struct Files(TempDir);

impl Files {
    fn new(certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        let files = Self(tempfile::tempdir().expect("a directory"));
        fs::write(files.path("chain.pem"), certificate).expect("written");
        fs::write(files.path("key.pem"), key).expect("written");
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn tls(&self) -> TlsConfig {
        let file = |name| PemSource::File(self.path(name));
        TlsConfig { certificate: file("chain.pem"), key: file("key.pem") }
    }

    /// Returns the error of loading the files, and its remedy.
    #[track_caller]
    fn wrong(&self) -> String {
        let error = TlsIdentity::load(&self.tls(), None).expect_err("a mistake");
        let text = format!("{}\n{}", chain(&error), error.hint());
        let checked = TlsIdentity::check(&self.tls()).expect_err("the same mistake");
        assert_eq!(chain(&checked), chain(&error));
        text.replace(&self.0.path().display().to_string(), "DIR")
    }
}

#[test]
fn every_encoding_of_a_key_is_read() {
    for (certificate, key) in [
        (EC_CERTIFICATE, EC_SEC1),
        (EC_CERTIFICATE, EC_PKCS8),
        (RSA_CERTIFICATE, RSA_PKCS1),
        (ED25519_CERTIFICATE, ED25519_PKCS8),
    ] {
        let files = Files::new(certificate, key);
        TlsIdentity::load(&files.tls(), None).expect(key);
        TlsIdentity::check(&files.tls()).expect(key);
    }
}

#[test]
fn certificate_and_key_may_share_a_file_with_the_issuers_last() {
    let all = format!("{EC_PKCS8}{EC_CERTIFICATE}{RSA_CERTIFICATE}");
    let files = Files::new(&all, &all);
    assert_eq!(TlsIdentity::load(&files.tls(), None).expect("both are found").chain.len(), 2);
}

#[test]
fn every_mistake_is_reported_with_its_file_and_remedy() {
    let wrong = |certificate: &str, key: &str| Files::new(certificate, key).wrong();
    let damaged = EC_CERTIFICATE.replace("MII", "?!?");
    let cut_off = EC_CERTIFICATE.replace("-----END", "");
    let empty = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n";
    let reports = [
        wrong(EC_CERTIFICATE, RSA_PKCS1),
        wrong(EC_PKCS8, EC_CERTIFICATE),
        wrong(EC_CERTIFICATE, EC_CERTIFICATE),
        wrong(EC_CERTIFICATE, EC_ENCRYPTED),
        wrong(EC_CERTIFICATE, EC_SEC1_ENCRYPTED),
        wrong(EC_CERTIFICATE, P521_SEC1),
        wrong("", EC_PKCS8),
        wrong("\u{30}\u{82}", EC_PKCS8),
        wrong(&damaged, EC_PKCS8),
        wrong(&cut_off, EC_PKCS8),
        wrong(empty, EC_PKCS8),
    ];
    insta::assert_snapshot!(reports.join("\n"), @"
    the key `DIR/key.pem` does not belong to the first certificate in `DIR/chain.pem`
    Renew both together, and put the server's own certificate before those of its issuers.
    cannot use `DIR/chain.pem` as `listen.tls.certificate`: it has no certificate, but a private key
    Put the server's own certificate into it, and after that those of its issuers.
    cannot use `DIR/key.pem` as `listen.tls.key`: it has no private key, but a certificate
    Put the private key into it, as PKCS#8, PKCS#1 or SEC1.
    cannot use `DIR/key.pem` as `listen.tls.key`: its key is encrypted
    Write the key without a passphrase: `openssl pkey -in OLD -out NEW`.
    cannot use `DIR/key.pem` as `listen.tls.key`: its key is encrypted
    Write the key without a passphrase: `openssl pkey -in OLD -out NEW`.
    cannot use `DIR/key.pem` as `listen.tls.key`: its key is of an unsupported kind
    Use a key for ECDSA with P-256 or P-384, for Ed25519, or for RSA with 2048 bits or more.
    cannot use `DIR/chain.pem` as `listen.tls.certificate`: it is not PEM: no line begins with `-----BEGIN`
    Convert it with `openssl x509 -inform DER` or `openssl pkey -inform DER`.
    cannot use `DIR/chain.pem` as `listen.tls.certificate`: it is not PEM: no line begins with `-----BEGIN`
    Convert it with `openssl x509 -inform DER` or `openssl pkey -inform DER`.
    cannot use `DIR/chain.pem` as `listen.tls.certificate`: it is damaged: a section is not base64
    Create or fetch it again.
    cannot use `DIR/chain.pem` as `listen.tls.certificate`: it is damaged: a section has no end
    Create or fetch it again.
    cannot use `DIR/chain.pem` as `listen.tls.certificate`: its first certificate cannot be read
    Create or fetch it again.
    ");
}

#[test]
fn an_unreadable_file_is_reported_with_a_remedy() {
    let files = Files::new(EC_CERTIFICATE, EC_PKCS8);
    fs::remove_file(files.path("key.pem")).expect("removed");
    insta::assert_snapshot!(files.wrong(), @"
    cannot use `DIR/key.pem` as `listen.tls.key`: No such file or directory (os error 2)
    Write the path of a PEM file, or `credential:NAME`.
    ");
    fs::create_dir(files.path("key.pem")).expect("made");
    insta::assert_snapshot!(files.wrong(), @"
    cannot use `DIR/key.pem` as `listen.tls.key`: it is not a regular file
    Write the path of a PEM file, or `credential:NAME`.
    ");
    fs::write(files.path("chain.pem"), vec![b'-'; 2 << 20]).expect("written");
    insta::assert_snapshot!(files.wrong(), @"
    cannot use `DIR/chain.pem` as `listen.tls.certificate`: it is larger than 1048576 bytes
    Write the path of a PEM file, or `credential:NAME`.
    ");

    let files = Files::new(EC_CERTIFICATE, EC_PKCS8);
    let closed = fs::Permissions::from_mode(0o000);
    fs::set_permissions(files.path("key.pem"), closed).expect("closed");
    // Root can read every file.
    if !rustix::process::geteuid().is_root() {
        assert!(files.wrong().contains("Let the user of the service read it"));
    }
}

#[test]
fn a_credential_is_read_by_the_service_and_skipped_by_a_check() {
    let files = Files::new(EC_CERTIFICATE, EC_PKCS8);
    let credential = |name: &str| PemSource::Credential(name.to_owned());
    let mut tls = TlsConfig { certificate: credential("chain.pem"), key: credential("key.pem") };
    TlsIdentity::load(&tls, Some(files.0.path())).expect("both are found");
    TlsIdentity::check(&tls).expect("skipped");
    let error = TlsIdentity::load(&tls, None).expect_err("no directory");
    insta::assert_snapshot!(chain(&error), @"cannot find `listen.tls.certificate`: `credential:chain.pem` needs $CREDENTIALS_DIRECTORY, which is not set");

    tls.key = credential("other");
    let error = TlsIdentity::load(&tls, Some(files.0.path())).expect_err("no such credential");
    insta::assert_snapshot!(format!("{}\n{}", chain(&error), error.hint()), @"
    cannot use `credential:other` as `listen.tls.key`: No such file or directory (os error 2)
    Add `LoadCredential=NAME:/path` to the unit, or the name to `services.metamcp.credentials`.
    ");
    tls.certificate = PemSource::File(files.path("key.pem"));
    let error = TlsIdentity::check(&tls).expect_err("the file is read");
    assert!(chain(&error).contains("it has no certificate, but a private key"));
}

#[test]
fn a_key_is_never_printed() {
    let files = Files::new(EC_CERTIFICATE, EC_PKCS8);
    let identity = TlsIdentity::load(&files.tls(), None).expect("both are good");
    assert_eq!(format!("{identity:?}"), "TlsIdentity { n_certificates: 1, .. }");
}

#[test]
fn only_a_different_certificate_replaces_the_identity() {
    let load = |certificate, key| {
        let files = Files::new(certificate, key);
        Some(Arc::new(TlsIdentity::load(&files.tls(), None).expect("both are good")))
    };
    let current = CurrentTls::new(None);
    assert!(!current.replace(None));
    assert!(current.replace(load(EC_CERTIFICATE, EC_PKCS8)));
    let before = current.get().expect("one");
    assert!(!current.replace(load(EC_CERTIFICATE, EC_SEC1)));
    assert!(Arc::ptr_eq(&before, &current.get().expect("one")));
    assert!(current.replace(load(RSA_CERTIFICATE, RSA_PKCS1)));
    assert!(current.replace(None) && current.get().is_none());
}
