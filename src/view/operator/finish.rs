//! The end of an operator's request: its result, or the error for operators.

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{
    call::{CallError, Exchange},
    config::defaults,
    connection::{CallEvent, SideMessage},
    protocol::{
        Message, RpcError,
        jsonrpc::MessagePart,
        payloads::method,
        rpc_error::{INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND},
    },
    redact,
    server_name::ServerName,
};

/// Waits for the result of a request, the JSON text of an object. Sends progress notifications with
/// the caller's token to `lines`. Refuses questions of the server. Dropping the future cancels the
/// request at the server.
///
/// # Errors
///
/// [`RpcError`] if there is no result, also if the server answers with an error.
pub async fn finish(
    mut exchange: Exchange,
    lines: Option<&mpsc::Sender<Bytes>>,
) -> Result<String, Box<RpcError>> {
    loop {
        match exchange.next().await {
            Ok(CallEvent::Answer(answer)) => {
                if let Some(result) = answer.part(MessagePart::Result) {
                    return Ok(result.to_owned());
                }
                let error = answer.part(MessagePart::Error).unwrap_or("null");
                return Err(of_server(exchange.server(), error).into());
            }
            Ok(CallEvent::Message(SideMessage::Notification(notice))) => {
                if notice.method() == Some(method::PROGRESS)
                    && let Some(lines) = lines
                {
                    let _reader_gone = lines.send(exchange.restore(&notice).join()).await;
                }
            }
            Ok(CallEvent::Message(SideMessage::Question(question))) => question.refuse(),
            Ok(CallEvent::RetryAfter(asked)) => {
                if let Some(lines) = lines {
                    let text = format!("server `{}` {asked}", exchange.server());
                    let params = json!({ "progressToken": 0, "progress": 0, "message": text });
                    let notice = Message::notification(method::PROGRESS, Some(&params.to_string()));
                    let _reader_gone = lines.send(exchange.restore(&notice).join()).await;
                }
            }
            Ok(CallEvent::Deferred) => {}
            Err(error) => return Err(to_rpc_error(&error)),
        }
    }
}

/// Returns the error in the form for operators.
pub fn to_rpc_error(error: &CallError) -> Box<RpcError> {
    Box::new(error.to_operator())
}

/// Returns the error of a server, an error object as JSON text, with its own code, message and
/// data.
fn of_server(server: &ServerName, error: &str) -> RpcError {
    let error: Value = match error.len() <= defaults::ERROR_DETAIL_BYTES_MAX {
        true => serde_json::from_str(error).unwrap_or_default(),
        false => Value::Null,
    };
    let code = error["code"].as_i64().unwrap_or(INTERNAL_ERROR);
    let message = error["message"].as_str().unwrap_or("the server refused it without a reason");
    let (name, suggestion) = match code {
        RESOURCE_NOT_FOUND => ("RESOURCE_NOT_FOUND", "See `resources/list`.".to_owned()),
        INVALID_PARAMS => (
            "SERVER_REFUSED",
            "Fix the arguments that the server rejects, and try again.".to_owned(),
        ),
        _ => (
            "SERVER_ERROR",
            format!("See the log of the server: `metamcp logs --server {server}`."),
        ),
    };
    let mut context = json!({ "server": server });
    if !error["data"].is_null() {
        context["data"] = error["data"].clone();
    }
    RpcError::new(code, name, redact::sanitize(message)).suggest(suggestion).context(context)
}
