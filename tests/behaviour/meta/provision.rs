//! `mcp_provision`: servers that start on request.

use serde_json::json;

use super::{call_of, meta};
use crate::harness::{daemon::Daemon, fake::Fakes, meta_client::each};

const INTENT: &str = "forecast of the weather in a city";

/// Returns the tables of two candidates, one of them trusted.
fn provision(fakes: &Fakes) -> String {
    let later = |name: &str, more: &str| {
        let table = fakes.server(name, &["--rich"]);
        table.replace("[servers.", "[provision.servers.") + more
    };
    "[provision]\ntrusted = [\"internal/*\"]\n".to_owned()
        + &later(
            "weather",
            "namespace = \"internal/weather\"\ndescription = \"Weather and its forecast for a city\"\n",
        )
        + &later(
            "ledger",
            "namespace = \"other/ledger\"\ndescription = \"Invoices and payments of a ledger\"\n",
        )
}

#[tokio::test]
async fn provision_suggests_a_server_and_starts_it_on_request_if_trusted() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(provision(&fakes) + &fakes.server("fake", &[])).ready();
    let meta = meta(&daemon).await;

    let found = meta.value("mcp_provision", json!({ "intent": INTENT })).await;
    assert_eq!(found["source"], "catalog", "{found}");
    assert_eq!(each(&found, "matches", "name")[0], "weather");
    assert_eq!(found["matches"][0]["started"], false);
    assert!(fakes.pids("weather").is_empty(), "the server is only suggested");
    let error = meta.error("mcp_call", call_of("weather", "echo", json!({ "value": 1 }))).await;
    assert_eq!(error["code"], "no_backends");

    let found =
        meta.value("mcp_provision", json!({ "intent": INTENT, "autoProvision": true })).await;
    assert_eq!(
        (&found["server"], &found["matches"][0]["started"]),
        (&json!("weather"), &json!(true)),
        "{found}"
    );
    assert!(each(&found, "tools", "tool").contains(&"echo".to_owned()));
    let called = meta.value("mcp_call", call_of("weather", "echo", json!({ "value": 1 }))).await;
    assert_eq!(called, json!({ "value": 1 }));
    assert_eq!(fakes.pids("weather").len(), 1);

    let arguments = json!({ "intent": "invoices and payments of a ledger", "autoProvision": true });
    let found = meta.value("mcp_provision", arguments).await;
    assert_eq!(
        (&found["matches"][0]["trusted"], &found["matches"][0]["started"]),
        (&json!(false), &json!(false))
    );
    assert!(fakes.pids("ledger").is_empty(), "an untrusted server is not started: {found}");
}

#[tokio::test]
async fn provision_without_candidates_finds_only_the_declared_servers() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &["--rich"])).ready();
    let meta = meta(&daemon).await;
    let found = meta
        .value("mcp_provision", json!({ "intent": "rows of a table", "autoProvision": true }))
        .await;
    assert_eq!(found["source"], "local", "{found}");
    assert_eq!(each(&found, "tools", "tool")[0], "rows");
    let none = meta.value("mcp_provision", json!({ "intent": "zebra xylophone" })).await;
    assert_eq!(none["source"], "none", "{none}");
    let error = meta.refused("mcp_provision", json!({})).await;
    assert!(error["message"].as_str().is_some_and(|text| text.contains("`intent`")), "{error}");
}

#[tokio::test]
async fn concurrent_provision_requests_start_one_process() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(provision(&fakes) + &fakes.server("fake", &[])).ready();
    let meta = meta(&daemon).await;

    let asking = (0..50).map(|n| {
        let intent = if n % 2 == 0 { INTENT } else { "what is the weather in the city" };
        meta.value("mcp_provision", json!({ "intent": intent, "autoProvision": true }))
    });
    let found = futures_util::future::join_all(asking).await;
    let has_echo =
        |found: &serde_json::Value| each(found, "tools", "tool").contains(&"echo".to_owned());
    assert!(found.iter().all(has_echo), "{found:?}");
    assert_eq!(fakes.pids("weather").len(), 1);
    assert!(fakes.pids("ledger").is_empty(), "the server is not trusted");
}
