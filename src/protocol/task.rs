//! The vocabulary of tasks, calls whose results are fetched later. It belongs to the core of
//! 2025-11-25, and to an extension of 2026-07-28 with other terms.
//!
//! Source: MCP 2025-11-25, "Tasks", and SEP-2663, "Tasks Extension".

use serde_json::Value;

use super::{
    Message, ObjectMembers, RpcError, capability, client_meta,
    list_page::{ListItem, ListKind, ListPage},
    payloads::method,
    rpc_error::INVALID_PARAMS,
};

/// Requests the state of a task, in both eras.
pub const GET: &str = method::TASKS_GET;
/// Waits for the result of a task, in the legacy era.
pub const RESULT: &str = method::TASKS_RESULT;
/// Sends the input that a task requires, in the modern era.
pub const UPDATE: &str = "tasks/update";
/// Cancels a task, in both eras.
pub const CANCEL: &str = "tasks/cancel";
/// Lists tasks, in the legacy era.
pub const LIST: &str = "tasks/list";
/// The notifications with the id and state of a task, in the legacy and the modern era.
pub const NOTIFICATIONS: [&str; 2] = ["notifications/tasks/status", "notifications/tasks"];
/// The prefix of all methods about tasks.
pub const PREFIX: &str = "tasks/";
/// The member of `_meta` that names the task of a message, in the legacy era.
pub const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The member that states whether a tool can be called as a task, in the legacy era.
pub const SUPPORT: &str = "taskSupport";

/// The part of a server's task capability that its clients can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskCapability {
    /// None: a client could not find its task again.
    Nothing,
    /// Access to tasks by id; a list would show the tasks of other clients.
    ById,
    /// All of it: no other client has tasks on this connection.
    All,
}

/// Returns the id of the task that a request is about.
pub fn id_of(request: &Message) -> Option<String> {
    task_params(request)?.string("taskId")
}

/// Returns whether a call requests a task, in the legacy era.
pub fn is_task_call(call: &Message) -> bool {
    task_params(call).is_some_and(|params| params.get("task").is_some_and(|task| task != "null"))
}

/// Returns the time in milliseconds for which a call asks to keep its task.
pub fn ttl_of(call: &Message) -> Option<u64> {
    ObjectMembers::read(task_params(call)?.get("task")?)?.get("ttl")?.parse().ok()
}

fn task_params(request: &Message) -> Option<ObjectMembers<'_>> {
    // Nearly all messages do not concern tasks.
    if !request.text().contains("task") {
        return None;
    }
    ObjectMembers::read(request.params()?)
}

/// Returns whether the result of a call, given as JSON text, reports a failure of the tool.
pub fn has_failed(result: &str) -> bool {
    ObjectMembers::one(result, "isError") == Some("true")
}

/// Returns whether these capabilities, JSON text of a client, include tasks of the modern era.
pub fn declares_tasks(capabilities: &str) -> bool {
    capability::has_extension(capabilities, client_meta::TASKS)
}

/// Returns the tools on a page of `tools/list`, the text of its result, that must be called as
/// tasks. Applies to the legacy era.
pub fn tools_requiring_tasks(page: &str) -> Vec<String> {
    // Nearly all pages have none.
    if !page.contains(SUPPORT) {
        return Vec::new();
    }
    let items = ListPage::read(ListKind::Tools, page).map(|page| page.items).unwrap_or_default();
    let is_required = |tool: &ListItem| task_support(tool.json()).as_deref() == Some("required");
    items.into_iter().filter(is_required).map(|tool| tool.key).collect()
}

/// Returns whether a tool, given as JSON text, is called as a task if the client requests it.
/// Applies to the legacy era.
pub fn tool_supports_tasks(definition: &str) -> bool {
    matches!(task_support(definition).as_deref(), Some("optional" | "required"))
}

fn task_support(tool: &str) -> Option<String> {
    ObjectMembers::one(tool, "execution").and_then(ObjectMembers::read)?.string(SUPPORT)
}

/// Adds the id of the task, JSON text, to a result or to the parameters of a request. The legacy
/// era requires it.
pub fn relate(members: &mut ObjectMembers<'_>, id: &str) {
    members.set_in_object("_meta", RELATED, &format!(r#"{{"taskId":{id}}}"#));
}

/// Returns the result of a call, JSON text, with the id of its task, JSON text. A result that is no
/// object is unchanged.
pub fn related(result: &str, id: &str) -> String {
    let Some(mut members) = ObjectMembers::read(result) else { return result.to_owned() };
    relate(&mut members, id);
    members.to_string()
}

/// Returns the error for the cancellation of a task with this final status, in the legacy era.
pub fn ended(status: &str) -> RpcError {
    let text = format!("the task is {status} already: it cannot be cancelled");
    RpcError::new(INVALID_PARAMS, "TASK_ENDED", text)
}

/// Removes task capabilities that are not on `offer`, for clients of the server's own era.
pub(super) fn narrow(capabilities: &mut Value, offer: TaskCapability) {
    let Value::Object(capabilities) = capabilities else { return };
    match offer {
        TaskCapability::All => {}
        TaskCapability::ById => {
            if let Some(Value::Object(tasks)) = capabilities.get_mut("tasks") {
                tasks.remove("list");
            }
        }
        TaskCapability::Nothing => {
            capabilities.remove("tasks");
            if let Some(Value::Object(extensions)) = capabilities.get_mut("extensions")
                && extensions.remove(client_meta::TASKS).is_some()
                && extensions.is_empty()
            {
                capabilities.remove("extensions");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_requests_a_task_and_its_lifetime() {
        let call = |params: &str| Message::request("tools/call", Some(params));
        for (params, expected) in [
            (r#"{"name":"a"}"#, (false, None)),
            (r#"{"name":"task","arguments":{"task":{}}}"#, (false, None)),
            (r#"{"name":"a","task":null}"#, (false, None)),
            (r#"{"name":"a","task":{}}"#, (true, None)),
            (r#"{"name":"a","task":{"ttl":60000}}"#, (true, Some(60_000))),
            (r#"{"name":"a","task":{"ttl":null}}"#, (true, None)),
            (r#"{"name":"a","task":{"ttl":-1}}"#, (true, None)),
            (r#"["task"]"#, (false, None)),
        ] {
            let call = call(params);
            assert_eq!((is_task_call(&call), ttl_of(&call)), expected, "{params}");
        }
    }

    #[test]
    fn the_task_id_of_a_request_is_read() {
        let get = |params: &str| id_of(&Message::request(GET, Some(params)));
        assert_eq!(get(r#"{"taskId":"a\u0041"}"#).as_deref(), Some("aA"));
        assert_eq!(get(r#"{"taskId":7}"#), None);
        assert_eq!(get("{}"), None);
        assert_eq!(id_of(&Message::request(GET, None)), None);
    }

    #[test]
    fn a_client_supports_tasks_if_it_names_the_extension() {
        assert!(declares_tasks(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#));
        for other in ["{}", r#"{"extensions":{}}"#, r#"{"tasks":{}}"#, "7"] {
            assert!(!declares_tasks(other), "{other}");
        }
    }

    #[test]
    fn a_tool_supports_tasks_if_it_declares_them() {
        for (execution, expected) in [
            (r#"{"taskSupport":"required"}"#, true),
            (r#"{"taskSupport":"optional"}"#, true),
            (r#"{"taskSupport":"forbidden"}"#, false),
            ("{}", false),
            ("7", false),
        ] {
            let tool = format!(r#"{{"name":"a","execution":{execution}}}"#);
            assert_eq!(tool_supports_tasks(&tool), expected, "{execution}");
        }
        assert!(!tool_supports_tasks(r#"{"name":"a"}"#));
    }

    #[test]
    fn tools_that_require_a_task_are_found_by_name() {
        let page = r#"{"tools":[{"name":"a","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},{"name":"b","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},{"name":"c","inputSchema":{"type":"object"},"description":"taskSupport required"}]}"#;
        assert_eq!(tools_requiring_tasks(page), ["a"]);
        assert!(tools_requiring_tasks("taskSupport").is_empty());
    }
}
