//! The words of tasks: calls whose results are fetched later. 2025-11-25 has them in its core,
//! 2026-07-28 in an extension with other words.
//!
//! Source: MCP 2025-11-25, "Tasks", and SEP-2663, "Tasks Extension".

use serde_json::Value;

use super::{
    Era, Message, ObjectMembers, RpcError, client_meta,
    payloads::{ListKind, ListPage, ServerProfile},
    rpc_error::INVALID_PARAMS,
};

/// Asks how a task is doing, in both eras.
pub const GET: &str = "tasks/get";
/// Waits for the result of a task, in the legacy era.
pub const RESULT: &str = "tasks/result";
/// Brings what a task wants to know, in the modern era.
pub const UPDATE: &str = "tasks/update";
/// Ends a task before its time, in both eras.
pub const CANCEL: &str = "tasks/cancel";
/// Lists tasks, in the legacy era.
pub const LIST: &str = "tasks/list";
/// What tells how a task is doing, with its id, in the legacy era and in the modern one.
pub const NEWS: [&str; 2] = ["notifications/tasks/status", "notifications/tasks"];
/// What every method about tasks begins with.
pub const PREFIX: &str = "tasks/";
/// In `_meta` of the legacy era: the task that a message belongs to.
pub const RELATED: &str = "io.modelcontextprotocol/related-task";

/// What marks a tool that can be called as a task, and how, in the legacy era.
pub const SUPPORT: &str = "taskSupport";

/// What of a server's tasks its clients are told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskCapability {
    /// Nothing: a client could not find its task again.
    Nothing,
    /// Its own, by their ids: a list would show the tasks of others.
    ById,
    /// All that there are: nobody else has any on this connection.
    All,
}

/// Returns the id of the task that a request is about.
pub fn id_of(request: &Message) -> Option<String> {
    params_of(request)?.string("taskId")
}

/// Tells whether a call is to be a task, in the words of the legacy era.
pub fn is_asked_for(call: &Message) -> bool {
    params_of(call).is_some_and(|params| params.get("task").is_some_and(|task| task != "null"))
}

/// Returns for how long a call wants its task to be kept, in milliseconds.
pub fn ttl_of(call: &Message) -> Option<u64> {
    ObjectMembers::read(params_of(call)?.get("task")?)?.get("ttl")?.parse().ok()
}

fn params_of(request: &Message) -> Option<ObjectMembers<'_>> {
    let text = std::str::from_utf8(request.bytes()).ok()?;
    // Nearly all messages have nothing to do with tasks.
    if !text.contains("task") {
        return None;
    }
    ObjectMembers::read(ObjectMembers::one(text, "params")?)
}

/// Tells whether the result of a call, JSON text, says that the tool has failed.
pub fn has_failed(result: &str) -> bool {
    ObjectMembers::one(result, "isError") == Some("true")
}

/// Tells whether a client with these capabilities, JSON text, takes tasks of the modern era.
pub fn is_taken(capabilities: &str) -> bool {
    let extensions = ObjectMembers::read(capabilities);
    let extensions =
        extensions.as_ref().and_then(|all| ObjectMembers::read(all.get("extensions")?));
    extensions.is_some_and(|extensions| extensions.get(client_meta::TASKS).is_some())
}

/// Returns the tools on a page of `tools/list`, the text of its result, that are called as tasks or
/// not at all, in the words of the legacy era.
pub fn demanding_tools(page: &str) -> Vec<String> {
    // Nearly all pages have none.
    if !page.contains(SUPPORT) {
        return Vec::new();
    }
    let items = ListPage::read(ListKind::Tools, page).map(|page| page.items).unwrap_or_default();
    let demands = |json: &str| {
        ObjectMembers::read(ObjectMembers::read(json)?.get("execution")?)?.string(SUPPORT)
    };
    let demanding =
        items.into_iter().filter(|tool| demands(tool.json()).as_deref() == Some("required"));
    demanding.map(|tool| tool.key).collect()
}

/// Tells whether a tool, JSON text of its definition, is called as a task where a client wants that,
/// in the words of the legacy era.
pub fn is_taken_by_tool(definition: &str) -> bool {
    let execution = ObjectMembers::one(definition, "execution").and_then(ObjectMembers::read);
    let support = execution.and_then(|execution| execution.string(SUPPORT));
    matches!(support.as_deref(), Some("optional" | "required"))
}

impl ServerProfile {
    /// Tells whether calls of the server's tools can be tasks.
    pub fn has_tasks(&self) -> bool {
        let Some(capabilities) = self.result.get("capabilities") else { return false };
        match self.era() {
            Era::Legacy => capabilities["tasks"]["requests"]["tools"]["call"].is_object(),
            Era::Modern => capabilities["extensions"][client_meta::TASKS].is_object(),
        }
    }
}

/// Names the task that a result, or the parameters of a request, belong to by its id, JSON text, as
/// the legacy era wants it.
pub fn relate(members: &mut ObjectMembers<'_>, id: &str) {
    members.set_in_object("_meta", RELATED, &format!(r#"{{"taskId":{id}}}"#));
}

/// Returns the result of a call, JSON text, with the id of the task that it is the result of, JSON
/// text. What is no object stays as it is.
pub fn related(result: &str, id: &str) -> String {
    let Some(mut members) = ObjectMembers::read(result) else { return result.to_owned() };
    relate(&mut members, id);
    members.to_string()
}

/// Returns why a task in this status is not cancelled, in the legacy era.
pub fn ended(status: &str) -> RpcError {
    let text = format!("the task is {status} already: it cannot be cancelled");
    RpcError::new(INVALID_PARAMS, "TASK_ENDED", text)
}

/// Takes what is not offered out of the capabilities of a server for its clients of the same era.
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
    fn a_call_says_whether_it_is_to_be_a_task_and_for_how_long() {
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
            assert_eq!((is_asked_for(&call), ttl_of(&call)), expected, "{params}");
        }
    }

    #[test]
    fn a_task_is_known_by_its_id() {
        let get = |params: &str| id_of(&Message::request(GET, Some(params)));
        assert_eq!(get(r#"{"taskId":"a\u0041"}"#).as_deref(), Some("aA"));
        assert_eq!(get(r#"{"taskId":7}"#), None);
        assert_eq!(get("{}"), None);
        assert_eq!(id_of(&Message::request(GET, None)), None);
    }

    #[test]
    fn a_client_takes_tasks_if_it_names_the_extension() {
        assert!(is_taken(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#));
        for other in ["{}", r#"{"extensions":{}}"#, r#"{"tasks":{}}"#, "7"] {
            assert!(!is_taken(other), "{other}");
        }
    }

    #[test]
    fn a_tool_takes_tasks_if_it_says_so() {
        for (execution, expected) in [
            (r#"{"taskSupport":"required"}"#, true),
            (r#"{"taskSupport":"optional"}"#, true),
            (r#"{"taskSupport":"forbidden"}"#, false),
            ("{}", false),
            ("7", false),
        ] {
            let tool = format!(r#"{{"name":"a","execution":{execution}}}"#);
            assert_eq!(is_taken_by_tool(&tool), expected, "{execution}");
        }
        assert!(!is_taken_by_tool(r#"{"name":"a"}"#));
    }

    #[test]
    fn tools_that_demand_a_task_are_known_by_name() {
        let page = r#"{"tools":[{"name":"a","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},{"name":"b","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},{"name":"c","inputSchema":{"type":"object"},"description":"taskSupport required"}]}"#;
        assert_eq!(demanding_tools(page), ["a"]);
        assert!(demanding_tools("taskSupport").is_empty());
    }
}
