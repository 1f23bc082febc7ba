//! The page that shows the service in a browser, without a browser: its access and its content.

use http_body_util::BodyExt as _;
use hyper::Method;
use serde_json::json;

use crate::harness::{DEADLINE, client::Client, daemon::Daemon, fake::Fakes};

const TOKEN: &str = "canary-0123456789abcdef";
const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");

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

    let found = page(&daemon.client("/status?q=echo")).await.body;
    assert!(found.contains("Why it ranks here") && found.contains("Definition"), "{found}");
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
    assert_eq!(daemon.client("/status/events").get().await.status, 401);

    let login = daemon.client("/status/login");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let wrong = login.send(Method::POST, &form, "token=canary-wrong-0123456").await;
    assert_eq!(wrong.status, 401);
    assert!(wrong.body.contains("not the token") && wrong.headers.get("set-cookie").is_none());
    let right = login.send(Method::POST, &form, format!("token={TOKEN}")).await;
    assert_eq!(
        (right.status.as_u16(), &right.headers["location"]),
        (303, &"/status".parse().unwrap())
    );
    let cookie = right.headers["set-cookie"].to_str().expect("text").to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(TOKEN));

    let value = cookie.split(';').next().expect("a pair");
    let browser = status.header("cookie", value);
    assert_eq!(page(&browser).await.status, 200);
    let broken = value.replace('0', "1");
    assert_eq!(page(&daemon.client("/status").header("cookie", &broken)).await.status, 401);
    for path in ["/", "/servers/fake", "/rpc", "/metrics"] {
        let reply = browser.at(path).post(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
        assert_eq!(reply.status, 401, "{path}");
    }
    assert!(!daemon.log().contains(TOKEN));
}

#[tokio::test]
async fn a_page_of_another_site_reads_nothing() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    for header in [("host", "evil.example"), ("origin", "https://evil.example")] {
        let reply = daemon.client("/status").send(Method::GET, &[HTML, header], "").await;
        assert_eq!(reply.status, 403, "{header:?}");
    }
}
