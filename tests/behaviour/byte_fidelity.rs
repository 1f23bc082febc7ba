//! Messages pass byte for byte, in both directions.

use serde_json::{Value, json};

use crate::harness::{
    daemon::Daemon,
    fake::{Fakes, Upstream},
};

/// JSON that a parser in between would write differently or lose.
const VALUES: &[&str] = &[
    "9007199254740993",
    "-0",
    "1e400",
    "1.50",
    "1E+2",
    "12345678901234567890123.000000000000000000001",
    r#""\u00e9 é \ud83d\ude00 \/ \u0000""#,
    r#"{"z":1,"a":{"_meta":{"progressToken":"not ours"}},"id":7,"z2":[ ],"name":"x"}"#,
    r#"{ "spaced" : [ 1 , 2 ] , "method":"tools/call","params":{"uri":"x"} }"#,
    r#"{"":null,"a.b":true,"__proto__":{}}"#,
    r#""{\"jsonrpc\":\"2.0\",\"id\":1}""#,
];

#[tokio::test]
async fn arguments_and_results_pass_byte_for_byte() {
    let fakes = Fakes::new();
    let (events, plain) = (Upstream::start(&[]), Upstream::start(&["--json"]));
    let config =
        fakes.server("pipe", &[]) + &events.server("events", "") + &plain.server("json", "");
    let daemon = Daemon::with(config).ready();
    for (path, tool) in [
        ("/servers/pipe", "echo"),
        ("/servers/events", "echo"),
        ("/servers/json", "echo"),
        ("/", "pipe__echo"),
    ] {
        let client = daemon.client(path);
        for value in VALUES {
            let message = format!(
                r#"{{"params":{{"x-unknown":[1],"arguments":{{"value":{value}}},"name":"{tool}","_meta":{{"a/b":{value}}}}},"id":"i","method":"tools/call","jsonrpc":"2.0","future":{{}}}}"#
            );
            let reply = client.post(message).await;
            let expected = format!(r#""structuredContent":{{"value":{value}}}"#);
            assert!(reply.body.contains(&expected), "{path}: {value}: {}", reply.body);
            assert!(reply.body.contains(r#""id":"i""#), "{}", reply.body);
        }
    }
}

#[tokio::test]
async fn a_notification_reaches_listeners_byte_for_byte() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake").initialized().await;
    let mut stream = client.listen().await;
    for value in VALUES {
        let message = format!(
            r#"{{"method":"notifications/unheard-of","params":{{"n":{value}}},"jsonrpc":"2.0", "extra":{value}}}"#
        );
        client.call("emit", json!({ "message": message })).await;
        let data = stream.next_data().await;
        assert_eq!(data, message);
    }
}

#[tokio::test]
async fn unknown_requests_and_notifications_reach_the_server() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake").initialized().await;

    let completed = client
        .request(json!(1), "completion/complete", json!({ "argument": { "value": "A" } }))
        .await
        .answer();
    assert_eq!(completed["result"]["completion"]["values"], json!(["Ada", "Alan"]));
    let unknown = client.request(json!(2), "vendor/unheard-of", json!({})).await.answer();
    assert_eq!(unknown["error"], json!({ "code": -32601, "message": "Method not found" }));
    assert_eq!(client.notify("notifications/vendor", json!({})).await.status, 202);

    let counts = json!({ "requests.notifications/vendor": 1, "requests.vendor/unheard-of": 1 });
    let seen: Value = client.call("seen", json!({ "counts": counts })).await;
    assert_eq!(seen["methods"]["completion/complete"], 1);
    // metamcp does not forward a notification about one client, as clients share the connection.
    client.notify("notifications/roots/list_changed", json!({})).await;
    let seen = client.call("seen", json!({})).await;
    assert_eq!(seen["methods"]["notifications/roots/list_changed"], Value::Null);
    assert_eq!(
        seen["methods"]["notifications/initialized"], 1,
        "that of metamcp, and none of the clients'"
    );
}
