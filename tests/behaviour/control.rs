//! The operator's interface, as programs see it: on the control socket and over HTTP.

mod errors;
mod golden;
mod hostile;
mod lines;
mod orders;
mod rpc;

use serde_json::Value;

/// Asserts that an error has all that is promised of each.
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
