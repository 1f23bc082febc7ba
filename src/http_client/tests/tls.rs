//! Tests of TLS: which sites are trusted, and what the errors of the others say.

use hyper::Version;
use rcgen::CertificateParams;

use super::{
    certificates::{TestAuthority, connector},
    test_site::SiteTls,
    *,
};
use crate::config::ClientTlsConfig;

async fn site(tls: SiteTls) -> TestSite {
    TestSite::open_with(Some(tls), |_| async { page(200, "[7]") }).await
}

/// Returns the answer, or the text of the error and its remedy.
async fn asked(tls: ClientTlsConfig, site: &TestSite) -> Result<String, (String, &'static str)> {
    let web = WebClient::new(connector(tls), limits());
    match web.fetch(get(site.url("/"))).await {
        Ok(answer) => Ok(String::from_utf8_lossy(answer.body()).into_owned()),
        Err(error) => {
            assert_eq!(error.code(), "TLS_FAILED", "{error}");
            Err((text(&error), error.hint()))
        }
    }
}

#[tokio::test]
async fn the_protocol_is_the_one_that_the_site_chooses() {
    let authority = TestAuthority::new();
    for (is_http2, version) in [(true, Version::HTTP_2), (false, Version::HTTP_11)] {
        let site = site(authority.site("localhost", is_http2, |_| {})).await;
        let web = WebClient::new(connector(authority.trust()), limits());
        for _ in 0..3 {
            assert_eq!(web.fetch(get(site.url("/a?b"))).await.expect("an answer").body(), "[7]");
        }
        let recorded = site.recorded();
        assert!(recorded.iter().all(|recorded| recorded.version == version));
        assert_eq!(recorded[0].headers.contains_key("host"), !is_http2);
        assert!(recorded[0].line.ends_with("/a?b"), "{}", recorded[0].line);
        assert_eq!(site.n_connections(), 1);
    }
}

#[tokio::test]
async fn an_unusable_certificate_is_refused_with_reason_and_remedy() {
    let authority = TestAuthority::new();
    let past = |params: &mut CertificateParams| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 12, 31);
    };
    let future = |params: &mut CertificateParams| {
        params.not_before = rcgen::date_time_ymd(2999, 1, 1);
    };
    let authoritative = |params: &mut CertificateParams| {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    };
    let none = |_: &mut CertificateParams| {};
    type Change<'a> = &'a dyn Fn(&mut CertificateParams);
    let changes: [(&str, Change<'_>, &str, &str); 4] = [
        (
            "localhost",
            &past,
            "its certificate has expired on 2020-12-31T00:00:00.000Z",
            "Renew the certificate",
        ),
        (
            "localhost",
            &future,
            "its certificate is not valid yet, only from 2999-01-01T00:00:00.000Z",
            "Check the clock",
        ),
        (
            "other.example",
            &none,
            "its certificate is for `other.example`, and not for `localhost`",
            "Write a name of the certificate",
        ),
        (
            "localhost",
            &authoritative,
            "its certificate is not usable: it is that of an authority, and not of a server",
            "Have another certificate issued",
        ),
    ];
    for (name, change, reason, remedy) in changes {
        let site = site(authority.site(name, true, change)).await;
        let (text, hint) = asked(authority.trust(), &site).await.expect_err(reason);
        assert_eq!(text, format!("cannot speak TLS with `https://HOST`: {reason}"));
        assert!(hint.starts_with(remedy), "{hint}");
        assert!(site.recorded().is_empty());
    }
    let site = site(authority.site("localhost", true, none)).await;
    let (text, hint) = asked(TestAuthority::new().trust(), &site).await.expect_err("a stranger");
    assert!(text.ends_with("no authority that metamcp trusts has issued its certificate"));
    assert!(hint.contains("tls = { ca ="), "{hint}");
}

#[tokio::test]
async fn a_site_without_tls_is_recognised() {
    let plain = TestSite::open(|_| async { page(200, "") }).await;
    let url = plain.url("/").to_string().replace("http:", "https:");
    let web = WebClient::new(connector(TestAuthority::new().trust()), limits());
    let error = web.fetch(get(url)).await.expect_err("no TLS");
    assert_eq!(text(&error), "cannot speak TLS with `https://HOST`: it does not speak TLS");
    assert!(error.hint().starts_with("Write `http://`"), "{}", error.hint());
}

#[tokio::test]
async fn a_site_that_requires_a_certificate_of_metamcp_gets_the_declared_one() {
    let authority = TestAuthority::new();
    for is_http2 in [true, false] {
        let site = site(authority.site_with_mutual_tls(is_http2)).await;
        let (text, hint) = asked(authority.trust(), &site).await.expect_err("no certificate");
        assert!(text.ends_with("it requires a certificate of metamcp"), "{text}");
        assert!(hint.contains("certificate ="), "{hint}");
        assert_eq!(asked(authority.identity("client"), &site).await, Ok("[7]".to_owned()));
        assert_eq!(site.recorded().len(), 1);
    }
}

#[tokio::test]
async fn a_reload_reads_renewed_certificates_and_keeps_the_old_ones_otherwise() {
    let (old, new) = (TestAuthority::new(), TestAuthority::new());
    let connector = connector(old.trust());
    let site = site(new.site("localhost", false, |_| {})).await;
    let fetch = async || {
        let web = WebClient::new(std::sync::Arc::clone(&connector), limits());
        web.fetch(get(site.url("/"))).await.is_ok()
    };
    assert!(!fetch().await, "a stranger");
    std::fs::write(old.path("ca.pem"), "half a file").expect("written");
    assert_eq!(connector.reload().expect_err("not PEM").code(), "CERTIFICATE_UNUSABLE");
    std::fs::copy(new.path("ca.pem"), old.path("ca.pem")).expect("copied");
    assert!(!fetch().await, "not read yet");
    connector.reload().expect("it is read");
    assert!(fetch().await);
}

#[test]
fn a_declared_file_that_is_no_certificate_is_named() {
    let authority = TestAuthority::new();
    std::fs::write(authority.path("ca.pem"), "no PEM").expect("written");
    let settings = ConnectorSettings { tls: authority.trust(), ..ConnectorSettings::default() };
    let error = Connector::new(settings).expect_err("no PEM");
    assert!(chain(&error).contains("as `tls.ca`: it is not PEM"), "{error}");
}

#[tokio::test]
async fn a_trace_shows_each_step_and_the_certificate() {
    let authority = TestAuthority::new();
    let change = |params: &mut CertificateParams| {
        params.not_after = rcgen::date_time_ymd(2060, 1, 1);
    };
    let secure = site(authority.site("localhost", true, change)).await;
    let connector = connector(authority.trust());
    let trace = async |url: Uri| connector.trace(&Origin::of(&url).expect("an origin")).await;
    let steps =
        |trace: &DialTrace| trace.steps.iter().map(|(step, _)| step.name()).collect::<Vec<_>>();

    let found = trace(secure.url("/")).await;
    assert_eq!(steps(&found), ["resolve", "connect", "TLS"]);
    let tls = found.tls.expect("a TLS connection");
    assert_eq!((tls.version, tls.protocol.as_deref()), ("TLS 1.3", Some("h2")));
    let expires = std::time::UNIX_EPOCH + Duration::from_secs(2_840_140_800);
    assert_eq!(tls.expires, Some(expires));
    assert!(found.error.is_none() && secure.recorded().is_empty());

    let plain = TestSite::open(|_| async { page(200, "") }).await;
    assert_eq!(steps(&trace(plain.url("/")).await), ["resolve", "connect"], "no TLS");
    let found =
        trace(plain.url("/").to_string().replace("http:", "https:").parse().expect("a URL")).await;
    assert_eq!(steps(&found), ["resolve", "connect", "TLS"]);
    assert_eq!(found.error.expect("it fails").code(), "TLS_FAILED");
    let found = trace(Uri::from_static("https://no-such-host.invalid/")).await;
    assert_eq!(steps(&found), ["resolve"]);
    assert_eq!(found.error.expect("it fails").code(), "NAME_UNRESOLVED");
}
