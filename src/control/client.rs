//! Asks a running service over its control socket.

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
    time,
};

use crate::{
    config::defaults,
    protocol::{
        Message,
        jsonrpc::MessagePart,
        ndjson::{self, LineDecoder, NdjsonLine},
        payloads::method::CANCELLED,
    },
};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlClientError {
    /// No service listens there.
    #[error("no service answers at `{}`", path.display())]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The service did not answer in time.
    #[error("the service at `{}` did not answer within {} s", path.display(), patience.as_secs())]
    Silent {
        /// The socket.
        path: PathBuf,
        /// How long it was waited for.
        patience: Duration,
    },
    /// The service refused.
    #[error("{}", _0.message)]
    Refused(Box<ServiceError>),
    /// What came back is not an answer.
    #[error("the answer cannot be read")]
    Unreadable(#[source] serde_json::Error),
    /// What came back is longer than any answer should be.
    #[error("the answer has {length} bytes, more than {}", defaults::CONTROL_ANSWER_BYTES_MAX)]
    Oversized {
        /// How long it is, in bytes.
        length: usize,
    },
}

/// An error of the service.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ServiceError {
    /// What failed, in words.
    pub message: String,
    /// What is known besides.
    #[serde(default)]
    pub data: ServiceErrorData,
}

/// What an error of the service says besides its message. A server's own may have anything there.
#[derive(Clone, Debug, Default)]
pub struct ServiceErrorData {
    /// The stable name of the error; empty where it has none.
    pub code: String,
    /// What can be done about it.
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

/// What the service says.
#[derive(Debug)]
pub enum ServiceMessage {
    /// The answer to the request with this number: the JSON text of its result, or why there is none.
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
}

#[derive(Deserialize)]
struct Answer {
    result: Option<Box<RawValue>>,
    error: Option<Box<ServiceError>>,
}

impl ControlConnection {
    /// Connects to the service at `path`.
    ///
    /// # Errors
    ///
    /// [`ControlClientError::Unreachable`] when nobody listens there, or not for us.
    ///
    /// # Cancel safety
    ///
    /// Safe: no connection is left open.
    pub async fn open(path: &Path) -> Result<Self, ControlClientError> {
        Self::open_for(path, defaults::CONTROL_ANSWER_BYTES_MAX).await
    }

    async fn open_for(path: &Path, length_max: usize) -> Result<Self, ControlClientError> {
        let unreachable =
            |source| ControlClientError::Unreachable { path: path.to_owned(), source };
        let stream = UnixStream::connect(path).await.map_err(unreachable)?;
        let lines = LineDecoder::new(length_max);
        Ok(Self { stream, lines, path: path.to_owned(), n_requests: 0 })
    }

    /// Sends a request with `params`, JSON text, and returns its number.
    ///
    /// # Errors
    ///
    /// [`ControlClientError::Unreachable`] when the service has gone.
    ///
    /// # Cancel safety
    ///
    /// Not safe: half a line may have been sent.
    pub async fn send(&mut self, method: &str, params: &str) -> Result<u64, ControlClientError> {
        self.n_requests += 1;
        let number = self.n_requests;
        let request = Message::request(method, Some(params));
        self.write(&request.with(MessagePart::Id, &number.to_string())).await?;
        Ok(number)
    }

    /// Says that nobody waits for the answer to a request any more.
    ///
    /// # Errors
    ///
    /// [`ControlClientError::Unreachable`] when the service has gone.
    ///
    /// # Cancel safety
    ///
    /// Not safe: half a line may have been sent.
    pub async fn cancel(&mut self, number: u64) -> Result<(), ControlClientError> {
        let params = format!(r#"{{"requestId":{number}}}"#);
        self.write(&Message::notification(CANCELLED, Some(&params))).await
    }

    /// Says that nothing more will be asked: the service answers what runs, and hangs up.
    ///
    /// # Errors
    ///
    /// [`ControlClientError::Unreachable`] when the service has gone.
    ///
    /// # Cancel safety
    ///
    /// Safe: it was said, or not.
    pub async fn finish(&mut self) -> Result<(), ControlClientError> {
        let finished = self.stream.shutdown().await;
        finished.map_err(|error| self.gone(error))
    }

    /// Returns what the service says next.
    ///
    /// # Errors
    ///
    /// [`ControlClientError`] when it has gone, or what it says makes no sense.
    ///
    /// # Cancel safety
    ///
    /// Safe: what was read is kept.
    pub async fn next(&mut self) -> Result<ServiceMessage, ControlClientError> {
        loop {
            while let Some(line) = self.lines.next_line() {
                match line {
                    NdjsonLine::Whole(line) => {
                        if let Some(said) = understand(line)? {
                            return Ok(said);
                        }
                    }
                    NdjsonLine::Oversized(line) => {
                        return Err(ControlClientError::Oversized { length: line.length });
                    }
                }
            }
            self.lines.buffer().reserve(READ_BYTES);
            let read = self.stream.read_buf(self.lines.buffer()).await;
            match read {
                Ok(0) => return Err(self.gone(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(error) => return Err(self.gone(error)),
            }
        }
    }

    /// Asks for `method` with `params`, JSON text, and returns the JSON text of the result.
    ///
    /// # Errors
    ///
    /// [`ControlClientError`] when the service does not answer within `patience`, or refuses.
    ///
    /// # Cancel safety
    ///
    /// Not safe: half a line may have been sent.
    pub async fn ask(
        &mut self,
        method: &str,
        params: &str,
        patience: Duration,
    ) -> Result<Box<RawValue>, ControlClientError> {
        let exchange = async {
            let asked = self.send(method, params).await?;
            self.answer_to(asked).await
        };
        match time::timeout(patience, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(ControlClientError::Silent { path: self.path.clone(), patience }),
        }
    }

    /// Waits for the answer to the request with this number, for as long as that takes.
    async fn answer_to(&mut self, asked: u64) -> Result<Box<RawValue>, ControlClientError> {
        loop {
            match self.next().await? {
                ServiceMessage::Answer(number, answer) if number == asked => {
                    return answer.map_err(ControlClientError::Refused);
                }
                ServiceMessage::Answer(..) | ServiceMessage::Notification(..) => {}
            }
        }
    }

    async fn write(&mut self, message: &Message) -> Result<(), ControlClientError> {
        let message = ndjson::on_one_line(message.bytes().clone());
        let line = [&message[..], b"\n"].concat();
        let written = self.stream.write_all(&line).await;
        written.map_err(|error| self.gone(error))
    }

    fn gone(&self, source: io::Error) -> ControlClientError {
        ControlClientError::Unreachable { path: self.path.clone(), source }
    }
}

/// How much is read at a time, in bytes, at least.
const READ_BYTES: usize = 16 << 10;

/// Reads one line of the service; `None` is one that says nothing to us.
fn understand(line: Bytes) -> Result<Option<ServiceMessage>, ControlClientError> {
    let Ok(message) = Message::parse_own(line) else {
        return Err(ControlClientError::Unreadable(serde::de::Error::custom(
            "it is no JSON-RPC message",
        )));
    };
    if let Some(method) = message.method() {
        let params = message.params().unwrap_or("{}").to_owned();
        return Ok(Some(ServiceMessage::Notification(method.to_owned(), params)));
    }
    let answer: Answer =
        serde_json::from_slice(message.bytes()).map_err(ControlClientError::Unreadable)?;
    // An error without an id is about a line of ours, of which there is one at a time.
    let number = message.integer(MessagePart::Id);
    Ok(match (number, answer) {
        (Some(number), Answer { result: Some(result), .. }) => {
            Some(ServiceMessage::Answer(number, Ok(result)))
        }
        (Some(number), Answer { error: Some(error), .. }) => {
            Some(ServiceMessage::Answer(number, Err(error)))
        }
        (None, Answer { error: Some(error), .. }) => {
            return Err(ControlClientError::Refused(error));
        }
        (_, Answer { .. }) => None,
    })
}

/// Connects to the service at `path`, and has the connection become a pipe of MCP as `params`, JSON
/// text, say. Returns it with what was read of that already, in lines of at most `length_max` bytes.
/// Waits for as long as that takes: a service that starts takes connections before it answers.
///
/// # Errors
///
/// [`ControlClientError`] when nobody listens there, or the service does not want to.
///
/// # Cancel safety
///
/// Safe: no connection is left open.
pub async fn attach(
    path: &Path,
    params: &str,
    length_max: usize,
) -> Result<(UnixStream, LineDecoder), ControlClientError> {
    let mut connection = ControlConnection::open_for(path, length_max).await?;
    let asked = connection.send("mcp/attach", params).await?;
    connection.answer_to(asked).await?;
    Ok((connection.stream, connection.lines))
}

/// Asks for `method` with `params`, JSON text, on a connection of its own, and returns the result.
///
/// # Errors
///
/// [`ControlClientError`] when nobody listens, answers in time, or agrees.
///
/// # Cancel safety
///
/// Safe: the question may have been asked or not.
pub async fn ask(
    path: &Path,
    method: &str,
    params: Option<&str>,
) -> Result<Value, ControlClientError> {
    let mut connection = ControlConnection::open(path).await?;
    let answer = connection.ask(method, params.unwrap_or("{}"), defaults::CONTROL_PATIENCE).await?;
    serde_json::from_str(answer.get()).map_err(ControlClientError::Unreadable)
}
