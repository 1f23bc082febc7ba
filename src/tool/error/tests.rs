use std::time::Duration;

use super::*;
use crate::{
    call::CallError, connection::RequestFailure, pool::BreakerOpen, server_name::ServerName,
};

fn git() -> ServerName {
    ServerName::new("git").expect("a name")
}

fn result(error: &ErrorObject) -> Value {
    serde_json::from_str(&error.to_result()).expect("JSON")
}

#[test]
fn an_error_is_returned_as_text_and_as_an_object() {
    let error = ErrorObject::unknown_tool(&ToolId::new("git", "lgo"), &["git/log".to_owned()])
        .about(&ToolId::new("git", "lgo"))
        .during("mcp_call");
    insta::assert_snapshot!(error.to_result(), @r#"{"content":[{"text":"server `git` has no tool `lgo`. Did you mean `git/log`?","type":"text"}],"structuredContent":{"error":{"code":"tool_not_found","details":{"similarTools":["git/log"]},"message":"server `git` has no tool `lgo`. Did you mean `git/log`?","op":"mcp_call","retryable":false,"tool_id":"git/lgo"}},"isError":true}"#);
}

#[test]
fn control_characters_of_a_server_are_removed_from_error_texts() {
    let rpc = json!({ "code": 7, "message": "a\u{1b}[2Jb\u{202e}c\0d\ne" }).to_string();
    for error in [
        ErrorObject::of_server("git", &rpc),
        ErrorObject::of_tool("a\u{1b}[2Jb\u{202e}c\0d\ne"),
        ErrorObject::unknown_tool(
            &ToolId::new("git", "lgo"),
            &["a\u{1b}[2Jb\u{202e}c\0d\ne".into()],
        ),
    ] {
        let text = error.text();
        assert!(
            text.contains("a [2Jb c d\ne") && error.to_result().contains("a [2Jb c d"),
            "{text}"
        );
    }
    let error = ErrorObject::new(ErrorCode::ValidationInput, "no", "")
        .detail("validationErrors", json!(["Field 'a\u{7}': x"]));
    assert_eq!(error.text(), "no\n- Field 'a ': x");
}

#[test]
fn an_error_text_lists_each_wrong_field_on_its_own_line() {
    let error =
        ErrorObject::new(ErrorCode::ValidationInput, "the arguments do not fit", "Fix them.")
            .detail("validationErrors", json!(["Field 'a': x", "Field 'b': y"]));
    assert_eq!(error.text(), "the arguments do not fit. Fix them.\n- Field 'a': x\n- Field 'b': y");
}

fn open() -> BreakerOpen {
    BreakerOpen { retry_in: Duration::from_secs(9), cause: None }
}

#[test]
fn the_error_of_an_unanswered_call_has_its_reason_and_its_retryable_flag() {
    let failed = |source| CallError::Failed(git(), source);
    let tripped = CallError::Tripped(git(), open());
    let unknown = CallError::UnknownServer { server: "gti".into(), similar: vec!["git".into()] };
    for (error, code, reason, retryable) in [
        (unknown, "no_backends", "server_not_found", false),
        (tripped, "execution_failed", "circuit_open", true),
        (failed(RequestFailure::Timeout(Duration::from_secs(60))), "timeout", "timeout", false),
        (failed(RequestFailure::Unresponsive), "execution_failed", "server_unresponsive", true),
        (failed(RequestFailure::Oversized(1)), "execution_failed", "answer_too_large", false),
    ] {
        let object = ErrorObject::from(&error);
        let shown = result(&object)["structuredContent"]["error"].clone();
        assert_eq!(shown["code"], code);
        assert_eq!(shown["details"]["reason"], reason);
        assert_eq!(shown["details"]["cause"], error.code());
        assert_eq!(shown["retryable"], retryable);
        assert!(object.message.ends_with(&error.hint()), "{}", object.message);
    }
    let tripped = CallError::Tripped(git(), open());
    for name in ["retryAfterMs", "retry_after_ms"] {
        assert_eq!(ErrorObject::from(&tripped).details[name], 9000);
    }
}

#[test]
fn a_server_error_is_passed_on_and_a_malformed_or_large_one_is_bounded() {
    let error = ErrorObject::of_server("git", r#"{"code":-32000,"message":"no","data":[1]}"#);
    assert_eq!(error.details["rpc"], json!({"code": -32000, "message": "no", "data": [1]}));
    assert!(error.retryable && error.message.contains("no"));
    assert!(!ErrorObject::of_server("git", r#"{"code":-32602,"message":"no"}"#).retryable);
    for odd in ["", "7", "[", &format!(r#"{{"code":1,"message":"{}"}}"#, "x".repeat(100_000))] {
        let error = ErrorObject::of_server("git", odd);
        assert!(error.to_result().len() < 2000);
    }
    let long = format!(r#"{{"code":-32602,"message":"no such branch {}"}}"#, "x".repeat(100_000));
    let error = ErrorObject::of_server("git", &long);
    assert!(error.message.contains("no such branch") && !error.retryable);
    assert_eq!(error.details["rpc"]["code"], -32602);
}

#[test]
fn every_error_code_has_its_name_and_its_retryable_flag() {
    use ErrorCode::*;
    for (code, name, is_retryable) in [
        (ToolNotFound, "tool_not_found", false),
        (NoBackends, "no_backends", false),
        (BackendOverrideInvalid, "backend_override_invalid", false),
        (ValidationInput, "validation_input", false),
        (ValidationOutput, "validation_output", false),
        (ExecutionFailed, "execution_failed", true),
        (StreamNotSupported, "stream_not_supported", false),
        (ChainStepFailed, "chain_step_failed", false),
        (Timeout, "timeout", false),
        (Internal, "internal", true),
    ] {
        assert_eq!(json!(code), name);
        assert_eq!(ErrorObject::new(code, "x", "").retryable, is_retryable);
    }
    assert!(!ErrorObject::execution_unavailable("code is off", "Call a tool.").retryable);
}

#[test]
fn an_operator_gets_the_stable_code_and_the_suggestion_of_an_error() {
    let error = ErrorObject::unknown_tool(&ToolId::new("git", "lgo"), &["git/log".to_owned()]);
    insta::assert_snapshot!(
        String::from_utf8_lossy(&error.to_rpc().render(Some("1"))),
        @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"server `git` has no tool `lgo`","data":{"code":"TOOL_NOT_FOUND","suggestion":"Did you mean `git/log`?","context":{"similarTools":["git/log"]}}}}"#
    );
}
