//! The questions of the calls of one script, as one question to its client. Pure.

use crate::protocol::ObjectMembers;

/// Returns the `inputRequests` of these operations together, JSON text.
pub(super) fn input_requests(asked: &[(u32, &str)]) -> String {
    let mut all = ObjectMembers::default();
    for (number, question) in asked {
        let question = ObjectMembers::read(question).unwrap_or_default();
        for (key, request) in question.object("inputRequests").iter() {
            all.set(&format!("{number}.{key}"), request.to_owned());
        }
    }
    all.to_string()
}

/// Returns the answers to the question of operation `number`, JSON text of an object; `None` if the
/// client has answered nothing of what it asks.
pub(super) fn answers_of(
    number: u32,
    question: &str,
    responses: &ObjectMembers<'_>,
) -> Option<String> {
    let question = ObjectMembers::read(question)?;
    let requests = question.object("inputRequests");
    let mut answers = ObjectMembers::default();
    for (key, _) in requests.iter() {
        if let Some(answer) = responses.get(&format!("{number}.{key}")) {
            answers.set(key, answer.to_owned());
        }
    }
    (!answers.is_empty() || requests.is_empty()).then(|| answers.to_string())
}
