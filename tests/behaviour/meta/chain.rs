//! `run_chain`: tools that run one after the other.

use serde_json::{Value, json};

use super::{meta, n_calls};
use crate::harness::{
    client::running,
    daemon::Daemon,
    fake::Fakes,
    meta_client::{MetaClient, each},
    modern::Modern,
};

const SET: &str = "[tools]\nsets = [\"metatools\"]\n";

fn daemon(fakes: &Fakes) -> Daemon {
    let config =
        SET.to_owned() + &fakes.server("one", &["--rich"]) + &fakes.server("two", &["--rich"]);
    Daemon::with(config).ready()
}

fn step(id: &str, args: Value) -> Value {
    json!({ "tool_id": id, "args": args })
}

fn rows(server: &str, n: u64) -> Value {
    step(&format!("{server}/rows"), json!({ "table": "parts", "n": n }))
}

fn chain(steps: &[Value]) -> Value {
    json!({ "steps": steps })
}

/// Runs a chain that fails, and returns its whole structured value.
async fn failed_chain(meta: &MetaClient, steps: &[Value]) -> Value {
    let result = meta.result("run_chain", chain(steps)).await;
    assert_eq!(result["isError"], true, "{result}");
    let outcome = result["structuredContent"].clone();
    assert_eq!(outcome["error"]["code"], "chain_step_failed", "{outcome}");
    assert_eq!(outcome["error"]["op"], "run_chain");
    // The text contains the failure and the earlier results, too.
    let text: Value =
        serde_json::from_str(result["content"][1]["text"].as_str().expect("a text")).expect("JSON");
    assert_eq!(text, outcome);
    outcome
}

#[tokio::test]
async fn a_step_can_use_the_result_of_the_previous_step_at_another_server() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let meta = meta(&daemon).await;
    let mut second = rows("two", 2);
    second["use_previous"] = json!(true);

    let outcome = meta.value("run_chain", chain(&[rows("one", 1), second, rows("one", 3)])).await;

    let results = outcome["results"].as_array().expect("results");
    assert_eq!(each(&outcome, "results", "tool_id"), ["one/rows", "two/rows", "one/rows"]);
    assert_eq!(results[1]["structured"]["previous"], results[0]["structured"]);
    assert_eq!(results[2]["structured"].get("previous"), None, "only with `use_previous`");
    assert_eq!(outcome["final"], results[2]["structured"]);
    let servers: Vec<&Value> =
        results.iter().map(|result| &result["backend"]["serverName"]).collect();
    assert_eq!(servers, ["one", "two", "one"]);
    assert!(results.iter().all(|result| result.get("tool").is_none()));

    let mut arguments = chain(&[rows("one", 1), step("two/whoami", json!({}))]);
    arguments["include_backends"] = json!(false);
    arguments["include_tools"] = json!(true);
    let outcome = meta.value("run_chain", arguments).await;
    assert_eq!(outcome["results"][0].get("backend"), None);
    assert_eq!(outcome["results"][0]["tool"]["name"], "rows");
    assert!(outcome["final"]["pid"].is_u64());
}

#[tokio::test]
async fn a_chain_stops_at_the_first_failure_and_keeps_earlier_results() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let meta = meta(&daemon).await;
    let never = step("two/count", json!({ "key": "never" }));
    let rpc = json!({ "code": 7, "message": "no" });
    for (middle, cause, word) in [
        (step("two/tool_error", json!({})), "execution_failed", "the tool failed"),
        (step("two/rpc_error", rpc.clone()), "execution_failed", "no"),
        (step("two/unheard_of", json!({})), "tool_not_found", "unheard_of"),
        (step("three/echo", json!({})), "no_backends", "three"),
        (
            step("two/rows", json!({ "table": "x" })),
            "validation_input",
            "`two/rows` was not called",
        ),
        (step("nonsense", json!({})), "validation_input", "nonsense"),
    ] {
        let outcome = failed_chain(&meta, &[rows("one", 1), middle.clone(), never.clone()]).await;
        let results = outcome["results"].as_array().expect("results");
        assert_eq!(results.len(), 2, "the failed step is the last: {outcome}");
        assert_eq!(outcome["final"], results[0]["structured"]);
        assert_eq!(outcome["final"]["total"], 1);
        let own = &results[1]["error"];
        assert_eq!((&own["code"], &own["step_index"]), (&json!(cause), &json!(1)), "{outcome}");
        assert!(own["message"].as_str().is_some_and(|text| text.contains(word)), "{own}");
        let error = &outcome["error"];
        assert_eq!(
            (&error["step_index"], &error["details"]["cause_code"]),
            (&json!(1), &json!(cause))
        );
    }
    let seen = daemon.client("/servers/two").call("seen", json!({})).await;
    assert_eq!(seen["executions"], json!({}), "no step runs after a failure");
    let outcome = failed_chain(&meta, &[step("two/tool_error", json!({})), rows("one", 1)]).await;
    assert_eq!(outcome.get("final"), None);
}

#[tokio::test]
async fn a_protocol_error_of_a_step_passes_unchanged_only_if_no_step_ran_before() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let meta = meta(&daemon).await;
    let visit = json!({ "code": -32042, "message": "visit", "data": { "elicitations": [] } });
    let failing = step("two/rpc_error", visit.clone());
    let never = step("two/count", json!({ "key": "never" }));

    let answer = meta.answer("run_chain", chain(&[failing.clone(), never.clone()])).await;
    assert_eq!(answer["error"], visit, "no step ran: the client can comply and start again");

    let outcome = failed_chain(&meta, &[rows("one", 1), failing, never]).await;
    assert_eq!(outcome["results"].as_array().map(Vec::len), Some(2), "{outcome}");
    assert_eq!(
        (&outcome["final"], &outcome["final"]["total"]),
        (&outcome["results"][0]["structured"], &json!(1))
    );
    let own = &outcome["results"][1]["error"];
    assert_eq!((&own["code"], &own["details"]["rpc"]), (&json!("execution_failed"), &visit));
    let error = &outcome["error"];
    assert_eq!(
        (&error["step_index"], &error["details"]["cause_code"], &error["tool_id"]),
        (&json!(1), &json!("execution_failed"), &json!("two/rpc_error"))
    );
    let seen = daemon.client("/servers/two").call("seen", json!({})).await;
    assert_eq!(seen["executions"], json!({}), "no step runs after the failure");
}

#[tokio::test]
async fn a_server_that_dies_during_a_chain_ends_only_the_chain() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let meta = meta(&daemon).await;

    let outcome = failed_chain(
        &meta,
        &[rows("one", 1), step("two/exit", json!({ "code": 1 })), rows("one", 2)],
    )
    .await;

    assert_eq!(outcome["results"][1]["error"]["details"]["reason"], "server_exited", "{outcome}");
    assert_eq!(outcome["final"]["total"], 1);
    assert_eq!(n_calls(&daemon, "one").await, 1);
    let outcome = meta.value("run_chain", chain(&[rows("two", 4)])).await;
    assert_eq!(outcome["final"]["total"], 4, "the server is running again");
}

#[tokio::test]
async fn a_chain_reports_progress_for_each_step_under_the_clients_token() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let clients =
        [meta(&daemon).await, MetaClient::modern(Modern::new(daemon.client("/meta"))).await];
    let good = [rows("one", 1), step("two/progress", json!({ "steps": 5 })), rows("two", 1)];
    let bad = [rows("one", 1), step("two/tool_error", json!({})), rows("two", 1)];
    for meta in clients {
        for token in [json!("t"), json!(7)] {
            for (steps, expected) in [
                (
                    &good,
                    vec![
                        (0, "started"),
                        (1, "step_completed"),
                        (2, "step_completed"),
                        (3, "step_completed"),
                    ],
                ),
                (&bad, vec![(0, "started"), (1, "step_completed"), (2, "step_error")]),
            ] {
                let mut stream = meta.stream("run_chain", chain(steps), &token).await;
                let (notices, answer) = meta.last("run_chain", &mut stream).await;
                assert_eq!(answer["id"], 1);
                let seen: Vec<Value> = notices
                    .iter()
                    .map(|notice| {
                        json!([
                            notice["method"],
                            notice["params"]["progressToken"],
                            notice["params"]["progress"],
                            notice["params"]["total"],
                            notice["params"]["message"]
                        ])
                    })
                    .collect();
                let expected: Vec<Value> = expected
                    .iter()
                    .map(|(done, word)| json!(["notifications/progress", token, done, 3, word]))
                    .collect();
                assert_eq!(seen, expected);
            }
        }
    }
    // A client without a progress token receives no progress.
    let answer = meta(&daemon).await.http.tool("run_chain", chain(&good)).await;
    assert_eq!(answer.messages().len(), 1);
}

#[tokio::test]
async fn a_chain_that_is_too_long_is_refused_before_its_first_step() {
    let fakes = Fakes::new();
    let config = format!("{SET}max_steps = 2\n") + &fakes.server("one", &["--rich"]);
    let daemon = Daemon::with(config).ready();
    let meta = meta(&daemon).await;
    let steps = [rows("one", 1), rows("one", 1), rows("one", 1)];

    let error = meta.error("run_chain", chain(&steps)).await;

    assert_eq!(
        (&error["code"], &error["details"]["reason"]),
        (&json!("validation_input"), &json!("too_many_steps"))
    );
    assert_eq!(error["details"]["limit"], 2);
    assert_eq!(n_calls(&daemon, "one").await, 0);
    meta.value("run_chain", chain(&steps[1..])).await;
}

#[tokio::test]
async fn a_cancelled_chain_cancels_its_running_step_and_starts_no_other() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let server = daemon.client("/servers/two");
    let steps = [
        step("one/count", json!({ "key": "first" })),
        step("two/hold", json!({ "key": "k" })),
        step("two/count", json!({ "key": "third" })),
    ];
    for n_before in 0..2 {
        let client = daemon.client("/meta").initialized().await;
        let chained = running({
            let (client, steps) = (client.clone(), chain(&steps));
            async move { client.tool("run_chain", steps).await }
        });
        server.call("held", json!({ "at_least": 1 })).await;

        match n_before {
            0 => {
                client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
                assert_eq!(chained.end().await.body, "", "a cancelled request has no answer");
            }
            // A disconnected client cancels as well.
            _ => drop(chained),
        }

        let seen = server.call("seen", json!({ "cancelled": n_before + 1 })).await;
        assert_eq!(seen["cancelled"].as_array().map(Vec::len), Some(n_before + 1), "{seen}");
        assert_eq!(seen["executions"], json!({}), "the third never ran");
    }
    let seen = daemon.client("/servers/one").call("seen", json!({})).await;
    assert_eq!(seen["executions"], json!({ "first": 2 }));
}
