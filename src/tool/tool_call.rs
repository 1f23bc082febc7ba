//! The request that calls a tool on behalf of another request.

use serde_json::Value;

use crate::{era, protocol::Message};

/// Returns the call of `tool` that `request` stands for, with its other parameters.
pub fn tool_call(request: &Message, tool: &str, args: &str) -> Message {
    let call = request.with_params(|params| {
        params.set("name", Value::from(tool).to_string());
        params.set("arguments", args.to_owned());
    });
    // The client could not find a task again here.
    era::without_tasks(call)
}
