//! The run of an operator's script.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::{
    meta::operator_exchange,
    protocol::{Message, RpcError, payloads::method},
    script::{PreparedScript, ScriptEvent, ScriptStep},
};

/// The way of progress notifications to the caller of a script.
#[derive(Clone, Copy, Debug)]
pub struct ProgressLines<'a> {
    /// Takes the notifications.
    pub lines: &'a mpsc::Sender<Bytes>,
    /// The caller's token, JSON text.
    pub token: &'a str,
}

/// Runs a script to its result, JSON text. Sends progress notifications to `progress`. Refuses
/// questions of servers. Dropping the future ends the script with all of its calls.
///
/// # Errors
///
/// [`RpcError`] if the script does not return.
pub async fn finish_script(
    script: PreparedScript,
    progress: Option<ProgressLines<'_>>,
) -> Result<String, Box<RpcError>> {
    let mut exchange = operator_exchange(script);
    loop {
        let event = match exchange.next().await {
            ScriptStep::Answer(answer) => return answer,
            ScriptStep::Event(event) => *event,
        };
        if let Some(made) = script_progress(event)
            && let Some(ProgressLines { lines, token }) = progress
        {
            let token = serde_json::from_str(token).unwrap_or_default();
            let _reader_gone = lines.send(progress_line(token, made)).await;
        }
    }
}

/// Returns the notification of a progress, as bytes.
fn progress_line(token: Value, mut progress: Value) -> Bytes {
    progress["progressToken"] = token;
    Message::notification(method::PROGRESS, Some(&progress.to_string())).bytes().clone()
}

/// Returns the progress that an event of an operator's script reports, if it does. Refuses a
/// question: there is no client to ask.
pub fn script_progress(event: ScriptEvent) -> Option<Value> {
    match event {
        ScriptEvent::Progress(notice) => progress_of(&notice),
        ScriptEvent::Wait(text) => Some(json!({ "progress": 0, "message": text })),
        ScriptEvent::Question(question) => {
            question.refuse();
            None
        }
        ScriptEvent::Notification(..) => None,
    }
}

/// Returns the progress that a notification reports, without its token.
pub fn progress_of(notice: &Message) -> Option<Value> {
    if notice.method() != Some(method::PROGRESS) {
        return None;
    }
    let params: Map<String, Value> = serde_json::from_str(notice.params()?).ok()?;
    let known = ["progress", "total", "message"].into_iter();
    let found = known.filter_map(|name| Some((name.to_owned(), params.get(name)?.clone())));
    Some(Value::Object(found.collect()))
}
