//! Tests that each answer matches the output schema of its tool.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    arguments::{DetailLevel, DiscoverDetail},
    chain::{ChainIncludes, StepArguments, StepResult},
    reply::structured_answer,
    tool_entries::ToolEntries,
    *,
};
use crate::{
    capacity_holder::Account,
    config::ToolSet,
    tool::{ArgumentVerdict, ErrorObject, RequestedTool, SchemaCache, ToolId},
};

fn id() -> ToolId {
    ToolId::new("git", "log")
}

/// Checks the structured value of a result against the output schema of its tool.
#[track_caller]
fn assert_declared(tool: MetaTool, result: &str) {
    let definition: Value = serde_json::from_str(tool.definition()).expect("a definition");
    let result: Value = serde_json::from_str(result).expect("a result");
    let schema = definition["outputSchema"].to_string();
    let structured = &result["structuredContent"];
    let verdict =
        SchemaCache::default().check(Account::Unknown, &schema, &structured.to_string(), None);
    assert_eq!(verdict, ArgumentVerdict::Fits, "{}: {structured}", tool.name());
}

fn described() -> DescribedTool<'static> {
    DescribedTool::new(
        id(),
        r#"{"name":"log","description":"d","inputSchema":{"type":"object","properties":{"a":{"default":1}}},"annotations":{"readOnlyHint":true}}"#,
    )
}

#[test]
fn errors_match_the_output_schemas_of_all_tools() {
    let verdict =
        SchemaCache::default().check(Account::Unknown, r#"{"required":["a"]}"#, "{}", None);
    let ArgumentVerdict::Wrong(misfit) = verdict else { panic!("it does not fit") };
    let all = [
        misfit.to_error(&id()),
        ErrorObject::unknown_tool(&id(), &[]),
        ErrorObject::unknown_server("gti", &["git".to_owned()], &[]),
        ErrorObject::execution_unavailable("code is off", "Call a tool."),
        ErrorObject::no_stream(),
        ErrorObject::no_override(),
        ErrorObject::of_server("git", r#"{"code":-32000,"message":"m"}"#),
        ErrorObject::of_tool("no"),
        ErrorObject::no_result("git"),
    ];
    for tool in [ToolSet::Core, ToolSet::Metatools].iter().flat_map(|set| MetaTool::of_set(*set)) {
        // It has no output schema.
        if *tool == MetaTool::Call {
            continue;
        }
        for error in &all {
            assert_declared(*tool, &error.clone().about(&id()).during(tool.name()).to_result());
        }
    }
}

#[test]
fn descriptions_match_the_output_schemas() {
    for detail in [DetailLevel::Summary, DetailLevel::Schema, DetailLevel::Full] {
        let structured = described().described(detail, 5);
        assert_declared(MetaTool::DescribeTool, &structured_answer(&structured));
        let entry = described().discovered(detail);
        let structured = format!(r#"{{"tools":[{entry}],"nextCursor":"x","message":"m"}}"#);
        assert_declared(MetaTool::Discover, &structured_answer(&structured));
    }
    let mut entries = ToolEntries::new(1000, DiscoverDetail::Types);
    assert!(entries.add(&described(), described().discovered_beside_types()));
    let structured = entries.into_answer().to_string();
    assert!(structured.contains("/** default 1 */ a?: unknown;"), "{structured}");
    assert_declared(MetaTool::Discover, &structured_answer(&structured));
    let examples = json!({ "examples": described().examples(5) }).to_string();
    assert_declared(MetaTool::ListToolExamples, &structured_answer(&examples));
    let listed = format!(r#"{{"tools":[{}]}}"#, described().listed());
    assert_declared(MetaTool::SearchTools, &structured_answer(&listed));
    assert_declared(MetaTool::ListTools, &structured_answer(&listed));
    assert_declared(MetaTool::ListNamespaces, &structured_answer(r#"{"namespaces":["git"]}"#));
}

#[test]
fn chain_results_match_the_output_schema() {
    let step = StepArguments {
        tool: RequestedTool { server: None, tool: "git/log".to_owned() },
        args: "{}".to_owned(),
        use_previous: false,
    };
    let includes = ChainIncludes { backends: true, tools: true };
    let mut chain = ToolChain::new(vec![step; 3], 8, includes).expect("few enough");
    assert_declared(MetaTool::RunChain, &chain.to_result(1000));
    let failed = ToolOutcome::Failed(Box::new(ErrorObject::of_tool("no")));
    let warning = Some("unchecked".to_owned());
    for (outcome, warning) in [(ToolOutcome::Value("[1]".to_owned()), warning), (failed, None)] {
        let definition = Some(r#"{"name":"log"}"#.to_owned());
        chain.record_result(StepResult { id: Some(id()), definition, outcome, warning });
        assert_declared(MetaTool::RunChain, &chain.to_result(1000));
    }
}

#[test]
fn previews_and_their_pages_match_the_output_schema() {
    let result = json!({ "content": [{ "type": "text", "text": "x".repeat(10_000) }] }).to_string();
    let preview = ResultPreview::of(&result, 4096).expect("it is large");
    let bounds = result_cache::ResultCacheLimits {
        bytes_max: 100_000,
        count_max: 1,
        age_max: Duration::from_secs(1),
    };
    let mut results = ResultCache::new(bounds);
    let next = preview.next().expect("more");
    let document = preview.document().clone();
    let memory = crate::memory_budget::MemoryReservation::default();
    let mut cursor = results.keep([7; 16], &id(), (document, memory), next, Duration::ZERO);
    let mut n_pages = 0;
    assert_declared(
        MetaTool::RunTool,
        &preview.to_result(&id(), MetaTool::RunTool, cursor.as_deref()),
    );
    while let Some(at) = cursor {
        let page =
            results.page(&id(), MetaTool::RunTool, &at, 4096, Duration::ZERO).expect("a page");
        assert_declared(MetaTool::RunTool, &page);
        let page: Value = serde_json::from_str(&page).expect("JSON");
        let next = &page["structuredContent"]["preview"]["nextCursor"];
        cursor = next.as_str().map(str::to_owned);
        n_pages += 1;
    }
    assert!(n_pages >= 2);
}
