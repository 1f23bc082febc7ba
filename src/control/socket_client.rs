//! A client of the control socket of a running service.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::{self, Instant},
};

use crate::{
    config::defaults,
    protocol::{
        Message,
        jsonrpc::MessagePart,
        ndjson::{self, LineDecoder, NdjsonLine},
        payloads::method::{CANCELLED, PING},
    },
};

mod client_error;

pub use client_error::ControlClientError;

/// An error of the service.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ServiceError {
    /// The description of the failure.
    pub message: String,
    /// Further details.
    #[serde(default)]
    pub data: ServiceErrorData,
}

/// The details of an error. The data of an error from a server itself may have any form.
#[derive(Clone, Debug, Default)]
pub struct ServiceErrorData {
    /// The stable name of the error; empty if it has none.
    pub code: String,
    /// The remedy, if known.
    pub suggestion: Option<String>,
    /// The things involved, by name.
    pub context: Value,
}

impl<'de> Deserialize<'de> for ServiceErrorData {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut data = Value::deserialize(deserializer)?;
        Ok(Self {
            code: data["code"].as_str().unwrap_or_default().to_owned(),
            suggestion: data["suggestion"].as_str().map(str::to_owned),
            context: data.get_mut("context").map(Value::take).unwrap_or_default(),
        })
    }
}

/// A message from the service.
#[derive(Debug)]
pub enum ServiceMessage {
    /// The answer to the request with this number: the JSON text of its result, or the error.
    Answer(u64, Result<Box<RawValue>, Box<ServiceError>>),
    /// A notification: its method, and the JSON text of its parameters.
    Notification(String, String),
}

/// A connection to the control socket.
#[derive(Debug)]
pub struct ControlConnection {
    stream: UnixStream,
    lines: LineDecoder,
    path: PathBuf,
    n_requests: u64,
    /// The end of the wait for the first message; `None` before the first request, and once the
    /// service has sent something.
    first_until: Option<Instant>,
}

#[derive(Deserialize)]
struct Answer {
    result: Option<Box<RawValue>>,
    error: Option<Box<ServiceError>>,
}

impl ControlConnection {
    /// Connects to the service at `path`. Cancel safe: no connection is left open.
    ///
    /// The service must send something within [`defaults::CONTROL_TIMEOUT`] of the first request.
    ///
    /// # Errors
    ///
    /// [`ControlClientError::Unreachable`] if no service listens there, or it is not accessible.
    pub async fn open(path: &Path) -> Result<Self, ControlClientError> {
        Self::open_for(path, defaults::CONTROL_ANSWER_BYTES_MAX).await
    }

    async fn open_for(path: &Path, length_max: usize) -> Result<Self, ControlClientError> {
        let unreachable = |source| ControlClientError::Unreachable(path.to_owned(), source);
        let until = Instant::now() + defaults::CONTROL_TIMEOUT;
        let stream = loop {
            match UnixStream::connect(path).await {
                // The service has accepted no connection for so long that its backlog is full.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() >= until {
                        let timeout = defaults::CONTROL_TIMEOUT;
                        let path = path.to_owned();
                        return Err(ControlClientError::Silent { path, pid: None, timeout });
                    }
                    time::sleep(defaults::LAUNCH_POLL).await;
                }
                connected => break connected.map_err(unreachable)?,
            }
        };
        let lines = LineDecoder::new(length_max);
        Ok(Self { stream, lines, path: path.to_owned(), n_requests: 0, first_until: None })
    }

    /// Sends a request with `params`, JSON text, and returns its number. A ping precedes the first
    /// one: its answer tells a service that hangs from one that works on the request. Not cancel
    /// safe: half a line may have been sent.
    ///
    /// # Errors
    ///
    /// [`ControlClientError`] when the service has gone, or hangs.
    pub async fn send(&mut self, method: &str, params: &str) -> Result<u64, ControlClientError> {
        let ping = (self.n_requests == 0).then(|| {
            self.first_until = Some(Instant::now() + defaults::CONTROL_TIMEOUT);
            ping()
        });
        self.n_requests += 1;
        let number = self.n_requests;
        let request = Message::request(method, Some(params));
        let request = request.with(MessagePart::Id, &number.to_string());
        // Both in one write, so that the ping costs no exchange of its own.
        self.write(ping.as_slice().iter().chain([&request])).await?;
        Ok(number)
    }

    /// Sends a ping while a request runs. Any message that follows shows that the service is alive.
    /// Not cancel safe: half a line may have been sent.
    ///
    /// # Errors
    ///
    /// [`ControlClientError::Lost`] when the service has gone.
    pub async fn ping(&mut self) -> Result<(), ControlClientError> {
        self.write([&ping()]).await
    }

    /// Returns whether the service has sent something since the first request.
    pub fn is_heard(&self) -> bool {
        self.first_until.is_none()
    }

    /// Tells the service that the answer to a request is no longer needed. Not cancel safe: half a
    /// line may have been sent.
    ///
    /// # Errors
    ///
    /// [`ControlClientError::Lost`] when the service has gone.
    pub async fn cancel(&mut self, number: u64) -> Result<(), ControlClientError> {
        let params = format!(r#"{{"requestId":{number}}}"#);
        self.write([&Message::notification(CANCELLED, Some(&params))]).await
    }

    /// Tells the service that no more requests follow. It answers those that run, and disconnects.
    /// Cancel safe: the service learned it or not.
    ///
    /// # Errors
    ///
    /// [`ControlClientError::Lost`] when the service has gone.
    pub async fn finish(&mut self) -> Result<(), ControlClientError> {
        let finished = self.stream.shutdown().await;
        finished.map_err(|error| self.gone(error))
    }

    /// Returns the next message from the service. Cancel safe: data that was read is kept.
    ///
    /// # Errors
    ///
    /// [`ControlClientError`] if the service has gone, or its message is invalid.
    pub async fn next(&mut self) -> Result<ServiceMessage, ControlClientError> {
        loop {
            while let Some(line) = self.lines.next_line() {
                match line {
                    NdjsonLine::Whole(line) => {
                        if let Some(message) = parse(line)? {
                            return Ok(message);
                        }
                    }
                    NdjsonLine::Oversized(line) => {
                        return Err(ControlClientError::Oversized(line.length));
                    }
                }
            }
            self.lines.buffer().reserve(READ_BYTES);
            let until = self.first_until;
            let reading = self.stream.read_buf(self.lines.buffer());
            match in_time(until, reading).await {
                Some(Ok(0)) => return Err(self.gone(io::ErrorKind::UnexpectedEof.into())),
                Some(Ok(_)) => self.first_until = None,
                Some(Err(error)) => return Err(self.gone(error)),
                None => return Err(self.silent(defaults::CONTROL_TIMEOUT)),
            }
        }
    }

    /// Calls `method` with `params`, JSON text, and returns the JSON text of the result. Not cancel
    /// safe: half a line may have been sent.
    ///
    /// # Errors
    ///
    /// [`ControlClientError`] when the service does not answer within `timeout`, or refuses.
    pub async fn ask(
        &mut self,
        method: &str,
        params: &str,
        timeout: Duration,
    ) -> Result<Box<RawValue>, ControlClientError> {
        let exchange = async {
            let number = self.send(method, params).await?;
            self.answer_to(number).await
        };
        match time::timeout(timeout, exchange).await {
            Ok(answer) => answer,
            Err(_) if self.first_until.is_some() => Err(self.silent(timeout)),
            Err(_) => Err(ControlClientError::Late(self.path.clone(), timeout)),
        }
    }

    /// Waits for the answer to the request with this number, without a deadline.
    async fn answer_to(&mut self, request: u64) -> Result<Box<RawValue>, ControlClientError> {
        loop {
            match self.next().await? {
                ServiceMessage::Answer(number, answer) if number == request => {
                    return answer.map_err(ControlClientError::Refused);
                }
                ServiceMessage::Answer(..) | ServiceMessage::Notification(..) => {}
            }
        }
    }

    async fn write(
        &mut self,
        messages: impl IntoIterator<Item = &Message>,
    ) -> Result<(), ControlClientError> {
        let mut lines = Vec::new();
        for message in messages {
            lines.extend_from_slice(&ndjson::on_one_line(message.bytes().clone()));
            lines.push(b'\n');
        }
        match in_time(self.first_until, self.stream.write_all(&lines)).await {
            Some(written) => written.map_err(|error| self.gone(error)),
            None => Err(self.silent(defaults::CONTROL_TIMEOUT)),
        }
    }

    /// Returns the error of a service that does not answer a ping while a request runs.
    pub fn stalled(&self) -> ControlClientError {
        ControlClientError::Stalled { path: self.path.clone(), pid: self.listener() }
    }

    fn silent(&self, timeout: Duration) -> ControlClientError {
        ControlClientError::Silent { path: self.path.clone(), pid: self.listener(), timeout }
    }

    /// Returns the process that listens at the socket; `None` if it is outside this container.
    fn listener(&self) -> Option<i32> {
        self.stream.peer_cred().ok()?.pid().filter(|pid| *pid > 0)
    }

    fn gone(&self, source: io::Error) -> ControlClientError {
        ControlClientError::Lost(self.path.clone(), source)
    }
}

/// Returns a ping, whose number no other request has.
fn ping() -> Message {
    Message::request(PING, None).with(MessagePart::Id, "0")
}

/// The minimum buffer space for a read, in bytes.
const READ_BYTES: usize = 16 << 10;

/// Waits for an operation, at most `until` that time if there is one; `None` after it.
async fn in_time<T>(until: Option<Instant>, operation: impl Future<Output = T>) -> Option<T> {
    match until {
        Some(until) => time::timeout_at(until, operation).await.ok(),
        None => Some(operation.await),
    }
}

/// Reads one line from the service; `None` if it has no meaning for a client.
fn parse(line: Bytes) -> Result<Option<ServiceMessage>, ControlClientError> {
    let Ok(message) = Message::parse_own(line) else {
        let error = serde::de::Error::custom("it is not a JSON-RPC message");
        return Err(ControlClientError::Unreadable(error));
    };
    if let Some(method) = message.method() {
        let params = message.params().unwrap_or("{}").to_owned();
        return Ok(Some(ServiceMessage::Notification(method.to_owned(), params)));
    }
    let answer: Answer =
        serde_json::from_slice(message.bytes()).map_err(ControlClientError::Unreadable)?;
    // An error without an id is about the only request line under way.
    match (message.integer(MessagePart::Id), answer.result, answer.error) {
        (Some(number), Some(result), _) => Ok(Some(ServiceMessage::Answer(number, Ok(result)))),
        (Some(number), None, Some(error)) => Ok(Some(ServiceMessage::Answer(number, Err(error)))),
        (None, _, Some(error)) => Err(ControlClientError::Refused(error)),
        (_, _, None) => Ok(None),
    }
}

/// Connects to the service at `path`, and turns the connection into an MCP pipe with `params`, JSON
/// text. Returns it with the data already read, in lines of at most `length_max` bytes. Cancel safe:
/// no connection is left open.
///
/// A service that listens itself has [`defaults::CONTROL_TIMEOUT`]. A manager such as systemd
/// accepts connections while the service restarts, so it has [`defaults::BRIDGE_TIMEOUT`].
///
/// # Errors
///
/// [`ControlClientError`] if no service listens there, it hangs, or it refuses.
pub async fn attach(
    path: &Path,
    params: &str,
    length_max: usize,
) -> Result<(UnixStream, LineDecoder), ControlClientError> {
    let mut connection = ControlConnection::open_for(path, length_max).await?;
    // Without a ping: an MCP client takes the connection over only before other requests.
    let request = Message::request("mcp/attach", Some(params)).with(MessagePart::Id, "1");
    let timeout = match connection.listener().is_some_and(client_error::is_own_program) {
        true => defaults::CONTROL_TIMEOUT,
        false => defaults::BRIDGE_TIMEOUT,
    };
    connection.first_until = Some(Instant::now() + timeout);
    connection.write([&request]).await?;
    connection.answer_to(1).await?;
    Ok((connection.stream, connection.lines))
}

/// Calls `method` with `params`, JSON text, on a new connection, and returns the result. Cancel
/// safe: the request may have been sent or not.
///
/// # Errors
///
/// [`ControlClientError`] if no service listens there, it does not answer in time, or it refuses.
pub async fn ask(
    path: &Path,
    method: &str,
    params: Option<&str>,
) -> Result<Value, ControlClientError> {
    let mut connection = ControlConnection::open(path).await?;
    let answer = connection.ask(method, params.unwrap_or("{}"), defaults::CONTROL_TIMEOUT).await?;
    value(&answer)
}

/// Reads an answer.
///
/// # Errors
///
/// [`ControlClientError::Unreadable`] if it is nested too deeply.
pub fn value(answer: &RawValue) -> Result<Value, ControlClientError> {
    serde_json::from_str(answer.get()).map_err(ControlClientError::Unreadable)
}
