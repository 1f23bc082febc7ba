//! One client whose requests fail, on a server that another client uses.

use serde_json::{Value, json};

use super::Bystanders;
use crate::{
    all,
    harness::{
        client::Client,
        daemon::Daemon,
        fake::{Fakes, executions},
    },
    server_status,
};

/// The number of consecutive failures that open the breaker.
const THRESHOLD: u64 = 5;

/// A request timeout that is long enough for bystanders on a busy machine.
const SHORT_TIMEOUT: &str = "[service]\nrequest_timeout = \"3s\"\n";

fn code(answer: &Value) -> &str {
    answer["error"]["data"]["code"].as_str().unwrap_or_default()
}

/// Lets calls of a client time out, and returns the state of the breaker.
async fn hang(daemon: &Daemon, client: &Client, n_calls: u64) -> Value {
    let calls = (0..n_calls).map(|_| client.tool("hold", json!({ "key": "never" })));
    for reply in all(calls).await {
        let answer = reply.answer();
        assert_eq!(code(&answer), "TIMEOUT", "{answer}");
    }
    server_status(daemon, "fake").await["breaker"].clone()
}

#[tokio::test]
async fn hanging_calls_of_one_client_do_not_open_the_breaker_for_another_client() {
    let fakes = Fakes::new();
    let config = SHORT_TIMEOUT.to_owned() + &fakes.server("fake", &[]) + &fakes.server("calm", &[]);
    let daemon = Daemon::with(config).ready();
    let bystanders = Bystanders::start(&daemon, "/servers/calm").await;
    let [bad, good] = [(); 2].map(|()| daemon.client("/servers/fake"));
    let (bad, good) = (bad.initialized().await, good.initialized().await);
    let answer = good.tool("echo", json!({ "value": 1 })).await.answer();
    assert!(answer["result"].is_object(), "{answer}");

    let breaker = hang(&daemon, &bad, 2 * THRESHOLD).await;

    assert_eq!((&breaker["state"], &breaker["trips"]), (&json!("normal"), &json!(0)), "{breaker}");
    assert_eq!(breaker["failures"], THRESHOLD - 1);
    let answer = good.tool("echo", json!({ "value": 2 })).await.answer();
    assert_eq!(answer["result"]["structuredContent"]["value"], 2, "{answer}");
    bystanders.end().await;
}

#[tokio::test]
async fn hanging_calls_of_the_only_client_open_the_breaker() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(SHORT_TIMEOUT.to_owned() + &fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake").initialized().await;
    let breaker = hang(&daemon, &client, THRESHOLD).await;
    assert_eq!(breaker["state"], "open", "{breaker}");
}

#[tokio::test]
async fn one_request_starts_its_server_at_most_twice() {
    let fakes = Fakes::new();
    let state = fakes.path("state").display().to_string();
    let options = ["--state", &state, "--exit-first", "1"];
    let config =
        fakes.server("fake", &options) + "retry = \"vital\"\n" + &fakes.server("calm", &[]);
    let daemon = Daemon::with(config).ready();
    let bystanders = Bystanders::start(&daemon, "/servers/calm").await;
    let client = daemon.client("/servers/fake");

    // The first process exits before it serves, and the second one during the call.
    let call = json!({ "key": "k", "then": "exit" });
    let answer = client.tool("count", call).await.answer();

    assert_eq!(code(&answer), "SERVER_EXITED", "{answer}");
    assert_eq!(fakes.pids("fake").len(), 2);
    assert_eq!(executions(fakes.path("state").as_path())["k"], 1);
    bystanders.end().await;
}
