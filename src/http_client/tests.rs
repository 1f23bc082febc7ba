//! Tests that the client reports every behaviour of an API in time and never shows the key.

use std::{future::pending, time::Duration};

use bytes::Bytes;
use hyper::{
    Request, Uri,
    header::{HeaderValue, LOCATION, RETRY_AFTER},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;
use crate::{config::ProxyConfig, error_report::chain, fault_class::Fault};

mod certificates;
mod http2;
mod proxy;
pub(crate) mod test_site;
mod tls;

use test_site::{TestSite, page};

const KEY: &str = "sk-0123456789";

fn limits() -> WebLimits {
    WebLimits { timeout: Duration::from_secs(30), body_bytes_max: 1 << 10 }
}

fn client(url: Uri) -> JsonClient {
    JsonClient::new(url, Some(KEY), limits(), &ProxyConfig::None).expect("a client")
}

/// Returns the error of a client whose API answers with this status and body.
async fn error_of(status: u16, body: &str) -> WebError {
    let body = body.to_owned();
    let site = TestSite::open(move |_| std::future::ready(page(status, body.clone()))).await;
    let error = client(site.url("/v1")).get::<Value>(None).await.expect_err("no answer");
    let shown = format!("{} {error:?} {}", chain(&error), error.hint());
    assert!(!shown.contains(KEY), "{shown}");
    assert_eq!(site.recorded().len(), 1, "no request is sent twice");
    error
}

/// Returns the text of an error without the port.
fn text(error: &WebError) -> String {
    let text = chain(error);
    let Some((before, after)) = text.split_once("localhost:") else { return text };
    format!("{before}HOST{}", after.trim_start_matches(|digit: char| digit.is_ascii_digit()))
}

#[tokio::test]
async fn the_json_client_sends_requests_and_reads_answers() {
    let site =
        TestSite::open(|recorded| async move { page(200, format!("[{:?}]", recorded.line)) }).await;
    let client = client(site.url("/v1/things?version=2"));

    let found: Vec<String> = client.get(None).await.expect("an answer");
    assert_eq!(found, ["GET /v1/things?version=2"]);
    let found: Vec<String> = client.get(Some("/v0/other?q=a%20b")).await.expect("an answer");
    assert_eq!(found, ["GET /v0/other?q=a%20b"]);
    let found: Vec<String> = client.post(&json!({ "a": 1 })).await.expect("an answer");
    assert_eq!(found, ["POST /v1/things?version=2"]);

    let recorded = site.recorded();
    assert_eq!(recorded[2].json(), json!({ "a": 1 }));
    assert_eq!(recorded[2].header("content-type"), "application/json");
    for recorded in recorded {
        assert_eq!(recorded.header("authorization"), format!("Bearer {KEY}"));
        assert_eq!(recorded.header("host"), site.url("/").authority().expect("one").as_str());
        assert!(recorded.header("user-agent").starts_with("metamcp/"));
    }
    assert_eq!(site.n_connections(), 1, "a connection is used again");
}

#[tokio::test]
async fn a_request_goes_to_no_other_authority() {
    let site = TestSite::open(|_| async { page(200, "[]") }).await;
    let client = client(site.url("/"));
    for target in ["@elsewhere/", "http://elsewhere/", "", "/a b", "*"] {
        let error = client.get::<Value>(Some(target)).await.expect_err(target);
        assert_eq!(error.code(), "TARGET_INVALID", "{target}");
    }
    assert!(site.recorded().is_empty());
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let error = error_of(307, "").await;
    assert_eq!(text(&error), "`http://HOST` answered 307 Temporary Redirect");
    assert!(
        error.hint().starts_with("Write the URL that the redirect leads to"),
        "{}",
        error.hint()
    );
}

#[tokio::test]
async fn an_error_status_is_reported_with_the_answer_but_without_the_key() {
    let error = error_of(401, &format!("no such key:\n{KEY}")).await;
    assert_eq!(text(&error), "`http://HOST` answered 401 Unauthorized: no such key: [secret]");
    assert_eq!((error.code(), error.fault()), ("HTTP_STATUS", Fault::Auth));
    let error = error_of(500, &"x".repeat(100_000)).await;
    assert_eq!(text(&error), "`http://HOST` answered 500 Internal Server Error");
    assert_eq!(error.fault(), Fault::Http);
    let long = error_of(503, &"x".repeat(10_000)).await;
    assert!(text(&long).len() < 1000, "{long}");
    assert_eq!(error_of(204, "").await.code(), "HTTP_STATUS");
}

#[tokio::test]
async fn an_error_keeps_the_retry_after_of_the_api() {
    let site = TestSite::open(|_| async {
        let mut answer = page(429, "slow down");
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("7"));
        answer
    })
    .await;
    let error = client(site.url("/")).get::<Value>(None).await.expect_err("no answer");
    let WebError::Status { retry_after, .. } = error else { panic!("{error}") };
    assert_eq!(retry_after, Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn an_answer_that_is_too_large_or_not_json_is_refused() {
    let error = error_of(200, &"1".repeat(1025)).await;
    assert_eq!(text(&error), "the answer of `http://HOST` has more than 1024 bytes");
    assert_eq!(error.code(), "TOO_LARGE");

    let error = error_of(200, &format!("<h1>{KEY}</h1>")).await;
    assert_eq!(
        text(&error),
        "the answer of `http://HOST` is not the expected JSON: expected value at line 1 column 1: <h1>[secret]</h1>"
    );
    assert_eq!((error.code(), error.fault()), ("NOT_JSON", Fault::Protocol));

    // The error for a value of the wrong type quotes that value, too.
    let site = TestSite::open(|_| async { page(200, format!("{KEY:?}")) }).await;
    let error = client(site.url("/")).get::<u32>(None).await.expect_err("no number");
    assert!(text(&error).contains("invalid type: string \"[secret]\""), "{error}");
}

#[tokio::test]
async fn an_absent_api_and_one_that_breaks_off_are_different_errors() {
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url: Uri = format!("http://{}", gone.local_addr().expect("bound")).parse().expect("a URL");
    drop(gone);
    let error = client(url).get::<Value>(None).await.expect_err("absent");
    assert_eq!((error.code(), error.fault()), ("UNREACHABLE", Fault::Offline));

    for beginning in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n[1,"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let client = client(url.parse().expect("a URL"));
        let leave = async {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let _head = stream.read(&mut [0; 4096]).await;
            stream.write_all(beginning.as_bytes()).await.expect("written");
        };
        let (answer, ()) = tokio::join!(client.get::<Value>(None), leave);
        assert_eq!(answer.expect_err("half an answer").code(), "BROKEN_OFF");
    }
}

#[tokio::test]
async fn a_silent_api_times_out() {
    let site = TestSite::open(|_| pending()).await;
    let limits = WebLimits { timeout: Duration::from_millis(20), ..limits() };
    let client =
        JsonClient::new(site.url("/"), None, limits, &ProxyConfig::None).expect("a client");
    let error = client.get::<Value>(None).await.expect_err("no answer");
    assert_eq!(text(&error), "`http://HOST` has not answered within 20 ms");
    assert_eq!((error.code(), error.fault()), ("TIMEOUT", Fault::Offline));
}

#[test]
fn a_token_that_cannot_be_sent_is_refused_and_not_shown() {
    let url: Uri = "https://user:pass@host/secret".parse().expect("a URL");
    let client = JsonClient::new(url, Some("a\nb"), limits(), &ProxyConfig::None);
    let error = client.expect_err("no header");
    assert_eq!(chain(&error), "the token for `https://host` has characters that cannot be sent");
    assert_eq!(error.code(), "TOKEN_INVALID");
}

/// Returns a client without proxy that may ask for anything that the policy allows.
fn web(policy: AddressPolicy) -> WebClient {
    let settings = ConnectorSettings { policy, ..ConnectorSettings::default() };
    WebClient::new(Connector::new(settings).expect("a connector"), limits())
}

fn get(url: impl ToString) -> Request<Bytes> {
    Request::get(url.to_string()).body(Bytes::new()).expect("a request")
}

#[tokio::test]
async fn a_fetch_returns_any_status_and_keeps_the_headers() {
    let site = TestSite::open(|_| async { page(404, "gone") }).await;
    let web = web(AddressPolicy::declared());
    for _ in 0..2 {
        let answer = web.fetch(get(site.url("/a?b"))).await.expect("an answer");
        assert_eq!((answer.status().as_u16(), answer.body().as_ref()), (404, &b"gone"[..]));
        assert_eq!(answer.headers()["content-type"], "application/json");
    }
    assert_eq!(site.recorded()[0].line, "GET /a?b");
    assert_eq!(site.n_connections(), 1);
    let error = web.fetch(get("/a")).await.expect_err("no URL");
    assert_eq!(error.code(), "URL_INVALID");
}

#[tokio::test]
async fn a_fetch_follows_a_few_redirects_within_its_origin() {
    let site = TestSite::open(|recorded| async move {
        let (status, location) = match recorded.line.as_str() {
            "GET /1" => (302, "/2"),
            "GET /2" => (307, "3"),
            "GET /away" => (302, "https://evil.example/x?y"),
            "GET /round" => (302, "/round"),
            "POST /1" => (303, "/2"),
            _ => (200, ""),
        };
        let mut answer = page(status, "");
        answer.headers_mut().insert(LOCATION, HeaderValue::from_static(location));
        answer
    })
    .await;
    let web = web(AddressPolicy::declared());
    let answer = web.fetch(get(site.url("/1"))).await.expect("an answer");
    assert_eq!(answer.status(), 200);
    assert_eq!(site.recorded()[2].line, "GET /3");

    let error = web.fetch(get(site.url("/away"))).await.expect_err("another origin");
    assert_eq!(
        text(&error),
        "`http://HOST` redirects to `https://evil.example`, which metamcp does not follow"
    );
    let n_before = site.recorded().len();
    let error = web.fetch(get(site.url("/round"))).await.expect_err("no end");
    assert_eq!((error.code(), site.recorded().len() - n_before), ("REDIRECTED", 4));
    let post = Request::post(site.url("/1")).body(Bytes::new()).expect("a request");
    assert_eq!(web.fetch(post).await.expect_err("a POST").code(), "REDIRECTED");
}

#[tokio::test]
async fn a_name_that_leads_to_a_forbidden_address_is_not_dialed() {
    let site = TestSite::open(|_| async { page(200, "") }).await;
    let public = web(AddressPolicy::discovered(&Uri::from_static("https://8.8.8.8/mcp")));
    let error = public.fetch(get(site.url("/"))).await.expect_err("it is not https");
    assert_eq!(error.code(), "ADDRESS_FORBIDDEN", "{error}");
    let local = site.url("/").to_string().replace("http:", "https:");
    let error = public.fetch(get(local)).await.expect_err("it is on this host");
    assert!(chain(&error).ends_with("127.0.0.1 is on this host"), "{error}");
    assert_eq!(site.n_connections(), 0);

    let loopback = web(AddressPolicy::discovered(&Uri::from_static("http://127.0.0.1:9/mcp")));
    loopback.fetch(get(site.url("/"))).await.expect("a neighbour on this host");
}

#[tokio::test]
async fn a_name_without_an_address_is_reported() {
    let error = web(AddressPolicy::declared()).fetch(get("http://nowhere.invalid/")).await;
    let error = error.expect_err("no address");
    assert_eq!(error.code(), "NAME_UNRESOLVED");
    assert!(error.to_string().starts_with("the name `nowhere.invalid` cannot be resolved"));
}
