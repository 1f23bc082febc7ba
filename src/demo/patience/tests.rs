use serde_json::{Value, json};

use super::*;
use crate::demo::{
    Demo,
    tests::{DemoWire, ServedDemo},
};

/// The number of repetitions in tests that could pass by chance.
const ROUNDS: u64 = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_quick_steps_arrive_in_order_before_the_result() {
    let mut wire = DemoWire::open(Demo::Patience).await;
    let expected: Vec<f64> = (1..=200).map(f64::from).collect();

    for id in 1..=ROUNDS {
        wire.send(&count(id, 200, 0)).await;
        let mut progress = Vec::new();
        let result = loop {
            let message = wire.receive().await;
            match message.get("id") {
                Some(_) => break message,
                None => progress.push(message["params"].clone()),
            }
        };

        let numbers: Vec<f64> =
            progress.iter().map(|params| params["progress"].as_f64().unwrap()).collect();
        assert_eq!(numbers, expected);
        assert_eq!(progress[9]["message"], "10 of 200");
        assert!(progress.iter().all(|params| params["progressToken"] == format!("token-{id}")));
        assert_eq!(result["result"]["structuredContent"], json!({ "counted": 200 }));
    }
}

#[tokio::test]
async fn without_a_token_there_is_no_progress() {
    let mut wire = DemoWire::open(Demo::Patience).await;
    let mut request = count(1, 5, 0);
    request["params"].as_object_mut().unwrap().remove("_meta");

    wire.send(&request).await;

    assert_eq!(wire.receive().await["id"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cancelled_count_is_counted_and_never_answered() {
    let mut wire = DemoWire::open(Demo::Patience).await;

    for id in 1..=ROUNDS {
        wire.send(&count(id, 1, INTERVAL_MS_MAX)).await;
        wire.send(&json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": { "requestId": id },
        }))
        .await;
    }

    // The test repeats the call, because rmcp may start a request after its cancellation.
    let mut n_cancelled = 0;
    while n_cancelled < ROUNDS {
        wire.send(&call(99, "cancelled", json!({}))).await;
        let answer = wire.receive().await;
        assert_eq!(answer["id"], 99);
        n_cancelled = answer["result"]["structuredContent"]["cancelled"].as_u64().unwrap();
    }
    assert_eq!(n_cancelled, ROUNDS);
}

#[tokio::test]
async fn a_cancelled_count_stops_at_once() {
    let mut wire = DemoWire::open(Demo::Patience).await;
    wire.send(&count(1, COUNT_MAX, 1)).await;
    assert_eq!(wire.receive().await["params"]["progress"], 1.0);

    wire.send(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": 1 },
    }))
    .await;
    wire.send(&call(2, "cancelled", json!({}))).await;
    let answer = loop {
        let message = wire.receive().await;
        if message.get("id").is_some() {
            break message;
        }
    };

    assert_eq!(answer["id"], 2);
    assert_eq!(answer["result"]["structuredContent"], json!({ "cancelled": 1, "running": 0 }));
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_server_despite_a_running_count() {
    let mut wire = DemoWire::open(Demo::Patience).await;
    wire.send(&count(1, 2, 20)).await;
    assert_eq!(wire.receive().await["params"]["progress"], 1.0);
    wire.send(&count(2, 1, INTERVAL_MS_MAX)).await;
    let left = tokio::time::Instant::now();

    wire.close().await.unwrap();

    assert!(left.elapsed() < crate::demo::connection::CLOSE_GRACE, "took {:?}", left.elapsed());
}

#[tokio::test]
async fn more_counts_than_allowed_are_a_tool_error() {
    let mut wire = DemoWire::open(Demo::Patience).await;
    let n_counts = u64::try_from(COUNTS_MAX).unwrap();

    for id in 0..=n_counts {
        wire.send(&count(id, 1, INTERVAL_MS_MAX)).await;
    }
    let answer = wire.receive().await;

    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(
        answer["result"]["content"][0]["text"],
        "64 counts are running: wait for one or cancel it"
    );
}

#[tokio::test]
async fn bounds_are_named_when_they_are_exceeded() {
    let served = ServedDemo::new(Demo::Patience).await;

    let high = served.refused("count", json!({ "to": 10_001, "interval_ms": 0 })).await;
    let low = served.refused("count", json!({ "to": 0, "interval_ms": 0 })).await;
    let fraction = served.refused("count", json!({ "to": 1.5, "interval_ms": 0 })).await;

    assert_eq!(high.message, "argument `to` is 10001: pass a whole number from 1 to 10000");
    assert_eq!(low.message, "argument `to` is 0: pass a whole number from 1 to 10000");
    assert_eq!(fraction.message, "argument `to` is 1.5: pass a whole number from 1 to 10000");
}

fn count(id: u64, to: u32, interval_ms: u32) -> Value {
    let mut request = call(id, "count", json!({ "to": to, "interval_ms": interval_ms }));
    request["params"]["_meta"] = json!({ "progressToken": format!("token-{id}") });
    request
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": { "name": tool, "arguments": arguments },
    })
}
