//! Web pages in a real browser as clients.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{Installed, harness::daemon::Daemon};

const TOKEN: &str = "0123456789abcdef";

/// Lets a page at `origin` list the tools and call one.
fn page(servers: &Installed, metamcp: &Daemon, origin: &str, token: &str) -> Value {
    let mut page = servers.typescript("page.mjs");
    let url = metamcp.url("/");
    page.args([origin, &url, token, "everything__echo", r#"{"message":"from a page"}"#]);
    report(page)
}

fn report(mut page: Command) -> Value {
    let output = page.stdin(Stdio::null()).stderr(Stdio::inherit()).output().expect("it starts");
    assert!(output.status.success(), "{}", output.status);
    serde_json::from_slice(&output.stdout).expect("a report")
}

#[test]
fn only_a_page_of_an_allowed_origin_is_served_in_a_browser() {
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
    assert!(
        error.contains("no bearer token, which this service requires"),
        "the page can read the reason: {error}"
    );
    let foreign = page(&servers, &metamcp, "http://evil.example", TOKEN);
    assert_eq!(foreign["error"], "TypeError: Failed to fetch", "{foreign}");
}

#[test]
fn apps_of_several_servers_open_in_a_host_and_call_their_own_tools() {
    let servers = Installed::find();
    let server = |name: &str| {
        let package = format!("npm/node_modules/@modelcontextprotocol/server-{name}/dist/index.js");
        let (node, package) = (servers.path("node"), servers.path(&package));
        format!(
            "[servers.{name}]\ncommand = {node:?}\nargs = [{package:?}, \"--stdio\"]\nstart = \"prewarm\"\n"
        )
    };
    // The first two have a page with the same URI.
    let config: String =
        ["basic-react", "basic-vanillajs", "debug"].iter().map(|name| server(name)).collect();
    let listen = "[listen]\nallowed_origins = [\"http://chat.example\"]\n";
    let metamcp = Daemon::with(listen.to_owned() + &config).ready();

    let mut host = servers.typescript("host.mjs");
    let steps = json!([
        { "tool": "basic-react__get-time", "until": "{text}", "find": "#root" },
        { "tool": "basic-vanillajs__get-time", "until": "{text}", "find": "#server-time" },
        {
            "tool": "debug__debug-tool", "click": "#call-debug-refresh-btn",
            "until": "server-tool-result", "find": "#clear-log-btn",
        },
    ]);
    host.args(["http://chat.example", &metamcp.url("/direct"), &steps.to_string()]);
    let shown = report(host);

    let tools = shown["tools"].as_array().unwrap_or_else(|| panic!("{shown}"));
    assert!(tools.contains(&json!("debug__debug-refresh")), "a tool for pages only: {shown}");
    let of = |at: usize, member: &str| shown["pages"][at][member].clone();
    assert_eq!(of(0, "uri"), "ui://basic-react/get-time/mcp-app.html");
    assert_eq!(of(1, "uri"), "ui://basic-vanillajs/get-time/mcp-app.html");
    // Each page is that of its own server, even with equal URIs.
    assert_eq!([0, 1, 2].map(|at| of(at, "found")), [true, true, true], "{shown}");
    let calls = of(2, "calls");
    let has_called = |tool: &str| calls.as_array().is_some_and(|all| all.contains(&json!(tool)));
    assert!(has_called("debug-refresh"), "{shown}");
}
