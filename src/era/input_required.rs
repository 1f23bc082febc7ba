//! Requests for input, with which a server of the modern era may answer a request.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::protocol::{Message, ObjectMembers, jsonrpc::MessagePart, payloads::method};

/// An `input_required` result in place of the final answer.
#[derive(Clone, Debug, Default)]
pub struct InputRequired {
    /// The questions, as requests built by metamcp, by the server's keys.
    pub questions: Vec<(String, Message)>,
    /// The state that the server expects back unchanged, JSON text.
    pub state: Option<String>,
}

impl InputRequired {
    /// Reads a result of the modern era. An invalid question is skipped; the server asks it again,
    /// since its answer is missing.
    pub(super) fn read(result: &ObjectMembers<'_>) -> Self {
        let requests = result.object("inputRequests");
        let questions = requests.iter().filter_map(|(key, request)| {
            let request = ObjectMembers::read(request)?;
            let requested = request.string("method")?;
            let mut params = ObjectMembers::read(request.get("params").unwrap_or("{}"))?;
            // The id that tells a legacy client which visit is meant; a modern client repeats its
            // request instead.
            if requested == method::ELICITATION
                && params.string("mode").as_deref() == Some("url")
                && params.get("elicitationId").is_none()
            {
                let id = uuid::Uuid::new_v4().to_string();
                params.set("elicitationId", json!(id).to_string());
            }
            Some((key.to_owned(), Message::request(&requested, Some(&params.to_string()))))
        });
        let questions = questions.collect();
        Self { questions, state: result.get("requestState").map(str::to_owned) }
    }

    /// Reads the error with which a server of 2025-11-25 asks the client to visit URLs.
    pub(super) fn of_urls(error: &str) -> Option<Self> {
        let error = ObjectMembers::read(error)?;
        let data = ObjectMembers::read(error.get("data")?)?;
        let visits: Vec<&serde_json::value::RawValue> =
            serde_json::from_str(data.get("elicitations")?).ok()?;
        let questions = visits.iter().enumerate().filter_map(|(index, params)| {
            let params = ObjectMembers::read(params.get())?;
            let question = Message::request(method::ELICITATION, Some(&params.to_string()));
            Some((format!("visit{index}"), question))
        });
        let questions: Vec<_> = questions.collect();
        (!questions.is_empty()).then_some(Self { questions, state: None })
    }

    /// Returns the result that asks a modern client for the input.
    pub fn to_result(&self) -> String {
        let mut requests = ObjectMembers::default();
        for (key, question) in &self.questions {
            requests.set(key, input_request(question));
        }
        let mut result = ObjectMembers::default();
        result.set("resultType", "\"input_required\"");
        if !requests.is_empty() {
            result.set("inputRequests", requests.to_string());
        }
        if let Some(state) = &self.state {
            result.set("requestState", state.as_str());
        }
        result.to_string()
    }
}

/// Converts a server's request to a value of `inputRequests`.
fn input_request(question: &Message) -> String {
    let mut params = question.param_members();
    // In the modern era, the answer reports no progress and a visit has no id.
    for name in ["_meta", "task", "elicitationId"] {
        params.take(name);
    }
    let mut request = ObjectMembers::default();
    request.set("method", json!(question.method()).to_string());
    request.set("params", params.to_string());
    request.to_string()
}

/// Returns a request with the client's answers and the state that the server expects back.
/// `responses` are JSON texts by the server's keys.
pub fn retry(request: &Message, responses: &[(String, String)], state: Option<&str>) -> Message {
    request.with_params(|params| {
        params.take("requestState");
        set_responses(params, responses);
        if let Some(state) = state {
            params.set("requestState", state.to_owned());
        }
    })
}

/// Returns the request of a client that repeats `original`, without its answers to a question of
/// metamcp itself. The server gets what it would have got without the question.
pub fn without_answers(retry: &Message, original: &Message) -> Message {
    let own = original.param_members();
    retry.with_params(|params| {
        for name in ["requestState", "inputResponses"] {
            params.take(name);
            if let Some(value) = own.get(name) {
                params.set(name, value.to_owned());
            }
        }
    })
}

/// Replaces the answers in the parameters of a request: JSON texts by the server's keys.
pub(super) fn set_responses(params: &mut ObjectMembers<'_>, responses: &[(String, String)]) {
    params.take("inputResponses");
    if responses.is_empty() {
        return;
    }
    let mut all = ObjectMembers::default();
    for (key, result) in responses {
        all.set(key, result.as_str());
    }
    params.set("inputResponses", all.to_string());
}

/// Returns the client's answer to the question `key`, as JSON text, if the retry contains it.
pub fn response(retry: &Message, key: &str) -> Option<String> {
    ObjectMembers::read(retry.part(MessagePart::InputResponses)?)?.get(key).map(str::to_owned)
}

/// Returns a digest that a request and its retry share. It covers the method and the parameters,
/// except for those that differ by design.
pub fn digest(request: &Message) -> [u8; 32] {
    let params = request.params().unwrap_or("null");
    // Text edits preserve what only the server can parse.
    let params = ObjectMembers::read(params).map_or_else(
        || params.to_owned(),
        |mut params| {
            for name in ["_meta", "inputResponses", "requestState"] {
                params.take(name);
            }
            params.to_string()
        },
    );
    // A retry may order members differently, so they are sorted. Text with a number too large to
    // parse is hashed as it is.
    let params = match serde_json::from_str::<serde_json::Value>(&params) {
        Ok(params) => json!([params]),
        Err(_) => json!({ "text": params }),
    };
    let method = request.method().unwrap_or_default();
    Sha256::digest(json!([method, params]).to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(params: &str) -> Message {
        Message::request("tools/call", Some(params))
    }

    #[test]
    fn a_retry_contains_the_answers_and_the_unchanged_state() {
        let asked = request(r#"{"name":"a","requestState":"old","x":1e400}"#);
        let answers = [("who".to_owned(), r#"{"action":"accept"}"#.to_owned())];
        let retry = retry(&asked, &answers, Some(r#""s\u0041""#));
        let text = String::from_utf8_lossy(retry.bytes()).into_owned();
        assert!(text.ends_with(
            r#""params":{"name":"a","x":1e400,"inputResponses":{"who":{"action":"accept"}},"requestState":"s\u0041"}}"#
        ), "{text}");
        assert_eq!(response(&retry, "who").as_deref(), Some(r#"{"action":"accept"}"#));
        assert_eq!(response(&retry, "other"), None);
        let without = super::retry(&retry, &[], None);
        assert_eq!(without.part(MessagePart::RequestState), None);
    }

    #[test]
    fn a_retry_has_the_digest_of_its_request() {
        let first = digest(&request(r#"{"name":"a","arguments":{"x":1,"y":[2]}}"#));
        let again = request(
            r#"{"arguments":{"y":[2],"x":1},"name":"a","_meta":{"z":1},"requestState":"s","inputResponses":{}}"#,
        );
        assert_eq!(first, digest(&again));
        for other in [r#"{"name":"b","arguments":{"x":1,"y":[2]}}"#, r#"{"name":"a"}"#, "[1]"] {
            assert_ne!(first, digest(&request(other)), "{other}");
        }
        assert_ne!(digest(&Message::request("a", None)), digest(&Message::request("b", None)));
    }

    #[test]
    fn a_number_too_large_to_parse_is_part_of_the_request_digest() {
        let asked = |n: &str, rest: &str| {
            digest(&request(&format!(r#"{{"name":"a","arguments":{{"n":{n}}}{rest}}}"#)))
        };
        assert_eq!(asked("1e400", ""), asked("1e400", r#","requestState":"s","_meta":{}"#));
        assert_ne!(asked("1e400", ""), asked("1e401", ""));
    }
}
