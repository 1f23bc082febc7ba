//! A client of the meta-tools that validates each answer against the output schema of the tool.

use std::{collections::BTreeMap, sync::Arc};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{
    client::{Client, Reply},
    modern::Modern,
    stream::EventStream,
};

/// The schema of an error from a tool without an output schema.
const ERROR: &str = r#"{"type":"object","required":["error"],"properties":{"error":{"type":"object",
    "required":["code","message","retryable"],"additionalProperties":false,"properties":{
    "code":{"type":"string"},"message":{"type":"string","minLength":1},"retryable":{"type":"boolean"},
    "tool_id":{"type":"string"},"op":{"type":"string"},"backend_kind":{"const":"mcp"},
    "step_index":{"type":"integer","minimum":0},"details":{"type":"object","minProperties":1}}}}}"#;

/// A client of the meta-tools.
#[derive(Clone)]
pub(crate) struct MetaClient {
    pub(crate) http: Client,
    /// The modern client, if it speaks 2026-07-28.
    modern: Option<Modern>,
    schemas: Arc<OutputSchemas>,
}

/// The output schemas of the tools.
struct OutputSchemas {
    answers: BTreeMap<String, Option<Validator>>,
    error: Validator,
}

impl OutputSchemas {
    fn read(listed: &Value) -> Arc<Self> {
        let validator = |schema: &Value| jsonschema::validator_for(schema).expect("a schema");
        let tools = listed["result"]["tools"].as_array().expect("a list").iter();
        let answers = tools.map(|tool| {
            let name = tool["name"].as_str().expect("a name").to_owned();
            (name, tool.get("outputSchema").map(validator))
        });
        let error = serde_json::from_str(ERROR).expect("JSON");
        Arc::new(Self { answers: answers.collect(), error: validator(&error) })
    }

    /// Validates the answer to a call of `tool` against its schema.
    #[track_caller]
    fn check(&self, tool: &str, answer: &Value) {
        let Some(result) = answer.get("result") else { return };
        if result["resultType"] == "input_required" {
            return;
        }
        let answers = self.answers.get(tool).unwrap_or_else(|| panic!("`{tool}` is not listed"));
        let structured = result.get("structuredContent");
        let assert_valid = |validator: &Validator, value: &Value| {
            if let Err(error) = validator.validate(value) {
                panic!("{tool}: {error} at `{}`: {value}", error.instance_path());
            }
        };
        match (answers, structured) {
            (Some(answers), Some(value)) => assert_valid(answers, value),
            (Some(_), None) => panic!("{tool} returns no structured value: {answer}"),
            (None, _) => {}
        }
        assert!(result["content"].is_array() || answers.is_none(), "{answer}");
        let is_error = result["isError"] == true;
        if let Some(value) = structured.filter(|value| is_error && value.get("error").is_some()) {
            assert_valid(&self.error, value);
            let text = result["content"][0]["text"].as_str().expect("a text");
            let message = value["error"]["message"].as_str().expect("a text");
            assert!(text.starts_with(message), "{answer}");
        }
        let is_whole = answers.is_some() && structured.is_some_and(|v| v.get("preview").is_none());
        if !is_error && is_whole {
            let text = result["content"][0]["text"].as_str().expect("a text");
            let parsed: Value = serde_json::from_str(text).expect(text);
            assert_eq!(Some(&parsed), structured, "the text of {tool} is the structured value");
        }
    }
}

impl MetaClient {
    /// Returns a client of a path, with the output schemas of the tools there.
    pub(crate) async fn at(http: Client) -> Self {
        let listed = http.request(json!(0), "tools/list", json!({})).await.answer();
        Self { http, modern: None, schemas: OutputSchemas::read(&listed) }
    }

    /// Returns a client of 2026-07-28, with the output schemas of the tools.
    pub(crate) async fn modern(modern: Modern) -> Self {
        let listed = modern.request(json!(0), "tools/list", json!({})).await.answer();
        Self {
            http: modern.http.clone(),
            schemas: OutputSchemas::read(&listed),
            modern: Some(modern),
        }
    }

    /// Posts a call and returns the whole answer, which is validated unless it contains a number
    /// that `serde_json` cannot read.
    pub(crate) async fn reply(&self, tool: &str, params: Value) -> Reply {
        let reply = match &self.modern {
            None => self.http.request(json!(1), "tools/call", params).await,
            Some(modern) => modern.request(json!(1), "tools/call", params).await,
        };
        if let Ok(answer) = serde_json::from_str(&reply.body) {
            self.schemas.check(tool, &answer);
        }
        reply
    }

    /// Calls a tool and returns the whole answer.
    pub(crate) async fn answer(&self, tool: &str, arguments: Value) -> Value {
        let reply = self.reply(tool, json!({ "name": tool, "arguments": arguments })).await;
        let answer = reply.answer();
        self.schemas.check(tool, &answer);
        answer
    }

    /// Calls a tool and returns its result, successful or not.
    pub(crate) async fn result(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.answer(tool, arguments).await;
        let result = answer.get("result");
        result.unwrap_or_else(|| panic!("{tool} is refused: {answer}")).clone()
    }

    /// Calls a tool and returns its structured value, which must not be an error.
    pub(crate) async fn value(&self, tool: &str, arguments: Value) -> Value {
        let result = self.result(tool, arguments).await;
        assert_ne!(result["isError"], true, "{result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that fails, and returns its error.
    pub(crate) async fn error(&self, tool: &str, arguments: Value) -> Value {
        let result = self.result(tool, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        let error = result["structuredContent"].get("error");
        error.unwrap_or_else(|| panic!("no error: {result}")).clone()
    }

    /// Calls a tool with an invalid request, and returns the protocol error.
    pub(crate) async fn refused(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.answer(tool, arguments).await;
        let error = answer.get("error");
        error.unwrap_or_else(|| panic!("the call is not refused: {answer}")).clone()
    }

    /// Calls a tool with a progress token, and returns the stream of the answer.
    pub(crate) async fn stream(&self, tool: &str, arguments: Value, token: &Value) -> EventStream {
        let params = json!({
            "name": tool, "arguments": arguments, "_meta": { "progressToken": token },
        });
        match &self.modern {
            None => self.http.stream(json!(1), "tools/call", params).await,
            Some(modern) => modern.stream(json!(1), "tools/call", params).await,
        }
    }

    /// Reads a stream up to the answer of `tool`, and returns the earlier messages and the answer.
    pub(crate) async fn last(&self, tool: &str, stream: &mut EventStream) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let message = stream.message().await;
            if message.get("method").is_none() {
                self.schemas.check(tool, &message);
                return (before, message);
            }
            before.push(message);
        }
    }
}

/// Returns a member of each entry of a list.
#[track_caller]
pub(crate) fn each(value: &Value, list: &str, member: &str) -> Vec<String> {
    let entries = value[list].as_array().unwrap_or_else(|| panic!("no `{list}`: {value}")).iter();
    entries.map(|entry| entry[member].as_str().expect("a text").to_owned()).collect()
}
