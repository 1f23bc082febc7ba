use rmcp::model::ErrorCode;

use super::*;
use crate::demo::{Demo, tests::ServedDemo};

#[tokio::test]
async fn an_entry_is_a_tool_result_and_a_resource() {
    let served = ServedDemo::new(Demo::Scratch).await;
    served.data("put", json!({ "key": "a.txt", "value": "alpha" })).await;

    let got = served.data("get", json!({ "key": "a.txt" })).await;
    let listed = served.client.list_all_resources().await.unwrap();
    let uri = listed[0].uri.clone();
    let read = served.client.read_resource(ReadResourceRequestParams::new(&uri)).await.unwrap();

    assert_eq!(got, json!({ "key": "a.txt", "value": "alpha" }));
    assert_eq!((listed.len(), uri.as_str(), listed[0].size), (1, "scratch:///a.txt", Some(5)));
    assert_eq!(
        serde_json::to_value(&read.contents).unwrap(),
        json!([{ "uri": "scratch:///a.txt", "mimeType": "text/plain", "text": "alpha" }])
    );
}

#[tokio::test]
async fn the_template_describes_the_resources() {
    let served = ServedDemo::new(Demo::Scratch).await;

    let templates = served.client.list_all_resource_templates().await.unwrap();

    assert_eq!(templates.len(), 1);
    assert_eq!(templates[0].uri_template, "scratch:///{key}");
}

#[tokio::test]
async fn put_returns_whether_it_replaced_an_entry() {
    let served = ServedDemo::new(Demo::Scratch).await;

    let first = served.data("put", json!({ "key": "k", "value": "one" })).await;
    let second = served.data("put", json!({ "key": "k", "value": "three" })).await;

    assert_eq!(first, json!({ "key": "k", "bytes": 3, "replaced": false }));
    assert_eq!(second, json!({ "key": "k", "bytes": 5, "replaced": true }));
}

#[tokio::test]
async fn a_deleted_entry_is_gone() {
    let served = ServedDemo::new(Demo::Scratch).await;
    served.data("put", json!({ "key": "k", "value": "v" })).await;

    let first = served.data("delete", json!({ "key": "k" })).await;
    let second = served.data("delete", json!({ "key": "k" })).await;
    let got = served.call("get", json!({ "key": "k" })).await.unwrap();

    assert_eq!((&first["deleted"], &second["deleted"]), (&json!(true), &json!(false)));
    assert_eq!(got.is_error, Some(true));
    assert_eq!(served.data("keys", json!({})).await, json!({ "keys": [] }));
}

#[tokio::test]
async fn a_value_over_the_limit_is_a_tool_error() {
    let served = ServedDemo::new(Demo::Scratch).await;
    let fits = "x".repeat(VALUE_BYTES_MAX);
    let exceeds = "x".repeat(VALUE_BYTES_MAX + 1);

    let accepted = served.call("put", json!({ "key": "k", "value": fits })).await.unwrap();
    let refused = served.call("put", json!({ "key": "k", "value": exceeds })).await.unwrap();

    assert_eq!((accepted.is_error, refused.is_error), (Some(false), Some(true)));
    assert_eq!(
        refused.content[0].as_text().unwrap().text,
        "value of `k` has 65537 bytes: at most 65536 fit"
    );
}

#[tokio::test]
async fn a_full_store_still_replaces_but_adds_nothing() {
    let served = ServedDemo::new(Demo::Scratch).await;
    for n in 0..ENTRIES_MAX {
        served.data("put", json!({ "key": n.to_string(), "value": "" })).await;
    }

    let added = served.call("put", json!({ "key": "more", "value": "" })).await.unwrap();
    let replaced = served.call("put", json!({ "key": "7", "value": "x" })).await.unwrap();

    assert_eq!((added.is_error, replaced.is_error), (Some(true), Some(false)));
}

#[tokio::test]
async fn a_key_that_would_need_escaping_is_refused() {
    let served = ServedDemo::new(Demo::Scratch).await;

    for key in ["", "a/b", "..", "-x", "ä", &"k".repeat(KEY_BYTES_MAX + 1)] {
        let error = served.refused("get", json!({ "key": key })).await;

        assert!(error.message.starts_with("argument `key` is invalid: pass 1 to 128"), "{key}");
    }
}

#[tokio::test]
async fn unknown_and_missing_arguments_are_refused_by_name() {
    let served = ServedDemo::new(Demo::Scratch).await;

    let unknown = served.refused("put", json!({ "kye": "k", "value": "v" })).await;
    let missing = served.refused("put", json!({ "key": "k" })).await;
    let mistyped = served.refused("put", json!({ "key": "k", "value": 1 })).await;

    assert_eq!(unknown.message, "tool `put` has no argument `kye`: use `key`, `value`");
    assert_eq!(
        missing.message,
        "argument `value` of tool `put` is missing: pass it, see the input schema"
    );
    assert_eq!(mistyped.message, "argument `value` must be a string");
}

#[tokio::test]
async fn the_prompt_holds_the_entry() {
    let served = ServedDemo::new(Demo::Scratch).await;
    served.data("put", json!({ "key": "k", "value": "a long story" })).await;
    let request = |key: &str| {
        GetPromptRequestParams::new(PROMPT).with_arguments(tool::object(json!({ "key": key })))
    };

    let prompt = served.client.get_prompt(request("k")).await.unwrap();
    let unknown = served.client.get_prompt(request("nope")).await.unwrap_err();

    let prompt = serde_json::to_string(&prompt.messages).unwrap();
    assert!(prompt.contains("a long story"), "{prompt}");
    assert!(unknown.to_string().contains("names no entry `nope`"), "{unknown}");
}

#[tokio::test]
async fn an_unknown_resource_is_not_found() {
    let served = ServedDemo::new(Demo::Scratch).await;

    let request = ReadResourceRequestParams::new("scratch:///nope");
    let error = served.client.read_resource(request).await.unwrap_err();

    let rmcp::ServiceError::McpError(error) = error else { panic!("{error}") };
    assert_eq!(error.code, ErrorCode::RESOURCE_NOT_FOUND);
}
