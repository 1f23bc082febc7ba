//! The status page in a real browser, audited by axe-core.
//!
//! `METAMCP_SCREENSHOTS` names a directory for pictures of the page, which a person can look at.

use std::{fs, process::Stdio};

use serde_json::{Value, json};

use super::{Installed, harness::daemon::Daemon};

const TOKEN: &str = "0123456789abcdef";

/// Takes the steps in a browser, and returns the results. The browser must have asked no other host,
/// and its console must be empty.
fn results(servers: &Installed, metamcp: &Daemon, steps: &Value) -> Vec<Value> {
    let mut page = servers.typescript("status_page.mjs");
    page.args([&metamcp.url("/"), &steps.to_string()]);
    let output = page.stdin(Stdio::null()).stderr(Stdio::inherit()).output().expect("it starts");
    assert!(output.status.success(), "{}", output.status);
    let mut report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!((&report["outside"], &report["errors"]), (&json!([]), &json!([])), "{report}");
    serde_json::from_value(report["results"].take()).expect("results")
}

/// Returns the configuration of a real server, of a hostile one and of one that cannot start.
fn config(servers: &Installed) -> String {
    let hostile = format!("{}/tests/real/hostile.mjs", env!("CARGO_MANIFEST_DIR"));
    let node = servers.path("node");
    format!(
        "{}\n[servers.hostile]\ncommand = {node:?}\nargs = [{hostile:?}]\n\n[servers.broken]\ncommand = \"/missing/program\"\n",
        servers.config_with("prewarm")
    )
}

fn call(tool: &str, client: &str) -> Value {
    json!({ "call": { "tool": tool, "arguments": { "message": "hello" }, "client": client } })
}

#[test]
fn the_page_has_no_accessibility_violation_in_any_light_or_width() {
    let servers = Installed::find();
    let metamcp = Daemon::with(config(&servers)).ready();
    let mut steps = vec![
        call("everything__echo", "first"),
        call("hostile__attack", "<img src=x onerror=\"window.pwned=1\">"),
        call("broken__any", "third"),
    ];
    let kept = std::env::var_os("METAMCP_SCREENSHOTS");
    for (width, dark) in [(1280, false), (1280, true), (390, false), (390, true)] {
        for (name, path) in [
            ("page", "/status"),
            ("search", "/?q=echo&tool=everything/echo"),
            ("server", "/status?server=hostile&tool=hostile/attack"),
        ] {
            steps.push(json!({ "go": path, "width": width, "dark": dark }));
            steps.push(json!({ "until": "document.getElementById('live').textContent.includes('is live')" }));
            steps.push(json!({ "audit": true }));
            steps.push(json!({ "evaluate": "document.documentElement.scrollWidth <= innerWidth" }));
            if let Some(directory) = &kept {
                let file = format!("{name}-{width}-{dark}.png");
                steps.push(json!({ "screenshot": std::path::Path::new(directory).join(file) }));
            }
        }
        steps.push(json!({ "unreached": true }));
    }
    steps.push(
        json!({ "evaluate": "window.pwned === undefined && !document.querySelector('img')" }),
    );
    let found = results(&servers, &metamcp, &json!(steps));
    assert_eq!(found.len(), 4 * 7 + 1);
    for (index, result) in found.iter().enumerate() {
        assert!([json!([]), json!(true)].contains(result), "{index}: {result:#}");
    }
}

#[test]
fn the_page_follows_a_change_with_scripts_and_shows_everything_without_them() {
    let servers = Installed::find();
    let metamcp = Daemon::with(config(&servers)).ready();
    let text =
        |id: &str| json!({ "evaluate": format!("document.getElementById('{id}').innerText") });
    let found = results(
        &servers,
        &metamcp,
        &json!([
            { "go": "/" },
            { "until": "document.getElementById('live').textContent.includes('is live')" },
            { "evaluate": "document.getElementById('server-everything').focus(); 0" },
            call("everything__echo", "a follower"),
            { "until": "document.getElementById('calls').innerText.includes('a follower')" },
            { "evaluate": "document.activeElement.id" },
            { "go": "/status", "scripts": false },
            text("live"), text("overview"), text("servers"), text("clients"), text("calls"),
            { "press": "Tab" }, { "press": "Tab" }, { "press": "Tab" }, { "press": "Tab" },
            { "press": "Tab" }, { "press": "Tab" }, { "press": "Tab" },
            { "evaluate": "document.activeElement.id" },
            { "write": "sum of two numbers" },
            { "press": "Enter", "loads": true },
            { "evaluate": "document.querySelector('.tools').innerText" },
            { "evaluate": "getComputedStyle(document.querySelector('details')).display" },
        ]),
    );
    assert_eq!(found[1], "server-everything", "the focus stays where it was: {found:?}");
    let shown = |index: usize| found[index].as_str().unwrap_or_default();
    assert_eq!(shown(2), "This page shows one moment.");
    for (index, parts) in [
        (3, &["Version", "Processes", "with metamcp", "Memory"][..]),
        (4, &["everything", "connected", "MCP 20", "1 call,", "MiB", "broken"]),
        (5, &["a follower", "http", "Tokens that tool lists cost"]),
        (6, &["everything / echo", "ok", " ms"]),
    ] {
        for part in parts {
            assert!(shown(index).contains(part), "{part}: {}", shown(index));
        }
    }
    assert_eq!(shown(7), "q", "Tab leads to the search: {found:?}");
    assert!(shown(8).contains("everything / get-sum"), "{}", shown(8));
    assert!(shown(8).contains("Why it ranks here"), "{}", shown(8));
}

#[test]
fn a_person_logs_in_with_the_keyboard_and_the_login_form_has_no_violation() {
    let servers = Installed::find();
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("token"), TOKEN).expect("written");
    let config = format!("[listen]\ntoken = \"credential:token\"\n{}", servers.config());
    let metamcp = Daemon::with(config).env("CREDENTIALS_DIRECTORY", directory.path()).ready();
    let mut steps = Vec::new();
    for (width, dark) in [(1280, false), (1280, true), (390, false), (390, true)] {
        steps.push(json!({ "go": "/", "width": width, "dark": dark }));
        steps.push(json!({ "audit": true }));
        steps.push(json!({ "unreached": true }));
    }
    for token in ["a wrong token of a person", TOKEN] {
        steps.push(json!({ "evaluate": "document.getElementById('token').focus(); []" }));
        steps.push(json!({ "write": token }));
        steps.push(json!({ "press": "Enter", "loads": true }));
        steps.push(json!({ "audit": true }));
    }
    steps.push(json!({ "evaluate": "document.querySelectorAll('section').length === 5 ? [] : document.body.innerText" }));
    steps.push(
        json!({ "until": "document.getElementById('live').textContent.includes('is live')" }),
    );
    steps.push(json!({ "evaluate": "document.cookie === '' ? [] : 'a script reads the cookie'" }));
    let found = results(&servers, &metamcp, &json!(steps));
    assert!(found.iter().all(|result| *result == json!([])), "{found:#?}");
}
