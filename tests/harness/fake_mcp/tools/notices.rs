//! Tools that tell clients something besides their answer.

use serde_json::json;

use crate::{
    call::Call,
    message::{self, Fault, Members},
    session::Level,
    wire::Write,
};

/// Sends the notification and returns the result of the tool.
pub(super) async fn send(call: &Call, name: &str, arguments: &Members) -> Result<String, Fault> {
    let fake = &call.fake;
    let told = match name {
        "emit" => {
            let message: String = arguments.required("message")?;
            json!({ "listeners": fake.broadcast(&message, Some(&call.wire)).await })
        }
        "flip_tools" => {
            let added = fake.state().flip();
            let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
            fake.broadcast(changed, Some(&call.wire)).await;
            json!({ "added": added })
        }
        "log" => json!({ "sent": log(call, arguments).await? }),
        _ => {
            let uri: String = arguments.required("uri")?;
            let message = notification("resources/updated", &json!({ "uri": uri }).to_string());
            json!({ "sent": fake.notify(&message, |to| to.subscribed.contains(&uri)).await })
        }
    };
    Ok(message::told(&told.to_string()))
}

/// Sends a log message and returns to how many streams.
async fn log(call: &Call, arguments: &Members) -> Result<usize, Fault> {
    let level: Level = arguments.required("level")?;
    let data = arguments.raw("data").unwrap_or("null");
    let params = format!(r#"{{"level":{},"logger":"fake","data":{data}}}"#, json!(level));
    let message = notification("message", &params);
    if !arguments.optional("related")?.unwrap_or(false) {
        return Ok(call.fake.notify(&message, |session| session.wants(level)).await);
    }
    let wants = {
        let state = call.fake.state();
        state.sessions.get(call.session_id()).is_some_and(|session| session.wants(level))
    };
    if wants {
        call.wire.send(Write::Aside(message)).await;
    }
    Ok(usize::from(wants))
}

fn notification(name: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{name}","params":{params}}}"#)
}
