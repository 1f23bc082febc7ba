//! Upstreams over HTTPS: HTTP/1.1 and HTTP/2, streams, certificates, portals.

use serde_json::json;

use crate::{
    all,
    harness::{
        daemon::Daemon, fake::Upstream, scripted_upstream::ScriptedUpstream, tls::Authority,
        tls_front::TlsFront,
    },
};

/// Returns the configuration of the server `up` at `front`, which trusts `authority`.
fn server(front: &TlsFront, authority: &Authority) -> String {
    format!("[servers.up]\nurl = {:?}\ntls = {{ ca = {:?} }}\n", front.url, authority.ca())
}

#[tokio::test]
async fn an_https_upstream_is_called_over_either_version_of_http() {
    for is_http2 in [false, true] {
        let (upstream, authority) = (Upstream::start(&[]), Authority::new());
        let front = TlsFront::start(&authority, &upstream.url, is_http2).await;
        let daemon = Daemon::with(server(&front, &authority)).ready();
        let client = daemon.client("/servers/up");
        let text = "x".repeat(1 << 20);
        let reply = client.tool("echo", json!({ "value": text })).await;
        assert!(reply.answer()["result"]["structuredContent"]["value"] == text.as_str());
        let calls = (0..32).map(|number| client.tool("echo", json!({ "value": number })));
        for (number, reply) in all(calls).await.into_iter().enumerate() {
            let answer = reply.answer();
            assert_eq!(answer["result"]["structuredContent"]["value"], number, "{answer}");
        }
        assert_eq!(front.n_http2_requests() > 32, is_http2);
        assert!(!is_http2 || front.n_connections() <= 4, "{}", front.n_connections());
    }
}

#[tokio::test]
async fn legacy_sse_works_over_https() {
    for is_http2 in [false, true] {
        let (upstream, authority) = (Upstream::sse(&[]), Authority::new());
        let front = TlsFront::start(&authority, &upstream.url, is_http2).await;
        let daemon = Daemon::with(server(&front, &authority)).ready();
        let client = daemon.client("/servers/up");
        for number in 0..3 {
            let answer = client.tool("echo", json!({ "value": number })).await.answer();
            assert_eq!(answer["result"]["structuredContent"]["value"], number, "{answer}");
        }
    }
}

#[tokio::test]
async fn an_untrusted_upstream_is_refused_with_reason_and_remedy() {
    let (upstream, authority) = (Upstream::start(&[]), Authority::new());
    let front = TlsFront::start(&authority, &upstream.url, true).await;
    let stranger = Authority::new();
    let daemon = Daemon::with(server(&front, &stranger)).ready();
    let answer = daemon.client("/servers/up").tool("echo", json!({})).await.answer();
    let text = answer.to_string();
    assert!(text.contains("no authority that metamcp trusts has issued its certificate"), "{text}");
    assert!(text.contains("tls = { ca ="), "{text}");
    assert_eq!(front.n_connections(), 0);
}

#[tokio::test]
async fn a_redirect_of_an_upstream_names_its_target_and_is_not_followed() {
    let upstream = ScriptedUpstream::start(|_, response| {
        response.raw(
            "HTTP/1.1 302 X\r\nlocation: https://login.example/start?secret=1\r\ncontent-length: 0\r\n\r\n",
        );
        true
    });
    let daemon = Daemon::with(upstream.server("")).ready();
    let answer = daemon.client("/servers/up").tool("echo", json!({})).await.answer();
    let text = answer.to_string();
    assert!(text.contains("it redirects to https://login.example"), "{text}");
    assert!(text.contains("UPSTREAM_REDIRECT") && !text.contains("secret"), "{text}");
}

#[tokio::test]
async fn the_page_of_a_portal_is_reported_as_such() {
    let upstream = ScriptedUpstream::start(|_, response| {
        response.page(200, "text/html; charset=utf-8", "<h1>Sign in</h1>");
        true
    });
    let daemon = Daemon::with(upstream.server("")).ready();
    let answer = daemon.client("/servers/up").tool("echo", json!({})).await.answer();
    let text = answer.to_string();
    assert!(text.contains("the upstream answered with a web page (HTTP 200 OK)"), "{text}");
    assert!(text.contains("UPSTREAM_WEB_PAGE"), "{text}");
}
