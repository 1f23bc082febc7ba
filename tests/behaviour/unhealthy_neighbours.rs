//! Servers that hang or crash beside a healthy one, whose clients must not notice.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    harness::{
        client::Client,
        daemon::{Daemon, signal},
        fake::{Fakes, is_alive},
    },
    server_status, until,
};

const CHANGED: &str = "notifications/tools/list_changed";

/// The number of connection attempts to the server that hangs.
const N_ATTEMPTS: usize = 3;

/// The number of reads of each list, and of calls of the healthy server, during one attempt.
const N_ROUNDS: usize = 20;

/// Returns the names of the tools that a client sees.
async fn tools(client: &Client) -> Vec<String> {
    let answer = client.request(json!(1), "tools/list", json!({})).await.answer();
    let tools = answer["result"]["tools"].as_array().expect("a list").iter();
    tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}

/// Returns whether the process `pid` has received its `initialize`.
fn has_received_initialize(fakes: &Fakes, pid: u64) -> bool {
    let events = fakes.events("hang");
    events.iter().any(|event| event["pid"] == pid && event["event"] == "initialize")
}

#[tokio::test]
async fn a_hanging_and_a_crashing_server_do_not_delay_a_healthy_one() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate");
    let servers = [
        fakes.server("hang", &["--start-gate", gate.to_str().expect("UTF-8")]),
        fakes.server("crash", &["--exit-at-start", "3"]),
        fakes.server("good", &[]),
    ];
    let daemon = Daemon::with(servers.concat()).ready();
    let (merged, own) = (
        daemon.client("/").initialized().await,
        daemon.client("/servers/good").initialized().await,
    );
    let mut notices = merged.listen().await;
    // No list is known yet, so this request waits until its timeout.
    assert!(tools(&merged).await.iter().all(|name| name.starts_with("good__")));

    for n_attempts in 1..=N_ATTEMPTS {
        // A request for a list causes the attempt, and is answered without it.
        until(async || {
            assert!(tools(&merged).await.contains(&"good__echo".to_owned()));
            fakes.pids("hang").len() == n_attempts
        })
        .await;
        let alive = || fakes.pids("hang").into_iter().find(|pid| is_alive(*pid));
        let pid = alive().expect("the process of the attempt");
        until(async || has_received_initialize(&fakes, pid)).await;

        for number in 0..N_ROUNDS {
            for list in ["tools/list", "prompts/list", "resources/list"] {
                let answer = merged.request(json!(number), list, json!({})).await.answer();
                assert!(answer["result"].is_object() && answer["id"] == number, "{answer}");
            }
            assert!(tools(&own).await.contains(&"echo".to_owned()));
            let value = json!({ "value": number });
            assert_eq!(merged.call("good__echo", value.clone()).await["value"], number);
            assert_eq!(own.call("echo", value).await["value"], number);
        }

        // All of this happened during one attempt, which still continues.
        assert_eq!(alive(), Some(pid));
        assert_eq!(fakes.pids("hang").len(), n_attempts);
        assert_eq!(server_status(&daemon, "hang").await["state"], "connecting");
        if n_attempts < N_ATTEMPTS {
            signal(pid.try_into().expect("a pid"), Signal::KILL);
            until(async || server_status(&daemon, "hang").await["state"] == "failed").await;
        }
    }

    std::fs::write(&gate, "").expect("written");
    // A client that read a list without the server is notified once it has connected.
    while notices.message().await["method"] != CHANGED {}
    until(async || tools(&merged).await.contains(&"hang__echo".to_owned())).await;
    assert_eq!(fakes.pids("hang").len(), N_ATTEMPTS);
    assert_eq!(fakes.pids("good").len(), 1);
}

#[tokio::test]
async fn clients_are_notified_of_a_late_server_with_exclusive_connections() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate");
    let late = fakes.server("late", &["--start-gate", gate.to_str().expect("UTF-8")])
        + "sharing = \"exclusive\"\n";
    let daemon = Daemon::with(late + &fakes.server("good", &[])).ready();
    let client = daemon.client("/").initialized().await;
    let mut notices = client.listen().await;
    assert!(tools(&client).await.iter().all(|name| name.starts_with("good__")));

    std::fs::write(&gate, "").expect("written");
    let notice: Value = loop {
        let notice = notices.message().await;
        if notice["method"] == CHANGED {
            break notice;
        }
    };

    assert_eq!(notice["id"], Value::Null);
    assert!(tools(&client).await.contains(&"late__echo".to_owned()));
}
