use serde_json::Value;

use super::*;
use crate::call_record::{SCRIPT_TOOLS, SEARCH_TOOLS};

/// The maximum size of the core set, in bytes, so that it stays below 1,500 tokens. A token of it
/// is 4.29 bytes, and tokenizers differ by less than the remaining tenth.
const CORE_BYTES_MAX: usize = 5_800;

/// The maximum size of the definition of `mcp_execute`, in bytes, so that it stays below 400 tokens.
const EXECUTE_BYTES_MAX: usize = 1_600;

fn all() -> Vec<MetaTool> {
    [ToolSet::Core, ToolSet::Metatools]
        .iter()
        .flat_map(|set| MetaTool::of_set(*set))
        .copied()
        .collect()
}

fn parsed(tool: MetaTool) -> Value {
    serde_json::from_str(tool.definition()).expect("a definition")
}

/// Calls `look` with each schema within `schema`, and its path.
fn each_schema(schema: &Value, path: &str, look: &mut impl FnMut(&str, &Value)) {
    look(path, schema);
    let properties = schema["properties"].as_object().into_iter().flatten();
    for (name, inner) in properties {
        each_schema(inner, &format!("{path}.{name}"), look);
    }
    if !schema["items"].is_null() {
        each_schema(&schema["items"], &format!("{path}[]"), look);
    }
}

#[test]
fn each_tool_has_a_definition_under_its_name_and_is_found_by_it() {
    for set in [ToolSet::Core, ToolSet::Metatools] {
        assert_eq!(MetaTool::of_set(set).len(), MetaTool::definitions(set).len());
        for (tool, item) in MetaTool::of_set(set).iter().zip(MetaTool::definitions(set)) {
            assert_eq!(tool.name(), item.key);
            assert_eq!(tool.set(), set);
            assert_eq!(MetaTool::named(tool.name(), &[set]), Some(*tool));
        }
    }
    assert_eq!(MetaTool::named("run_tool", &[ToolSet::Core]), None);
    assert_eq!(MetaTool::named("git__log", &[ToolSet::Core, ToolSet::Metatools]), None);
}

#[test]
fn the_records_of_calls_know_the_tools_that_search_and_those_that_run_scripts() {
    let names = |tools: &[MetaTool]| tools.iter().map(|tool| tool.name()).collect::<Vec<_>>();
    assert_eq!(names(&[MetaTool::Discover, MetaTool::SearchTools]), SEARCH_TOOLS);
    assert_eq!(
        names(&[MetaTool::Execute, MetaTool::RunChain, MetaTool::ExecuteCode]),
        SCRIPT_TOOLS
    );
}

#[test]
fn the_core_set_costs_less_than_1500_tokens_and_mcp_execute_less_than_400() {
    let length = MetaTool::Execute.definition().len();
    assert!(length <= EXECUTE_BYTES_MAX, "{length} bytes: count its tokens again");
    let length = list(MetaTool::of_set(ToolSet::Core).iter().copied(), true).len();
    assert!(length <= CORE_BYTES_MAX, "{length} bytes: count its tokens again");
}

#[test]
fn every_field_is_described_and_other_fields_are_refused() {
    for tool in all() {
        let definition = parsed(tool);
        assert!(definition["title"].is_string() && definition["description"].is_string());
        for side in ["inputSchema", "outputSchema"] {
            let schema = &definition[side];
            if schema.is_null() {
                continue;
            }
            each_schema(schema, side, &mut |path, schema| {
                let is_field = path.contains('.') && !path.ends_with("[]");
                let name = tool.name();
                assert!(!is_field || schema["description"].is_string(), "{name}: {path}");
                if schema["properties"].is_object() {
                    assert_eq!(schema["additionalProperties"], false, "{name}: {path}");
                }
            });
            assert_eq!(schema["type"], "object");
        }
    }
}

#[test]
fn every_tool_except_mcp_call_declares_its_output() {
    for tool in all() {
        let schema = &parsed(tool)["outputSchema"];
        assert_eq!(schema.is_null(), tool == MetaTool::Call, "{}", tool.name());
        if !schema.is_null() {
            assert_eq!(schema["properties"]["error"]["type"], "object", "{}", tool.name());
            assert_eq!(schema["required"], Value::Null, "an error has nothing but the error");
        }
    }
}

#[test]
fn hints_are_complete_and_only_tools_without_effects_are_read_only() {
    for tool in all() {
        let hints = parsed(tool)["annotations"].clone();
        let hint = |name: &str| hints[name].as_bool().expect(name);
        let (reads, destroys) = (hint("readOnlyHint"), hint("destructiveHint"));
        let (repeats, is_open) = (hint("idempotentHint"), hint("openWorldHint"));
        match tool {
            MetaTool::Discover
            | MetaTool::SearchTools
            | MetaTool::ListNamespaces
            | MetaTool::ListTools
            | MetaTool::DescribeTool
            | MetaTool::ListToolExamples => {
                assert_eq!((reads, destroys, repeats, is_open), (true, false, true, false));
            }
            MetaTool::Provision => {
                assert_eq!((reads, destroys, repeats, is_open), (false, false, true, true));
            }
            MetaTool::Call
            | MetaTool::Execute
            | MetaTool::RunTool
            | MetaTool::RunChain
            | MetaTool::ExecuteCode => {
                assert_eq!((reads, destroys, repeats, is_open), (false, true, false, true));
            }
        }
    }
}

#[test]
fn white_space_is_removed_between_json_tokens_and_kept_in_strings() {
    let text = "{ \"a b\" :\n\t[ \"c \\\" d\\\\\" , 1 ] }";
    assert_eq!(without_white_space(text), r#"{"a b":["c \" d\\",1]}"#);
}

/// Returns the list with a tool on each line.
fn lines(set: ToolSet) -> String {
    list(MetaTool::of_set(set).iter().copied(), false).replace("},{\"name\"", "},\n{\"name\"")
}

#[test]
fn always_load_adds_one_member_to_each_definition_and_changes_nothing_else() {
    for set in [ToolSet::Core, ToolSet::Metatools] {
        let parsed = |always_load| -> Value {
            serde_json::from_str(&list(MetaTool::of_set(set).iter().copied(), always_load))
                .expect("JSON")
        };
        let (mut kept, plain) = (parsed(true), parsed(false));
        for tool in kept["tools"].as_array_mut().expect("tools") {
            let meta = tool.as_object_mut().expect("an object").remove("_meta");
            assert_eq!(meta, Some(serde_json::json!({ "anthropic/alwaysLoad": true })));
        }
        assert_eq!(kept, plain);
    }
}

#[test]
fn the_core_set_is_listed_like_this() {
    insta::assert_snapshot!(lines(ToolSet::Core));
}

#[test]
fn the_metatools_set_is_listed_like_this() {
    insta::assert_snapshot!(lines(ToolSet::Metatools));
}
