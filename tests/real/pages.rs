//! Pages in a real browser that are clients.

use std::process::Stdio;

use serde_json::Value;

use super::{Installed, harness::daemon::Daemon};

const TOKEN: &str = "0123456789abcdef";

/// Has a page at `origin` list the tools and call one.
fn page(servers: &Installed, metamcp: &Daemon, origin: &str, token: &str) -> Value {
    let mut page = servers.typescript("page.mjs");
    let url = metamcp.url("/");
    page.args([origin, &url, token, "everything__echo", r#"{"message":"from a page"}"#]);
    let output = page.stdin(Stdio::null()).stderr(Stdio::inherit()).output().expect("it starts");
    assert!(output.status.success(), "{}", output.status);
    serde_json::from_slice(&output.stdout).expect("a report")
}

#[test]
fn a_page_of_an_allowed_origin_is_served_in_a_browser_and_no_other_is() {
    let servers = Installed::find();
    let listen =
        "[listen]\ntoken = \"env:PAGE_TOKEN\"\nallowed_origins = [\"http://chat.example\"]\n";
    let config = listen.to_owned() + &servers.config();
    let metamcp = Daemon::with(config).env("PAGE_TOKEN", TOKEN).ready();

    let served = page(&servers, &metamcp, "http://chat.example", TOKEN);
    assert_eq!(served["text"], "Echo: from a page", "{served}");
    assert!(served["tools"].as_array().is_some_and(|tools| tools.len() > 10), "{served}");
    assert!(served["session"].is_string(), "the page reads the header: {served}");

    let denied = page(&servers, &metamcp, "http://chat.example", "");
    let error = denied["error"].as_str().expect("an error");
    assert!(error.contains("token of this service"), "it may read why: {error}");
    let foreign = page(&servers, &metamcp, "http://evil.example", TOKEN);
    assert_eq!(foreign["error"], "TypeError: Failed to fetch", "{foreign}");
}
