//! The translation of a server's answer to the era of its client.

use serde_json::json;

use super::{
    TaskSupport, decorate,
    input_required::InputRequired,
    task_translation::{legacy_created, modern_created},
    tool_definition,
};
use crate::protocol::{
    Message, ObjectMembers, RpcError,
    client_meta::SERVER_INFO,
    json_array::{RESULT_BLOCKS_MAX, first_items, with_last},
    jsonrpc::MessagePart,
    list_page::{ListKind, is_text_block},
    payloads::method,
    rpc_error::{
        CAPABILITY_REQUIRED, INVALID_PARAMS, RESOURCE_NOT_FOUND, URL_ELICITATION_REQUIRED,
    },
};

/// A server's answer in the client's era.
#[derive(Debug)]
pub enum TranslatedResult {
    /// The final answer.
    Final(Message),
    /// The state of the task that the server has created for the call.
    Task(Message),
    /// A request for input before the final answer.
    Input(InputRequired),
}

/// Translates a modern server's answer to a request of `method` for a legacy client. `support`
/// tells how tasks are translated.
pub fn for_legacy(answer: &Message, method: &str, support: TaskSupport) -> TranslatedResult {
    if let Some(error) = answer.part(MessagePart::Error) {
        return TranslatedResult::Final(legacy_error(answer, error, method));
    }
    let Some(mut result) = answer.part(MessagePart::Result).and_then(ObjectMembers::read) else {
        return TranslatedResult::Final(answer.clone());
    };
    if result.string("resultType").as_deref() == Some("input_required") {
        return TranslatedResult::Input(InputRequired::read(&result));
    }
    if method == method::TOOLS_CALL
        && let Some(created) = legacy_created(&result)
    {
        return TranslatedResult::Task(answer.with(MessagePart::Result, &created));
    }
    narrow(&mut result, method);
    if method == method::TOOLS_LIST {
        tool_definition::narrow(&mut result, support);
    }
    TranslatedResult::Final(answer.with(MessagePart::Result, &result.to_string()))
}

/// Removes the members that only the modern era has from the result of a request of `method`.
pub(super) fn narrow(result: &mut ObjectMembers<'_>, method: &str) {
    for name in ["resultType", "ttlMs", "cacheScope"] {
        result.take(name);
    }
    result.edit_object("_meta", |meta| drop(meta.take(SERVER_INFO)));
    if method == method::TOOLS_CALL {
        narrow_content(result);
    }
}

/// Replaces structured content that is not an object, as the legacy era requires, by text, which all
/// clients show. Source: MCP 2026-07-28, "Key changes", minor change 10.
fn narrow_content(result: &mut ObjectMembers<'_>) {
    let is_other = |content: &&str| !content.starts_with('{');
    let Some(content) = result.get("structuredContent").filter(is_other).map(str::to_owned) else {
        return;
    };
    result.take("structuredContent");
    let blocks = result.get("content").unwrap_or("[]");
    let (first, _) = first_items(blocks, RESULT_BLOCKS_MAX).unwrap_or_default();
    if first.iter().any(|block| is_text_block(block.get())) {
        return;
    }
    let block = json!({ "type": "text", "text": content }).to_string();
    let all = with_last(blocks, &block).unwrap_or_else(|| format!("[{block}]"));
    result.set("content", all);
}

/// Translates a modern server's error for a request of `method` for a legacy client.
pub(super) fn legacy_error(answer: &Message, error: &str, method: &str) -> Message {
    let code = match RpcError::code_of(error) {
        Some(INVALID_PARAMS) if method == method::RESOURCES_READ => RESOURCE_NOT_FOUND,
        // The required capabilities stay in the error's data.
        Some(CAPABILITY_REQUIRED) => INVALID_PARAMS,
        _ => return answer.clone(),
    };
    recoded(answer, error, code)
}

/// Translates a legacy server's answer to a request of `method` for a modern client. `support`
/// tells how tasks are translated; `server_info` describes the server, JSON text.
pub fn for_modern(
    answer: &Message,
    method: &str,
    server_info: Option<&str>,
    support: TaskSupport,
) -> TranslatedResult {
    if let Some(error) = answer.part(MessagePart::Error) {
        return match RpcError::code_of(error) {
            Some(RESOURCE_NOT_FOUND) => {
                TranslatedResult::Final(recoded(answer, error, INVALID_PARAMS))
            }
            // The client visits the URLs and repeats the request.
            Some(URL_ELICITATION_REQUIRED) => match InputRequired::of_urls(error) {
                Some(input) => TranslatedResult::Input(input),
                None => TranslatedResult::Final(recoded(answer, error, INVALID_PARAMS)),
            },
            _ => TranslatedResult::Final(answer.clone()),
        };
    }
    let Some(result) = answer.part(MessagePart::Result) else {
        return TranslatedResult::Final(answer.clone());
    };
    let is_task = support == TaskSupport::Required && method == method::TOOLS_CALL;
    let created = if is_task { modern_created(result) } else { None };
    let result = decorate(created.as_deref().unwrap_or(result), method, server_info);
    let result = match ListKind::of_method(method) {
        Some(list) => tool_definition::modern_list(result, list),
        None => result,
    };
    TranslatedResult::Final(answer.with(MessagePart::Result, &result))
}

fn recoded(answer: &Message, error: &str, code: i64) -> Message {
    let Some(mut members) = ObjectMembers::read(error) else { return answer.clone() };
    members.set("code", code.to_string());
    answer.with(MessagePart::Error, &members.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_TASKS: TaskSupport = TaskSupport::Forbidden;

    fn answer(body: &str) -> Message {
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,{body}}}"#);
        Message::parse(text.into()).expect("a message")
    }

    #[track_caller]
    fn last(answer: TranslatedResult) -> String {
        match answer {
            TranslatedResult::Final(answer) => String::from_utf8_lossy(answer.bytes()).into_owned(),
            other @ (TranslatedResult::Task(_) | TranslatedResult::Input(_)) => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn input(answer: TranslatedResult) -> InputRequired {
        match answer {
            TranslatedResult::Input(input) => input,
            other @ (TranslatedResult::Final(_) | TranslatedResult::Task(_)) => panic!("{other:?}"),
        }
    }

    fn legacy(body: &str, method: &str) -> String {
        last(for_legacy(&answer(body), method, NO_TASKS))
    }

    #[test]
    fn a_legacy_client_receives_no_modern_members() {
        assert_eq!(
            legacy(
                r#""result":{"tools":[],"x":1e400,"resultType":"complete","ttlMs":1,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{},"a":1}}"#,
                "tools/list"
            ),
            r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[],"x":1e400,"_meta":{"a":1}}}"#
        );
    }

    #[test]
    fn structured_content_that_is_no_object_becomes_text_for_legacy_clients() {
        for (content, expected) in [
            (r#""content":[]"#, r#""content":[{"text":"[1,2]","type":"text"}]"#),
            (
                r#""content":[{"type":"image","data":"","mimeType":"image/png"}]"#,
                r#""content":[{"type":"image","data":"","mimeType":"image/png"},{"text":"[1,2]","type":"text"}]"#,
            ),
            (
                r#""content":[{"type":"resource","resource":{"uri":"u","text":"x"}}]"#,
                r#""content":[{"type":"resource","resource":{"uri":"u","text":"x"}},{"text":"[1,2]","type":"text"}]"#,
            ),
            (
                r#""content":[{"type":"text","text":"1, 2"}]"#,
                r#""content":[{"type":"text","text":"1, 2"}]"#,
            ),
        ] {
            let body = format!(r#""result":{{{content},"structuredContent":[1,2]}}"#);
            let seen = legacy(&body, "tools/call");
            assert_eq!(seen, format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{{expected}}}}}"#));
        }
        let object = r#""result":{"content":[],"structuredContent":{"a":1}}"#;
        assert!(legacy(object, "tools/call").contains(r#""structuredContent":{"a":1}"#));
    }

    #[test]
    fn an_output_schema_of_no_object_is_removed_for_legacy_clients() {
        let tools = r#""result":{"tools":[{"name":"a","outputSchema":{"type":"array"}},{"name":"b","outputSchema":{"type":"object"}},{"name":"c"}]}"#;
        assert_eq!(
            legacy(tools, "tools/list"),
            r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"a"},{"name":"b","outputSchema":{"type":"object"}},{"name":"c"}]}}"#
        );
    }

    #[test]
    fn errors_have_the_codes_of_the_clients_era() {
        let coded =
            |code: i64| format!(r#""error":{{"code":{code},"message":"m","data":{{"a":1}}}}"#);
        let seen = |answer: String| {
            let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
            assert_eq!(answer["error"]["data"]["a"], 1, "all else stays");
            answer["error"]["code"].as_i64().expect("a code")
        };
        assert_eq!(seen(legacy(&coded(-32602), "resources/read")), -32002);
        assert_eq!(seen(legacy(&coded(-32602), "tools/call")), -32602);
        assert_eq!(seen(legacy(&coded(-32021), "tools/call")), -32602);
        assert_eq!(seen(legacy(&coded(-1), "tools/call")), -1);
        let modern =
            |code| seen(last(for_modern(&answer(&coded(code)), "resources/read", None, NO_TASKS)));
        assert_eq!(modern(-32002), -32602);
        assert_eq!(modern(-32601), -32601);
    }

    #[test]
    fn a_legacy_client_receives_the_questions_of_a_modern_server() {
        let asks = answer(
            r#""result":{"resultType":"input_required","requestState":"s\u0041","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"Who?"}},"visit":{"method":"elicitation/create","params":{"mode":"url","url":"u"}},"where":{"method":"roots/list"},"broken":7}}"#,
        );
        let input = input(for_legacy(&asks, "tools/call", NO_TASKS));
        assert_eq!(input.state.as_deref(), Some(r#""s\u0041""#), "as it is");
        let keys: Vec<_> = input.questions.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["who", "visit", "where"]);
        let text =
            |index: usize| String::from_utf8_lossy(input.questions[index].1.bytes()).into_owned();
        assert!(text(0).ends_with(r#""method":"elicitation/create","params":{"message":"Who?"}}"#));
        assert!(text(1).contains(r#""elicitationId":""#), "a visit has a name in 2025-11-25");
        assert!(text(2).ends_with(r#""method":"roots/list","params":{}}"#));
    }

    #[test]
    fn a_modern_client_receives_the_url_visits_that_a_legacy_server_demands() {
        let demands = answer(
            r#""error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","url":"u","message":"Go","elicitationId":"1"}]}}"#,
        );
        let input = input(for_modern(&demands, "tools/call", None, NO_TASKS));
        assert_eq!(
            input.to_result(),
            r#"{"resultType":"input_required","inputRequests":{"visit0":{"method":"elicitation/create","params":{"mode":"url","url":"u","message":"Go"}}}}"#
        );
        let bare = answer(r#""error":{"code":-32042,"message":"m"}"#);
        assert!(last(for_modern(&bare, "tools/call", None, NO_TASKS)).contains("-32602"));
    }

    #[test]
    fn a_result_that_is_not_an_object_passes_unchanged() {
        assert_eq!(legacy(r#""result":[1]"#, "x"), r#"{"jsonrpc":"2.0","id":7,"result":[1]}"#);
    }
}
