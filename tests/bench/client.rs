//! An MCP client with its own connection and session, and with ids from 1.

use std::{io, net::SocketAddr, time::Duration};

use tokio::time::Instant;

use crate::{
    answer,
    wire::{Answer, Head, Wire},
};

/// The address, path and tool that a client calls.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) path: &'static str,
    pub(crate) tool: &'static str,
}

/// A client after the handshake.
pub(crate) struct Client {
    target: Target,
    number: usize,
    session: String,
    wire: Wire,
    next_id: u64,
}

/// The reason why a call failed, which need not be a defect of the gateway.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The connection failed or was cut.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The status of the answer is not 200.
    #[error("HTTP {status}: {body}")]
    Status { status: u16, body: String },
    /// The status is 200, but the content is wrong.
    #[error("wrong answer: {0}")]
    Wrong(String),
}

impl Client {
    /// Connects and performs the handshake; `number` makes the client's texts unique.
    pub(crate) async fn open(target: &Target, number: usize) -> Result<Self, CallError> {
        let mut wire = Wire::connect(target.address).await?;
        let session = perform_handshake(&mut wire, target).await?;
        Ok(Self { target: target.clone(), number, session, wire, next_id: 1 })
    }

    /// Reconnects in the same session.
    pub(crate) async fn reconnect(&mut self) -> io::Result<()> {
        self.wire = Wire::connect(self.target.address).await?;
        Ok(())
    }

    /// Calls `echo` with a text of `bytes` bytes, and returns the duration.
    ///
    /// The text is unique, and the whole answer is compared.
    pub(crate) async fn echo(&mut self, bytes: usize) -> Result<Duration, CallError> {
        self.call(bytes, "").await
    }

    /// Like [`Client::echo`], with a tool that takes `ms` milliseconds.
    pub(crate) async fn sleep(&mut self, ms: u64, bytes: usize) -> Result<Duration, CallError> {
        self.call(bytes, &format!(r#","ms":{ms}"#)).await
    }

    async fn call(&mut self, bytes: usize, arguments: &str) -> Result<Duration, CallError> {
        let id = self.next_id;
        self.next_id += 1;
        let mark = format!("client {} call {id} ", self.number);
        let text = format!("{mark}{}", "x".repeat(bytes.saturating_sub(mark.len())));
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{}","arguments":{{"text":"{text}"{arguments}}}}}}}"#,
            self.target.tool
        );
        let request = post(&self.target, &self.session, &message);
        let expected = answer::expected(id, &text);

        let start = Instant::now();
        let answer = self.wire.exchange(&request).await?;
        let took = start.elapsed();

        let found = succeeded(&answer)?;
        if found != expected.as_bytes() {
            let found = String::from_utf8_lossy(&found[..found.len().min(300)]).into_owned();
            return Err(CallError::Wrong(format!("for {mark:?}: {found}")));
        }
        Ok(took)
    }

    /// Requests the tools, and returns the duration.
    pub(crate) async fn list(&mut self) -> Result<Duration, CallError> {
        let id = self.next_id;
        self.next_id += 1;
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
        let request = post(&self.target, &self.session, &message);

        let start = Instant::now();
        let answer = self.wire.exchange(&request).await?;
        let took = start.elapsed();

        let found = String::from_utf8_lossy(succeeded(&answer)?);
        if !found.contains("echo") || !found.contains(&format!("\"id\":{id}")) {
            return Err(CallError::Wrong(found.chars().take(300).collect()));
        }
        Ok(took)
    }

    /// Opens the stream of the session; its events are not read.
    pub(crate) async fn listen(&mut self) -> io::Result<Head> {
        let Target { address, path, .. } = &self.target;
        let session = &self.session;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\nMcp-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: {session}\r\n\r\n"
        );
        self.wire.open(request.as_bytes()).await
    }
}

/// Performs the handshake and returns the new session.
pub(crate) async fn perform_handshake(
    wire: &mut Wire,
    target: &Target,
) -> Result<String, CallError> {
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
    let answer = wire.exchange(&post(target, "", initialize)).await?;
    succeeded(&answer)?;
    let Some(session) = answer.head.session else {
        return Err(CallError::Wrong("no session for a handshake".into()));
    };
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let answer = wire.exchange(&post(target, &session, initialized)).await?;
    match answer.head.status {
        200..300 => Ok(session),
        _ => Err(refused(&answer)),
    }
}

/// Calls a tool without a session. Returns the message of an answer with status 200, and the
/// duration.
pub(crate) async fn call(
    wire: &mut Wire,
    target: &Target,
    arguments: &serde_json::Value,
) -> Result<(serde_json::Value, Duration), CallError> {
    let params = serde_json::json!({ "name": target.tool, "arguments": arguments });
    let message =
        serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = post(target, "", &message.to_string());
    let start = Instant::now();
    let answer = wire.exchange(&request).await?;
    let took = start.elapsed();
    let answer = succeeded(&answer)?;
    let wrong = || CallError::Wrong(String::from_utf8_lossy(answer).chars().take(300).collect());
    Ok((serde_json::from_slice(answer).map_err(|_| wrong())?, took))
}

/// Sends a GET, and returns the body of an answer with status 200.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Result<Vec<u8>, CallError> {
    let mut wire = Wire::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let answer = wire.exchange(request.as_bytes()).await?;
    Ok(succeeded(&answer)?.to_vec())
}

/// Returns the message of an answer with status 200.
fn succeeded(answer: &Answer) -> Result<&[u8], CallError> {
    if answer.head.status == 200 { Ok(answer.message()) } else { Err(refused(answer)) }
}

fn refused(answer: &Answer) -> CallError {
    let body = String::from_utf8_lossy(answer.message()).chars().take(300).collect();
    CallError::Status { status: answer.head.status, body }
}

/// Returns a whole POST for a single write.
fn post(target: &Target, session: &str, message: &str) -> Vec<u8> {
    let Target { address, path, .. } = target;
    let session = match session {
        "" => String::new(),
        session => format!("Mcp-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: {session}\r\n"),
    };
    let length = message.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{session}Content-Length: {length}\r\n\r\n{message}"
    )
    .into_bytes()
}
