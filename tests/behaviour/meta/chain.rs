//! Tools that are run one after the other, through `run_chain`.

use serde_json::{Value, json};

use super::{meta, n_calls};
use crate::harness::{
    client::running,
    daemon::Daemon,
    fake::Fakes,
    meta::{Meta, each},
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
async fn failed(meta: &Meta, steps: &[Value]) -> Value {
    let result = meta.result("run_chain", chain(steps)).await;
    assert_eq!(result["isError"], true, "{result}");
    let told = result["structuredContent"].clone();
    assert_eq!(told["error"]["code"], "chain_step_failed", "{told}");
    assert_eq!(told["error"]["op"], "run_chain");
    // Who reads only words learns of it too, and of what was done before.
    let text: Value =
        serde_json::from_str(result["content"][1]["text"].as_str().expect("words")).expect("JSON");
    assert_eq!(text, told);
    told
}

#[tokio::test]
async fn a_step_can_use_what_came_of_the_one_before_at_another_server() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let meta = meta(&daemon).await;
    let mut second = rows("two", 2);
    second["use_previous"] = json!(true);

    let told = meta.value("run_chain", chain(&[rows("one", 1), second, rows("one", 3)])).await;

    let results = told["results"].as_array().expect("results");
    assert_eq!(each(&told, "results", "tool_id"), ["one/rows", "two/rows", "one/rows"]);
    assert_eq!(results[1]["structured"]["previous"], results[0]["structured"]);
    assert_eq!(results[2]["structured"].get("previous"), None, "only where it is wanted");
    assert_eq!(told["final"], results[2]["structured"]);
    let servers: Vec<&Value> =
        results.iter().map(|result| &result["backend"]["serverName"]).collect();
    assert_eq!(servers, ["one", "two", "one"]);
    assert!(results.iter().all(|result| result.get("tool").is_none()));

    let mut asked = chain(&[rows("one", 1), step("two/whoami", json!({}))]);
    asked["include_backends"] = json!(false);
    asked["include_tools"] = json!(true);
    let told = meta.value("run_chain", asked).await;
    assert_eq!(told["results"][0].get("backend"), None);
    assert_eq!(told["results"][0]["tool"]["name"], "rows");
    assert!(told["final"]["pid"].is_u64());
}

#[tokio::test]
async fn a_chain_stops_at_the_first_failure_and_keeps_what_it_has() {
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
        (step("two/rows", json!({ "table": "x" })), "validation_input", "do not fit `two/rows`"),
        (step("nonsense", json!({})), "validation_input", "nonsense"),
    ] {
        let told = failed(&meta, &[rows("one", 1), middle.clone(), never.clone()]).await;
        let results = told["results"].as_array().expect("results");
        assert_eq!(results.len(), 2, "the failed one is the last: {told}");
        assert_eq!(told["final"], results[0]["structured"]);
        assert_eq!(told["final"]["total"], 1);
        let own = &results[1]["error"];
        assert_eq!((&own["code"], &own["step_index"]), (&json!(cause), &json!(1)), "{told}");
        assert!(own["message"].as_str().is_some_and(|text| text.contains(word)), "{own}");
        let error = &told["error"];
        assert_eq!(
            (&error["step_index"], &error["details"]["cause_code"]),
            (&json!(1), &json!(cause))
        );
    }
    let seen = daemon.client("/servers/two").call("seen", json!({})).await;
    assert_eq!(seen["executions"], json!({}), "what comes after a failure is not run");
    let told = failed(&meta, &[step("two/tool_error", json!({})), rows("one", 1)]).await;
    assert_eq!(told.get("final"), None);
}

#[tokio::test]
async fn an_error_for_the_client_is_passed_on_as_it_is_only_if_no_step_was_done() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let meta = meta(&daemon).await;
    let visit = json!({ "code": -32042, "message": "visit", "data": { "elicitations": [] } });
    let demands = step("two/rpc_error", visit.clone());
    let never = step("two/count", json!({ "key": "never" }));

    let answer = meta.answer("run_chain", chain(&[demands.clone(), never.clone()])).await;
    assert_eq!(
        answer["error"], visit,
        "nothing was done: it can do what is demanded, and begin anew"
    );

    let told = failed(&meta, &[rows("one", 1), demands, never]).await;
    assert_eq!(told["results"].as_array().map(Vec::len), Some(2), "{told}");
    assert_eq!(
        (&told["final"], &told["final"]["total"]),
        (&told["results"][0]["structured"], &json!(1))
    );
    let own = &told["results"][1]["error"];
    assert_eq!((&own["code"], &own["details"]["rpc"]), (&json!("execution_failed"), &visit));
    let error = &told["error"];
    assert_eq!(
        (&error["step_index"], &error["details"]["cause_code"], &error["tool_id"]),
        (&json!(1), &json!("execution_failed"), &json!("two/rpc_error"))
    );
    let seen = daemon.client("/servers/two").call("seen", json!({})).await;
    assert_eq!(seen["executions"], json!({}), "what comes after it is not run");
}

#[tokio::test]
async fn a_server_that_dies_in_the_middle_ends_the_chain_and_nothing_else() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let meta = meta(&daemon).await;

    let told =
        failed(&meta, &[rows("one", 1), step("two/exit", json!({ "code": 1 })), rows("one", 2)])
            .await;

    assert_eq!(told["results"][1]["error"]["details"]["reason"], "server_exited", "{told}");
    assert_eq!(told["final"]["total"], 1);
    assert_eq!(n_calls(&daemon, "one").await, 1);
    let told = meta.value("run_chain", chain(&[rows("two", 4)])).await;
    assert_eq!(told["final"]["total"], 4, "it is there again");
}

#[tokio::test]
async fn progress_is_told_step_by_step_under_the_token_of_the_client() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let clients = [meta(&daemon).await, Meta::modern(Modern::new(daemon.client("/meta"))).await];
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
                let (told, answer) = meta.last("run_chain", &mut stream).await;
                assert_eq!(answer["id"], 1);
                let seen: Vec<Value> = told
                    .iter()
                    .map(|told| {
                        json!([
                            told["method"],
                            told["params"]["progressToken"],
                            told["params"]["progress"],
                            told["params"]["total"],
                            told["params"]["message"]
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
    // Who has not asked for it is told nothing.
    let answer = meta(&daemon).await.http.tool("run_chain", chain(&good)).await;
    assert_eq!(answer.messages().len(), 1);
}

#[tokio::test]
async fn a_chain_that_is_too_long_is_not_begun() {
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
async fn a_chain_that_is_cancelled_cancels_the_step_that_runs_and_begins_no_other() {
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
            // A client that hangs up has cancelled as well; one with a session could come back.
            _ => drop(chained),
        }

        let seen = server.call("seen", json!({ "cancelled": n_before + 1 })).await;
        assert_eq!(seen["cancelled"].as_array().map(Vec::len), Some(n_before + 1), "{seen}");
        assert_eq!(seen["executions"], json!({}), "the third never ran");
    }
    let seen = daemon.client("/servers/one").call("seen", json!({})).await;
    assert_eq!(seen["executions"], json!({ "first": 2 }));
}
