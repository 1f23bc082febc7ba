//! The test of environment variables on requests to web APIs: they set the trusted certificates,
//! and nothing else.
//!
//! A process with threads cannot set variables safely. So each test starts this program again with
//! the variables, for a single request.
#![expect(clippy::disallowed_methods, reason = "starts itself once more with other variables")]

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    process::Command,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use metamcp::{
    config::{ProxyConfig, search},
    embedding::Embedder,
    error_report::chain,
    http_client::{JsonClient, WebLimits},
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio_rustls::rustls::{self, ServerConfig, ServerConnection, crypto::ring};

/// The variable with the URL of the request.
const URL: &str = "SURROUNDINGS_URL";

/// A time limit longer than any of these tests takes.
const LONG: Duration = Duration::from_secs(60);

fn url() -> hyper::Uri {
    let url = std::env::var(URL).expect("started by another test of this file");
    url.parse().expect("a URL")
}

/// Starts one test of this program with variables, and returns whether it passed.
fn run(test: &str, url: &str, variables: &[(&str, &str)]) -> bool {
    let program = std::env::current_exe().expect("a test knows its own path");
    let mut command = Command::new(program);
    command.args([test, "--exact", "--ignored"]).env(URL, url);
    command.env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR");
    let output = command.envs(variables.iter().copied()).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("running 1 test"), "{told}");
    output.status.success()
}

/// Answers one request with one vector, and returns the request.
fn endpoint() -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1/embeddings", listener.local_addr().expect("bound"));
    let answering = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client connects");
        let mut request = String::new();
        // The request is small, but may still arrive in several chunks.
        while !request.ends_with('}') {
            let mut piece = [0; 4096];
            let n_bytes = stream.read(&mut piece).expect("readable");
            assert!(n_bytes > 0, "it breaks off: {request}");
            request.push_str(&String::from_utf8_lossy(&piece[..n_bytes]));
        }
        let body = "{\"data\":[{\"embedding\":[3,4]}]}";
        let length = body.len();
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}")
            .expect("written");
        request
    });
    (url, answering)
}

#[test]
fn no_key_and_no_proxy_of_the_environment_is_used() {
    let unused = TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxy = format!("http://{}", unused.local_addr().expect("bound"));
    let (url, answering) = endpoint();
    let variables = [
        ("OPENAI_API_KEY", "sk-ambient"),
        ("OPENAI_BASE_URL", proxy.as_str()),
        ("HTTP_PROXY", &proxy),
        ("http_proxy", &proxy),
        ("ALL_PROXY", &proxy),
        ("all_proxy", &proxy),
    ];
    assert!(run("a_query_is_answered", &url, &variables));

    let request = answering.join().expect("it was asked").to_ascii_lowercase();
    assert!(request.starts_with("post /v1/embeddings http/1.1\r\n"), "{request}");
    assert!(!request.contains("authorization") && !request.contains("ambient"), "{request}");
    unused.set_nonblocking(true).expect("it takes the mode");
    assert!(unused.accept().is_err(), "no request reaches the proxy");
}

#[tokio::test]
#[ignore = "started by another test"]
async fn a_query_is_answered() {
    let declared = search::EmbeddingConfig { url: url(), model: "m".to_owned(), api_key: None };
    let embedder = Embedder::new(&declared, None, None, &ProxyConfig::None).expect("an embedder");
    let asking = async {
        loop {
            // A late answer is cached for the next query.
            if let Some(vector) = embedder.query("a").await {
                return vector;
            }
        }
    };
    let vector = tokio::time::timeout(LONG, asking).await.expect("an answer");
    assert_eq!(*vector, [0.6, 0.8]);
}

/// Serves TLS on `n_connections` connections, and answers one request on each.
fn secure(
    certified: &CertifiedKey<rcgen::KeyPair>,
    n_connections: usize,
) -> (String, JoinHandle<()>) {
    let key = certified.signing_key.serialize_der().try_into().expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .expect("a pair");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let answering = thread::spawn(move || {
        for stream in listener.incoming().take(n_connections) {
            let mut stream = stream.expect("a connection");
            let mut tls = ServerConnection::new(Arc::clone(&config)).expect("a server");
            let mut stream = rustls::Stream::new(&mut tls, &mut stream);
            // A client that does not trust the certificate disconnects.
            if stream.read(&mut [0; 4096]).is_ok() {
                let answer = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n7";
                stream.write_all(answer.as_bytes()).expect("written");
            }
        }
    });
    (format!("https://localhost:{port}/"), answering)
}

#[test]
fn ssl_cert_file_selects_the_certificates_that_tls_trusts() {
    let names = ["localhost".to_owned()];
    let certified = generate_simple_self_signed(names).expect("a certificate");
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: String| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let trusted = file("trusted.pem", pem(&certified));
    let (url, answering) = secure(&certified, 2);
    assert!(run("tls_is_spoken", &url, &[("SSL_CERT_FILE", &trusted)]));
    let stranger = generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let stranger = file("stranger.pem", pem(&stranger));
    assert!(run("tls_fails", &url, &[("SSL_CERT_FILE", &stranger)]));
    answering.join().expect("both came");
    let empty = file("empty.pem", String::new());
    assert!(run("an_empty_certificate_file_is_refused", &url, &[("SSL_CERT_FILE", &empty)]));
}

fn pem(certified: &CertifiedKey<rcgen::KeyPair>) -> String {
    let base64 = BASE64_STANDARD.encode(certified.cert.der());
    format!("-----BEGIN CERTIFICATE-----\n{base64}\n-----END CERTIFICATE-----\n")
}

fn client() -> Result<JsonClient, metamcp::http_client::WebError> {
    let limits = WebLimits { timeout: LONG, body_bytes_max: 1 << 10 };
    JsonClient::new(url(), None, limits, &ProxyConfig::None)
}

#[tokio::test]
#[ignore = "started by another test"]
async fn tls_is_spoken() {
    let found: u32 = client().expect("a client").get(None).await.expect("an answer");
    assert_eq!(found, 7);
}

#[tokio::test]
#[ignore = "started by another test"]
async fn tls_fails() {
    let found = client().expect("a client").get::<u32>(None).await;
    assert_eq!(found.expect_err("a stranger").code(), "TLS_FAILED");
}

#[tokio::test]
#[ignore = "started by another test"]
async fn an_empty_certificate_file_is_refused() {
    let error = client().expect_err("no roots");
    assert!(chain(&error).starts_with("cannot find the certificates of issuers"), "{error}");
    assert_eq!(error.code(), "NO_TRUST");
}
