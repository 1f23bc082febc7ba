use proptest::prelude::*;

use super::*;

const INCLUDES: ChainIncludes = ChainIncludes { backends: true, tools: false };
const ROOM: usize = 64 * 1024;

fn step(tool: &str, use_previous: bool) -> StepArguments {
    StepArguments {
        tool: RequestedTool { server: None, tool: tool.to_owned() },
        args: r#"{"n":1.0,"previous":0}"#.to_owned(),
        use_previous,
    }
}

fn chain(steps: &[(&str, bool)]) -> ToolChain {
    let steps = steps.iter().map(|(tool, previous)| step(tool, *previous)).collect();
    ToolChain::new(steps, 8, INCLUDES).expect("few enough")
}

fn value(tool: &str, value: &str) -> StepResult {
    StepResult {
        warning: None,
        id: ToolId::parse(tool).ok(),
        definition: Some(r#"{"name":"t"}"#.to_owned()),
        outcome: ToolOutcome::Value(value.to_owned()),
    }
}

fn failure(tool: &str) -> StepResult {
    let error = ErrorObject::of_tool("no such branch").during(MetaTool::RunChain.name());
    StepResult { outcome: ToolOutcome::Failed(Box::new(error)), ..value(tool, "") }
}

fn result(chain: &ToolChain) -> Value {
    serde_json::from_str(&chain.to_result(ROOM)).expect("JSON")
}

#[test]
fn a_step_gets_the_value_of_the_previous_step_on_request() {
    let mut chain = chain(&[("a/x", true), ("b/y", true), ("c/z", false)]);
    assert_eq!(chain.next().expect("a step").args, r#"{"n":1.0,"previous":0}"#);
    chain.record_result(value("a/x", r#"{"v":1e400}"#));
    assert_eq!(chain.next().expect("a step").args, r#"{"n":1.0,"previous":{"v":1e400}}"#);
    chain.record_result(value("b/y", "2"));
    let last = chain.next().expect("a step");
    assert_eq!(last.args, r#"{"n":1.0,"previous":0}"#);
    chain.record_result(value("c/z", "3"));
    assert_eq!(chain.next(), None);
}

#[test]
fn a_chain_that_succeeds_answers_with_all_values() {
    let mut chain = chain(&[("a/x", false), ("b/y", false)]);
    chain.record_result(value("a/x", "1"));
    chain.record_result(value("b/y", r#"{"v":2}"#));
    let result = result(&chain);
    assert_eq!(
        result["structuredContent"],
        json!({
            "results": [
                { "tool_id": "a/x", "structured": 1, "backend": { "kind": "mcp", "serverName": "a" } },
                { "tool_id": "b/y", "structured": { "v": 2 }, "backend": { "kind": "mcp", "serverName": "b" } },
            ],
            "final": { "v": 2 },
        })
    );
    assert_eq!(result["isError"], false);
}

#[test]
fn a_chain_stops_at_the_first_failure_and_names_the_step() {
    let mut chain = chain(&[("a/x", false), ("b/y", false), ("c/z", false)]);
    chain.record_result(value("a/x", "1"));
    chain.record_result(failure("b/y"));
    assert_eq!(chain.next(), None);
    chain.record_result(value("c/z", "3"));

    let result = result(&chain);
    let structured = &result["structuredContent"];
    assert_eq!(structured["results"].as_array().map(Vec::len), Some(2));
    assert_eq!(structured["results"][1]["error"]["code"], "execution_failed");
    assert_eq!(structured["results"][1]["error"]["step_index"], 1);
    assert_eq!(structured["final"], 1);
    assert_eq!(structured["error"]["code"], "chain_step_failed");
    assert_eq!(structured["error"]["step_index"], 1);
    assert_eq!(
        structured["error"]["details"],
        json!({ "cause_code": "execution_failed", "cause_op": "run_chain", "cause_backend_kind": "mcp" })
    );
    assert_eq!(structured["error"]["retryable"], false);
    assert_eq!(result["isError"], true);
    assert_eq!(result["content"][0]["text"], "step 2 of 3, `b/y`, failed: no such branch");
}

#[test]
fn a_chain_reports_progress_after_each_step() {
    let mut chain = chain(&[("a/x", false), ("b/y", false)]);
    let told = |chain: &ToolChain| {
        let ProgressReport { done, total, message } = chain.progress();
        format!("{done}/{total} {message}")
    };
    assert_eq!(told(&chain), "0/2 started");
    chain.record_result(value("a/x", "1"));
    assert_eq!(told(&chain), "1/2 step_completed");
    chain.record_result(failure("b/y"));
    assert_eq!(told(&chain), "2/2 step_error");
}

#[test]
fn a_chain_with_too_many_steps_is_refused() {
    let steps = vec![step("a/x", false); 9];
    let error = ToolChain::new(steps, 8, INCLUDES).expect_err("too many").to_error();
    assert_eq!(error.code, ErrorCode::ValidationInput);
    assert_eq!(error.details["limit"], 8);
}

#[test]
fn the_definition_of_a_tool_is_added_on_request() {
    let includes = ChainIncludes { backends: false, tools: true };
    let mut chain = ToolChain::new(vec![step("a/x", false)], 8, includes).expect("one");
    chain.record_result(value("a/x", "1"));
    let first = &result(&chain)["structuredContent"]["results"][0];
    assert_eq!(*first, json!({ "tool_id": "a/x", "structured": 1, "tool": { "name": "t" } }));
}

#[test]
fn a_value_that_is_too_large_is_cut_and_says_so() {
    let mut chain = chain(&[("a/x", false), ("b/y", true)]);
    let large = json!(vec!["x"; 100_000]).to_string();
    chain.record_result(value("a/x", &large));
    assert!(chain.next().expect("a step").args.contains(&large), "the next step gets all of it");
    chain.record_result(value("b/y", "2"));
    let text = chain.to_result(ROOM);
    assert!(text.len() < 3 * ROOM, "{}", text.len());
    let first = &result(&chain)["structuredContent"]["results"][0]["structured"];
    assert!(first.as_str().is_some_and(|text| text.contains("bytes left out")));
}

proptest! {
    #[test]
    fn a_chain_ends_with_an_answer_whatever_its_steps_return(
        all in prop::collection::vec((any::<bool>(), any::<bool>(), ".{0,20}"), 1..8)
    ) {
        let steps: Vec<StepArguments> =
            all.iter().map(|(_, previous, tool)| step(tool, *previous)).collect();
        let mut chain = ToolChain::new(steps, 8, INCLUDES).expect("few enough");
        for (succeeds, _, tool) in &all {
            let Some(next) = chain.next() else { break };
            prop_assert!(serde_json::from_str::<Value>(&next.args).is_ok());
            chain.record_result(if *succeeds { value(tool, &json!(tool).to_string()) } else { failure(tool) });
        }
        prop_assert!(chain.next().is_none());
        let result = result(&chain);
        let n_run = all.iter().position(|(succeeds, ..)| !succeeds).map_or(all.len(), |at| at + 1);
        let results = result["structuredContent"]["results"].as_array().map(Vec::len);
        prop_assert_eq!(results, Some(n_run));
        let fails = all.iter().any(|(succeeds, ..)| !succeeds);
        prop_assert_eq!(&result["isError"], fails);
    }
}
