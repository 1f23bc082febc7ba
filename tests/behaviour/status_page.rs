//! The page that shows the service in a browser, without a browser: its access and its content.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use http_body_util::BodyExt as _;
use hyper::{Method, header::HeaderValue};
use serde_json::json;

use crate::harness::{DEADLINE, client::Client, daemon::Daemon, fake::Fakes};

const TOKEN: &str = "canary-0123456789abcdef";
const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");

/// Returns the address of the page, as a header names it.
fn asked_path() -> HeaderValue {
    HeaderValue::from_static("/status")
}

async fn page(client: &Client) -> crate::harness::client::Reply {
    client.send(Method::GET, &[HTML], "").await
}

#[tokio::test]
async fn a_browser_gets_the_page_and_other_programs_get_what_they_got_before() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/").initialized().await;
    client.tool("fake__echo", json!({ "value": 1 })).await;
    client.tool("fake__tool_error", json!({})).await;

    for path in ["/", "/status"] {
        let reply = page(&daemon.client(path)).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.headers["content-type"], "text/html; charset=utf-8");
        let policy = reply.headers["content-security-policy"].to_str().expect("text");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        for text in ["fake", "connected", "echo", "tool_error", ">test<"] {
            let text = text.trim_matches(['<', '>']);
            assert!(reply.body.contains(text), "{text}: {}", reply.body);
        }
        assert!(reply.body.len() < 100_000);
    }
    assert_eq!(daemon.client("/status").get().await.headers["content-type"], "application/json");

    let found = page(&daemon.client("/status?q=echo&tool=fake%2Fecho")).await.body;
    assert!(found.contains("Why it ranks here") && found.contains("inputSchema"), "{found}");
    let listed = page(&daemon.client("/?server=fake")).await.body;
    assert!(listed.contains("The tools of <strong>fake") && listed.contains("tool_error"));
    let unknown = page(&daemon.client("/?server=nothing&tool=nothing%2Fat_all")).await;
    assert!(unknown.status == 200 && unknown.body.contains("class=\"cause\""), "{}", unknown.body);
}

#[tokio::test]
async fn an_open_page_gets_each_section_when_it_changes() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let stream = daemon.client("/status/events").open(Method::GET, &[], "").await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let mut body = stream.into_body();
    let mut text = String::new();
    let all = async {
        while !text.contains("\"id\":\"calls\"") {
            let frame = body.frame().await.expect("open").expect("readable");
            text.push_str(std::str::from_utf8(frame.data_ref().expect("data")).expect("text"));
        }
    };
    tokio::time::timeout(DEADLINE, all).await.expect("in time");
    for section in ["overview", "servers", "clients"] {
        assert!(text.contains(&format!("\"id\":\"{section}\"")), "{text}");
    }
}

#[tokio::test]
async fn a_token_in_the_form_opens_the_page_and_nothing_else() {
    let fakes = Fakes::new();
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("token"), TOKEN).expect("written");
    let config = format!("[listen]\ntoken = \"credential:token\"\n{}", fakes.server("fake", &[]));
    let daemon = Daemon::with(config).env("CREDENTIALS_DIRECTORY", directory.path()).ready();
    let status = daemon.client("/status");
    let asked = page(&status).await;
    assert_eq!(asked.status, 401);
    assert!(asked.body.contains("type=\"password\"") && !asked.body.contains("fake"));
    assert_eq!(asked.headers["www-authenticate"], "Bearer realm=\"metamcp\"");
    assert_eq!(daemon.client("/status/events").get().await.status, 401);
    // The cookie is for this path only.
    let root = page(&daemon.client("/")).await;
    assert_eq!((root.status.as_u16(), &root.headers["location"]), (303, &asked_path()));

    let login = daemon.client("/status/login");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let wrong = login.send(Method::POST, &form, "token=canary-wrong-0123456").await;
    assert_eq!(wrong.status, 401);
    assert!(wrong.body.contains("not the token") && wrong.headers.get("set-cookie").is_none());
    let right = login.send(Method::POST, &form, format!("token={TOKEN}")).await;
    assert_eq!((right.status.as_u16(), &right.headers["location"]), (303, &asked_path()));
    let cookie = right.headers["set-cookie"].to_str().expect("text").to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/status;"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(TOKEN));

    let value = cookie.split(';').next().expect("a pair");
    let browser = status.header("cookie", value);
    assert_eq!(page(&browser).await.status, 200);
    let broken = value.replace(|digit: char| digit.is_ascii_digit(), "0");
    assert_eq!(page(&daemon.client("/status").header("cookie", &broken)).await.status, 401);
    for path in ["/", "/status", "/servers/fake", "/rpc", "/metrics"] {
        let reply = browser.at(path).post(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
        assert_eq!(reply.status, 401, "{path}");
    }
    for path in ["/status", "/metrics", "/readyz"] {
        assert_eq!(browser.at(path).get().await.status, 401, "{path}");
    }
    let bearer = daemon.client("/status").header("authorization", &format!("Bearer {TOKEN}"));
    assert_eq!(page(&bearer).await.status, 200);
    assert!(!daemon.log().contains(TOKEN));
}

#[tokio::test]
async fn the_page_counts_wrong_tokens_and_reads_no_long_form() {
    let daemon = Daemon::with("[listen]\ntoken = \"env:TOKEN\"\n").env("TOKEN", TOKEN).ready();
    let long = daemon.client("/status/login").send(Method::POST, &[], "a".repeat(20_000)).await;
    assert_eq!(long.status, 413);
    // As at each other path, more guesses than are answered in time are refused.
    let wrong = daemon.client("/status").header("authorization", "Bearer canary-wrong-0123456");
    let form = daemon.client("/status/login");
    let guesses = (0..100).map(|number| {
        let (wrong, form) = (wrong.clone(), form.clone());
        async move {
            match number % 2 {
                0 => page(&wrong).await.status.as_u16(),
                _ => form.send(Method::POST, &[], "token=canary-wrong").await.status.as_u16(),
            }
        }
    });
    let mut guesses: FuturesUnordered<_> = guesses.collect();
    let mut answers = BTreeSet::new();
    while answers.len() < 2 {
        answers.insert(guesses.next().await.expect("an answer of 429"));
    }
    assert_eq!(answers, BTreeSet::from([401, 429]));
}

#[tokio::test]
async fn the_page_names_the_remedy_for_a_server_that_cannot_start() {
    let config = "[servers.broken]\ncommand = \"/missing/program\"\nstart = \"eager\"\n";
    let daemon = Daemon::with(config).spawn();
    let failed = async {
        loop {
            let body = page(&daemon.client("/")).await.body;
            if body.contains("metamcp doctor --server broken") {
                return body;
            }
        }
    };
    let body = tokio::time::timeout(DEADLINE, failed).await.expect("in time");
    assert!(body.contains("class=\"cause\"") && body.contains("`command`"), "{body}");
}

#[tokio::test]
async fn a_page_of_another_site_reads_nothing() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    for header in [("host", "evil.example"), ("origin", "https://evil.example")] {
        for (path, method) in [
            ("/", Method::GET),
            ("/status?q=a", Method::GET),
            ("/status/events", Method::GET),
            ("/status/login", Method::POST),
        ] {
            let reply = daemon.client(path).send(method, &[HTML, header], "").await;
            assert_eq!(reply.status, 403, "{path} {header:?}");
        }
    }
}
