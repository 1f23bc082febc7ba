//! The control interface, as programs use it: on the control socket and over HTTP.

mod commands;
mod concurrent_requests;
mod errors;
mod hostile;
mod method_snapshots;
mod rpc;
mod scripts;

use serde_json::Value;

/// Asserts that an error has all documented members.
#[track_caller]
fn assert_complete(error: &Value) {
    let data = &error["data"];
    let is_name = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    assert!(error["code"].is_i64(), "{error}");
    assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{error}");
    assert!(data["code"].as_str().is_some_and(is_name), "{error}");
    assert!(data["suggestion"].as_str().is_some_and(|text| text.len() > 5), "{error}");
    assert!(data["context"].is_object(), "{error}");
}
