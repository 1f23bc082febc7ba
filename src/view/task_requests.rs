//! The task support that clients see, and answers about tasks that ended before their clients knew.

use bytes::Bytes;
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    pool::ServerSlot,
    protocol::{
        Message,
        jsonrpc::MessagePart,
        task::{self, TaskCapability},
    },
    session::Session,
};

/// Returns the task support that a client of the server of `slot` sees.
pub(super) fn offered(slot: &ServerSlot, session: &Session) -> TaskCapability {
    match slot.tasks() {
        // The client has no identity, and its connection ends with its request.
        TaskCapability::All if session.is_modern() || session.id().is_none() => {
            TaskCapability::Nothing
        }
        offer => offer,
    }
}

/// Answers a request about a task that ended before its client knew of it.
pub(super) fn finished_answer(slot: &ServerSlot, request: &Message) -> Option<Bytes> {
    let finished = slot.finished().get(&task::id_of(request)?, Instant::now())?;
    let id = request.part(MessagePart::Id).unwrap_or("null");
    let task: Value = serde_json::from_str(&finished.task).unwrap_or_default();
    Some(match request.method()? {
        task::GET => Message::response(id, &finished.task),
        task::RESULT => {
            let task_id = task["taskId"].to_string();
            Message::response(id, &task::related(&finished.result, &task_id))
        }
        task::CANCEL => task::ended(task["status"].as_str().unwrap_or_default()).render(Some(id)),
        _ => return None,
    })
}
