//! What a call of a tool takes before it is sent, whoever wants it: its arguments held against the
//! schema, and the request that it becomes.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::task;

use super::Views;
use crate::{
    connection::Limits,
    era,
    meta::{ErrorObject, ToolId, Validators, Verdict},
    protocol::{Members, Message, mcp::Item},
};

impl Views {
    /// Returns the bounds of a call that is given so much time; never more than the service gives it.
    pub(super) fn limits_within(&self, timeout: Option<Duration>) -> Limits {
        let limits = self.limits();
        let Some(timeout) = timeout else { return limits };
        let total = timeout.min(limits.total);
        Limits { silence: total, total }
    }
}

/// Has the schema of a tool understood if it never was, so that [`check`] is quick. Patterns can take
/// a second and more, so this holds up no other request.
pub(super) async fn understand(validators: &Arc<Validators>, item: &Item) {
    let schema = schema_of(item);
    if validators.knows(schema) {
        return;
    }
    let (validators, schema) = (Arc::clone(validators), schema.to_owned());
    let learning = task::spawn_blocking(move || validators.learn(&schema));
    // One that is not understood is understood when it is needed.
    let _panicked = learning.await;
}

pub(super) fn schema_of(item: &Item) -> &str {
    Members::one(item.json(), "inputSchema").unwrap_or("{}")
}

/// Holds arguments against the schema of a tool.
///
/// # Errors
///
/// [`ErrorObject`] with all that is wrong with them.
pub(super) fn check(
    validators: &Validators,
    id: &ToolId,
    item: &Item,
    args: &str,
) -> Result<(), Box<ErrorObject>> {
    match validators.check(schema_of(item), args) {
        Verdict::Fits => Ok(()),
        Verdict::Wrong(misfit) => Err(Box::new(misfit.to_error(id))),
        Verdict::Unchecked(reason) => {
            let (server, tool) = (&id.server, &id.tool);
            tracing::debug!(mcp_server = server, mcp_tool = tool, %reason, "arguments not checked");
            Ok(())
        }
    }
}

/// Returns the call of `tool` that a call of ours stands for. What is not about the tool of ours stays.
pub(super) fn call_of(request: &Message, tool: &str, args: &str) -> Message {
    let call = request.with_params(|params| {
        params.set("name", Value::from(tool).to_string());
        params.set("arguments", args.to_owned());
    });
    // Nobody would know here whose a task is.
    era::without_tasks(call)
}
