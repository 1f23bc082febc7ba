//! Tools that send notifications besides their answer.

use serde_json::json;

use crate::{
    call::Call,
    message::{self, Members, RpcError},
    notice::Notice,
    output::Output,
    session::Level,
};

/// Sends the notification and returns the result of the tool.
pub(super) async fn send(call: &Call, name: &str, arguments: &Members) -> Result<String, RpcError> {
    let fake = &call.fake;
    let report = match name {
        "emit" => {
            let message: String = arguments.required("message")?;
            json!({ "listeners": fake.broadcast(&message, Some(&call.output)).await })
        }
        "change" => {
            let name: String = arguments.required("list")?;
            let list = Notice::of_list(&name);
            let list = list.ok_or_else(|| RpcError::invalid(format!("unknown list `{name}`")))?;
            let added = fake.state().extend(&list);
            json!({ "added": added, "sent": fake.announce(&list).await })
        }
        "end_listens" => json!({ "ended": fake.end_listen_requests().await }),
        "flip_tools" => {
            let added = fake.state().flip();
            let n_told = fake.announce(&Notice::Tools).await;
            if n_told == 0 && call.client.is_none() {
                call.output.send(Output::ServerMessage(Notice::Tools.message(None))).await;
            }
            json!({ "added": added })
        }
        "log" => json!({ "sent": log(call, arguments).await? }),
        _ => {
            let uri: String = arguments.required("uri")?;
            json!({ "sent": fake.announce(&Notice::Updated(uri)).await })
        }
    };
    Ok(message::data_result(&report.to_string()))
}

/// Sends a log message and returns the number of streams.
async fn log(call: &Call, arguments: &Members) -> Result<usize, RpcError> {
    let level: Level = arguments.required("level")?;
    let data = arguments.raw("data").unwrap_or("null");
    let params = format!(r#"{{"level":{},"logger":"fake","data":{data}}}"#, json!(level));
    let message = notification("message", &params);
    if let Some(client) = &call.client {
        // A modern log message uses only the stream of its call, and only on request.
        let wants = client.wants(level);
        if wants {
            call.output.send(Output::ServerMessage(message)).await;
        }
        return Ok(usize::from(wants));
    }
    if !arguments.optional("related")?.unwrap_or(false) {
        return Ok(call.fake.notify(&message, |session| session.wants(level)).await);
    }
    let wants = {
        let state = call.fake.state();
        state.sessions.get(call.session_id()).is_some_and(|session| session.wants(level))
    };
    if wants {
        call.output.send(Output::ServerMessage(message)).await;
    }
    Ok(usize::from(wants))
}

fn notification(name: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{name}","params":{params}}}"#)
}
