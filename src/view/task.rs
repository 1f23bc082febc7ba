//! Requests about tasks, at the view of one server.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::{Outcome, Views};
use crate::{
    call::CallError,
    config::defaults,
    pool::{FinishedTask, Slot},
    protocol::{
        Message,
        jsonrpc::Part,
        mcp::List,
        task::{self, Offer},
    },
    session::Session,
};

/// Returns what of the tasks of the server of `slot` a client is told.
pub(super) fn offered(slot: &Slot, session: &Session) -> Offer {
    match slot.tasks() {
        // Nobody knows the client again, and its connection ends with its request.
        Offer::All if session.is_modern() || session.id().is_none() => Offer::Nothing,
        offer => offer,
    }
}

impl Views {
    /// Has the tools of a server listed before the first call of a client that takes tasks: a server
    /// up to 2025-11-25 says there which of them are called as tasks or not at all.
    pub(super) async fn know_demanding_tools(&self, slot: &Arc<Slot>, session: &Session) {
        let takes_tasks = session
            .introduction()
            .is_some_and(|introduction| task::is_taken(&introduction.capabilities));
        if takes_tasks && !slot.hints().are_known() {
            let listing =
                self.catalog.listing(slot, List::Tools, self.lister(session), self.limits());
            // Without a list, the server itself says what it wants.
            let _is_known = timeout(defaults::LIST_PATIENCE, listing).await;
        }
    }

    /// Hands a request about a task to its server, unless the task is one of ours.
    pub(super) async fn about_task(
        &self,
        slot: Arc<Slot>,
        session: &Session,
        request: &Message,
    ) -> Result<Outcome, CallError> {
        if request.method() == Some(task::LIST) && offered(&slot, session) != Offer::All {
            return Err(CallError::UnknownMethod {
                method: task::LIST.to_owned(),
                hint: "Nobody is shown the tasks of others: keep the ids of your own.",
            });
        }
        if !session.is_modern() {
            let ours = task::id_of(request).and_then(|id| slot.finished().get(&id, Instant::now()));
            if let Some(answer) = ours.and_then(|ours| about_finished(request, &ours)) {
                return Ok(answer);
            }
        }
        self.exchange(slot, session, request.clone()).await
    }
}

/// Answers a request about a task that was finished before its client knew of it.
fn about_finished(request: &Message, ours: &FinishedTask) -> Option<Outcome> {
    let id = request.part(Part::Id).unwrap_or("null");
    let told: Value = serde_json::from_str(&ours.task).unwrap_or_default();
    Some(Outcome::Answer(match request.method()? {
        task::GET => Message::response(id, &ours.task),
        task::RESULT => {
            let task = told["taskId"].to_string();
            Message::response(id, &task::related(&ours.result, &task))
        }
        task::CANCEL => task::ended(told["status"].as_str().unwrap_or_default()).render(Some(id)),
        _ => return None,
    }))
}
