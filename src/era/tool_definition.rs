//! The translation of tool definitions for clients of the other era.

use serde_json::value::RawValue;

use super::TaskSupport;
use crate::protocol::{
    ObjectMembers,
    json_array::{LIST_ITEMS_MAX, all_items},
    list_page::ListKind,
    task,
};

/// Removes the parts of a modern server's tool list that legacy clients reject or misread. If
/// `support` allows tasks, marks every tool as callable as a task: in the modern era, the server
/// decides with each call.
pub(super) fn narrow(result: &mut ObjectMembers<'_>, support: TaskSupport) {
    edit(result, "\"outputSchema\"", leave_out_schema);
    match support {
        TaskSupport::Forbidden => leave_out_tasks(result),
        TaskSupport::Optional | TaskSupport::Required => edit(result, "", |tool| {
            tool.set_in_object("execution", task::SUPPORT, "\"optional\"");
            true
        }),
    }
}

/// Removes the task support of tools from a list, because tasks differ between the two eras.
/// Source: MCP 2025-11-25, `ToolExecution`, which 2026-07-28 lacks.
pub(super) fn leave_out_tasks(result: &mut ObjectMembers<'_>) {
    edit(result, "\"taskSupport\"", |tool| {
        let mut is_removed = false;
        tool.edit_object("execution", |execution| {
            is_removed = execution.take("taskSupport").is_some();
        });
        is_removed
    });
}

/// Returns a list of metamcp, JSON text of a result, for clients of the legacy era.
pub fn legacy_list(result: String, list: ListKind) -> String {
    edited(result, list, "\"outputSchema\"", |result| {
        edit(result, "\"outputSchema\"", leave_out_schema);
    })
}

/// Returns a list of metamcp, JSON text of a result, for clients of the modern era.
pub fn modern_list(result: String, list: ListKind) -> String {
    edited(result, list, "\"taskSupport\"", leave_out_tasks)
}

fn edited(
    result: String,
    list: ListKind,
    mark: &str,
    edit: impl Fn(&mut ObjectMembers<'_>),
) -> String {
    if list != ListKind::Tools || !result.contains(mark) {
        return result;
    }
    let Some(mut members) = ObjectMembers::read(&result) else { return result };
    edit(&mut members);
    members.to_string()
}

/// Removes an output schema that describes no object: legacy clients would drop the whole list.
fn leave_out_schema(tool: &mut ObjectMembers<'_>) -> bool {
    let describes_object = |schema: &str| {
        ObjectMembers::read(schema).and_then(|schema| schema.string("type")).as_deref()
            == Some("object")
    };
    let is_other = tool.get("outputSchema").is_some_and(|schema| !describes_object(schema));
    is_other && tool.take("outputSchema").is_some()
}

/// Applies `change` to the tools of a list that contains the text `mark`. An unchanged tool keeps
/// every byte.
fn edit(
    result: &mut ObjectMembers<'_>,
    mark: &str,
    change: impl Fn(&mut ObjectMembers<'_>) -> bool,
) {
    let Some(tools) = result.get("tools").filter(|tools| tools.contains(mark)) else { return };
    let Some(tools) = all_items(tools, LIST_ITEMS_MAX) else { return };
    let changed = |tool: &&RawValue| {
        let mut members = ObjectMembers::read(tool.get())?;
        change(&mut members).then(|| members.to_string())
    };
    let changed = |tool: &&RawValue| changed(tool).unwrap_or_else(|| tool.get().to_owned());
    let tools: Vec<String> = tools.iter().map(changed).collect();
    result.set("tools", format!("[{}]", tools.join(",")));
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: &str = r#"{"tools":[{"name":"a","outputSchema":{"type":"array"},"execution":{"taskSupport":"optional"}},{ "name":"b","outputSchema":{"type":"object"}},{"name":"c","execution":{"taskSupport":"required","x":1e400}},{ "name":"d","description":"a \"taskSupport\"","execution":{}},7],"x":1e400}"#;

    #[test]
    fn a_legacy_tool_list_loses_only_task_support_and_output_schemas_of_no_object() {
        let mut result = ObjectMembers::read(TOOLS).expect("an object");
        narrow(&mut result, TaskSupport::Forbidden);
        let others = r#"{ "name":"b","outputSchema":{"type":"object"}},{"name":"c","execution":{"x":1e400}},{ "name":"d","description":"a \"taskSupport\"","execution":{}},7],"x":1e400}"#;
        assert_eq!(result.to_string(), format!(r#"{{"tools":[{{"name":"a"}},{others}"#));
    }

    #[test]
    fn with_tasks_supported_every_tool_is_marked_as_callable_as_a_task() {
        let tools = r#"{"tools":[{"name":"a","x":1e400},{"name":"b","execution":{"taskSupport":"required","x":1}},7]}"#;
        let mut result = ObjectMembers::read(tools).expect("an object");
        narrow(&mut result, TaskSupport::Optional);
        assert_eq!(
            result.to_string(),
            r#"{"tools":[{"name":"a","x":1e400,"execution":{"taskSupport":"optional"}},{"name":"b","execution":{"taskSupport":"optional","x":1}},7]}"#
        );
    }

    #[test]
    fn a_merged_tool_list_is_reduced_for_each_era() {
        let legacy = legacy_list(TOOLS.to_owned(), ListKind::Tools);
        assert!(legacy.contains(r#"{"name":"a","execution":{"taskSupport":"optional"}}"#));
        let modern = modern_list(TOOLS.to_owned(), ListKind::Tools);
        assert!(modern.contains(r#"{"name":"a","outputSchema":{"type":"array"}}"#), "{modern}");
        for list in [ListKind::Prompts, ListKind::Resources, ListKind::ResourceTemplates] {
            assert_eq!(legacy_list(TOOLS.to_owned(), list), TOOLS);
            assert_eq!(modern_list(TOOLS.to_owned(), list), TOOLS);
        }
    }

    #[test]
    fn a_malformed_tool_list_is_unchanged() {
        for text in [r#"{"tools":7,"a":"\"taskSupport\""}"#, r#"{"tools":["taskSupport"]}"#, "{}"] {
            let mut result = ObjectMembers::read(text).expect("an object");
            narrow(&mut result, TaskSupport::Forbidden);
            assert_eq!(result.to_string(), text);
        }
    }
}
