//! Tools that ask the client before they answer, in the manner of either era.
//!
//! A legacy client gets requests. A modern client gets a result with the questions, and calls again
//! with the answers; earlier answers are in the state that it returns.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use serde_json::{json, value::RawValue};

use super::Outcome;
use crate::{
    call::Call,
    message::{self, Members, RpcError, quoted},
    output::OutputSender,
};

/// The prefix of the state, with characters that reveal changes of the encoding.
const STATE: &str = "fake state é\"\\/+=% ";

/// A question to the client.
#[derive(Debug)]
struct Question {
    key: &'static str,
    method: String,
    params: String,
}

/// Returns the client capabilities that a tool requires.
pub(super) fn capabilities(tool: &str, arguments: &Members) -> Option<Vec<&'static str>> {
    let rounds = rounds(tool, arguments).ok()?;
    Some(rounds.iter().flatten().filter_map(|question| capability(&question.method)).collect())
}

/// Asks the questions of the tool, and returns the answers.
pub(super) async fn ask(call: &Call, tool: &str, params: &Members) -> Result<Outcome, RpcError> {
    let arguments = Members::read(params.raw("arguments"));
    let rounds = rounds(tool, &arguments)?;
    if call.client.is_some() {
        return ask_modern(call, tool, params, &rounds);
    }
    let is_on_get = arguments.optional::<String>("on")?.is_some_and(|on| on == "get");
    let output = if is_on_get { listener(call)? } else { call.output.clone() };
    let mut answers = BTreeMap::new();
    for round in &rounds {
        let asked = round.iter().map(|Question { method, params, .. }| {
            let (call, output) = (&call, &output);
            async move { call.fake.ask(output, method, params).await }
        });
        tokio::select! {
            texts = join_all(asked) => {
                let keys = round.iter().map(|question| question.key.to_owned());
                answers.extend(keys.zip(texts));
            }
            () = call.cancelled.cancelled() => return Ok(Outcome::Result(message::data_result("null"))),
        }
    }
    Ok(answered(tool, &answers))
}

/// Answers if all questions are answered, else asks the first incomplete round.
fn ask_modern(
    call: &Call,
    tool: &str,
    params: &Members,
    rounds: &[Vec<Question>],
) -> Result<Outcome, RpcError> {
    let mut answers: BTreeMap<String, Box<RawValue>> =
        match params.optional::<String>("requestState")? {
            Some(state) => read_state(tool, &state)?,
            None if params.raw("inputResponses").is_some() => {
                return Err(RpcError::invalid("`inputResponses` without `requestState`"));
            }
            None => BTreeMap::new(),
        };
    if params.raw("requestState").is_some() {
        call.fake.count("retries");
    }
    let new: Option<BTreeMap<String, Box<RawValue>>> = params.optional("inputResponses")?;
    answers.extend(new.into_iter().flatten());
    let is_asked = |key: &str| rounds.iter().flatten().any(|question| question.key == key);
    answers.retain(|key, _| is_asked(key));
    for round in rounds {
        let open: Vec<&Question> =
            round.iter().filter(|question| !answers.contains_key(question.key)).collect();
        if open.is_empty() {
            continue;
        }
        let requests = open.iter().map(|Question { key, method, params }| {
            let method = quoted(method);
            format!(r#""{key}":{{"method":{method},"params":{params}}}"#)
        });
        let requests: Vec<String> = requests.collect();
        let state = quoted(&write_state(tool, &answers));
        return Ok(Outcome::Result(format!(
            r#"{{"resultType":"input_required","inputRequests":{{{}}},"requestState":{state}}}"#,
            requests.join(",")
        )));
    }
    let answers =
        answers.iter().map(|(key, answer)| (key.clone(), format!(r#"{{"result":{answer}}}"#)));
    Ok(answered(tool, &answers.collect()))
}

/// Returns a state with the answers so far.
fn write_state(tool: &str, answers: &BTreeMap<String, Box<RawValue>>) -> String {
    let answers = answers.iter().map(|(key, answer)| format!(r#""{key}":{answer}"#));
    let answers: Vec<String> = answers.collect();
    format!(r#"{STATE}{{"tool":"{tool}","answers":{{{}}}}}"#, answers.join(","))
}

/// Parses the earlier answers from an unchanged state.
fn read_state(tool: &str, state: &str) -> Result<BTreeMap<String, Box<RawValue>>, RpcError> {
    let state = Members::read(state.strip_prefix(STATE));
    match (state.optional::<String>("tool")?, state.optional("answers")?) {
        (Some(of), Some(answers)) if of == tool => Ok(answers),
        _ => Err(RpcError::invalid("`requestState` is not what this tool has given")),
    }
}

/// Returns the result of the tool.
fn answered(tool: &str, answers: &BTreeMap<String, String>) -> Outcome {
    if let ("ask", Some(answer)) = (tool, answers.get("answer")) {
        return Outcome::Result(message::data_result(answer));
    }
    let members = answers.iter().map(|(key, answer)| format!(r#""{key}":{answer}"#));
    let members: Vec<String> = members.collect();
    Outcome::Result(message::data_result(&format!("{{{}}}", members.join(","))))
}

/// Returns the questions of a tool, in rounds.
fn rounds(tool: &str, arguments: &Members) -> Result<Vec<Vec<Question>>, RpcError> {
    let question = |key, method: &str, params: Option<&str>| Question {
        key,
        method: method.to_owned(),
        params: params.unwrap_or(default_params(method)).to_owned(),
    };
    let elicit = |key, message: &str| {
        let params = json!({
            "message": message,
            "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
        });
        question(key, "elicitation/create", Some(&params.to_string()))
    };
    Ok(match tool {
        "ask" => {
            let method: String = arguments.required("method")?;
            vec![vec![question("answer", &method, arguments.raw("params"))]]
        }
        "ask_twice" => {
            vec![vec![elicit("first", "your name?")], vec![elicit("second", "your other name?")]]
        }
        "ask_both" => {
            vec![vec![elicit("name", "your name?"), question("roots", "roots/list", None)]]
        }
        _ => Vec::new(),
    })
}

/// Returns the stream that belongs to no request.
fn listener(call: &Call) -> Result<OutputSender, RpcError> {
    let state = call.fake.state();
    let session = state.sessions.get(call.session_id());
    let listener = session.and_then(|session| session.listener.clone());
    listener.ok_or_else(|| RpcError::new(-32603, "the session has no GET stream"))
}

/// Returns the client capability that a method requires.
fn capability(method: &str) -> Option<&'static str> {
    match method {
        "elicitation/create" => Some("elicitation"),
        "roots/list" => Some("roots"),
        "sampling/createMessage" => Some("sampling"),
        _ => None,
    }
}

/// Returns valid default parameters for a request of a server.
fn default_params(method: &str) -> &'static str {
    match method {
        "sampling/createMessage" => {
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}],"maxTokens":16}"#
        }
        "elicitation/create" => {
            r#"{"message":"your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}"#
        }
        _ => "{}",
    }
}
