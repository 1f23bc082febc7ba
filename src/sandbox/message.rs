//! The messages between the service and the sandbox of a script, and their frames. Pure.
//!
//! A frame is its length in four bytes, the lowest first, and one JSON text. Only plain data
//! crosses the pipe. The service treats each message of a sandbox as hostile: it reads it into
//! these types, and [`script`](crate::script) checks that it may come now.

use std::io::{self, Write};

use bytes::{Buf as _, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

/// The largest frame in either direction, in bytes: the largest result of a tool, and its envelope.
pub const FRAME_BYTES_MAX: usize = crate::config::defaults::MESSAGE_BYTES_MAX + 4096;

/// The most bytes of a text for the progress of the client.
pub const PROGRESS_TEXT_BYTES_MAX: usize = 4096;

/// The most bytes of a failure with all of its texts. The prelude cuts each to at most 24 KiB.
pub const FAILURE_BYTES_MAX: usize = 128 << 10;

/// The bytes of a frame before its JSON text.
pub const FRAME_HEAD_BYTES: usize = 4;

/// A message of the service to the sandbox.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostMessage {
    /// The script to run, once.
    Start(Box<ScriptStart>),
    /// The outcome of an operation.
    Settle(Settlement),
}

/// A script, and everything that its run depends on beside the outcomes of its operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScriptStart {
    /// The body of an async function, in JavaScript or TypeScript.
    pub code: String,
    /// The constant `args` of the script; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// The seed of `Math.random`.
    pub seed: u64,
    /// The time at the start, in milliseconds since 1970.
    pub now_ms: u64,
    /// The bounds that the sandbox itself can check.
    pub limits: SandboxLimits,
}

/// The bounds that the sandbox itself checks. The service checks all others, and the larger ones of
/// these again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLimits {
    /// The memory of the engine, in bytes.
    pub memory_bytes: usize,
    /// The longest sleep, in milliseconds.
    pub sleep_max_ms: u64,
    /// The largest number of operations in flight.
    pub pending_max: usize,
}

/// The outcome of an operation, as the script sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settlement {
    /// The number of the operation.
    pub operation: u32,
    /// The time at which it ended, in milliseconds since 1970.
    pub now_ms: u64,
    /// The value or the failure.
    pub outcome: OperationOutcome,
}

/// The value or the failure of an operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationOutcome {
    /// The value, JSON.
    Value(Box<RawValue>),
    /// The failure, which the script can catch.
    Failure(OperationFailure),
}

/// The failure of an operation: the exception `ToolError` of the script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationFailure {
    /// The kind, as in the errors of tools.
    pub code: String,
    /// The failure in plain words.
    pub message: String,
    /// The next action.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// The server of the call, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The details.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// A message of the sandbox to the service.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMessage {
    /// The script begins an operation. They are numbered from 1.
    Begin {
        /// The number of the operation.
        operation: u32,
        /// The operation.
        what: ScriptOperation,
    },
    /// The script prints to its console.
    Print(String),
    /// The script reports its progress.
    Progress(ScriptProgress),
    /// The script waits for operations. Contains the number of settlements that it has received.
    Idle(u32),
    /// The script has returned this value.
    Returned(Box<RawValue>),
    /// The script has failed.
    Failed(ScriptFailure),
}

/// An operation that the service does for a script.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptOperation {
    /// A call of a tool.
    Tool {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// The arguments.
        args: Box<RawValue>,
    },
    /// A search for tools, with the arguments of `mcp_discover`.
    Search(Box<RawValue>),
    /// The description of a tool.
    Describe {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
    },
    /// A chain of calls, with the arguments of `run_chain`.
    Chain(Box<RawValue>),
    /// A pause, in milliseconds.
    Sleep(f64),
}

/// The progress that a script reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScriptProgress {
    /// The amount done.
    pub done: f64,
    /// The total amount, if the script knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// The latest event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The failure of a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScriptFailure {
    /// The kind.
    pub kind: FailureKind,
    /// The failure: for an exception, its name and its message.
    pub message: String,
    /// The place in the script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<CodePlace>,
    /// The functions that led there, one line for each.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stack: String,
    /// The failure of the operation that the script did not catch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<OperationFailure>,
}

impl ScriptFailure {
    /// Returns the bytes of its texts.
    pub fn n_bytes(&self) -> usize {
        let cause = self.cause.as_ref().map_or(0, |cause| {
            let names = [&cause.server, &cause.tool].into_iter().flatten().map(String::len);
            let details = serde_json::to_vec(&cause.details).map_or(usize::MAX, |text| text.len());
            let texts = cause.code.len() + cause.message.len() + cause.hint.len();
            details.saturating_add(texts + names.sum::<usize>())
        });
        cause.saturating_add(self.message.len() + self.stack.len())
    }
}

/// The kind of a script's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The code is not JavaScript.
    Syntax,
    /// It threw an exception and did not catch it.
    Exception,
    /// It waits for a promise that nothing can settle.
    Stuck,
    /// It has used its memory.
    Memory,
    /// Its value is too large.
    Output,
    /// Its value is not plain data.
    Value,
}

/// A place in a script as it was written. Both numbers start at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodePlace {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl CodePlace {
    /// Returns the place after this beginning of a script.
    pub(super) fn after(before: &str) -> Self {
        let line = before.rsplit('\n').next().unwrap_or_default();
        let from_1 = |n: usize| u32::try_from(n + 1).unwrap_or(u32::MAX);
        let line_number = from_1(before.matches('\n').count());
        Self { line: line_number, column: from_1(line.chars().count()) }
    }
}

/// Returns the frame of a message.
///
/// # Errors
///
/// [`FrameError`] if it is too long, or a value is not JSON.
pub fn frame(message: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let mut frame = FrameWriter(vec![0; FRAME_HEAD_BYTES]);
    serde_json::to_writer(&mut frame, message).map_err(|error| match error.is_io() {
        true => FrameError::TooLong,
        false => FrameError::Json(error),
    })?;
    let FrameWriter(mut frame) = frame;
    let length = u32::try_from(frame.len() - FRAME_HEAD_BYTES).map_err(|_| FrameError::TooLong)?;
    frame[..FRAME_HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

/// A frame that is being written, and that takes no more memory than the longest one.
struct FrameWriter(Vec<u8>);

impl Write for FrameWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > FRAME_HEAD_BYTES + FRAME_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the length of the JSON text that follows this head of a frame.
///
/// # Errors
///
/// [`FrameError`] if it is too long.
pub fn frame_length(head: [u8; FRAME_HEAD_BYTES]) -> Result<usize, FrameError> {
    let length = u32::from_le_bytes(head) as usize;
    if length <= FRAME_BYTES_MAX { Ok(length) } else { Err(FrameError::TooLong) }
}

/// The bytes that have arrived and are not read. Pure.
#[derive(Debug, Default)]
pub struct FrameBuffer(BytesMut);

impl FrameBuffer {
    /// Returns the buffer that more bytes are added to.
    pub fn bytes_mut(&mut self) -> &mut BytesMut {
        &mut self.0
    }

    /// Returns the memory that it takes, in bytes.
    pub fn n_bytes(&self) -> usize {
        self.0.capacity()
    }

    /// Returns the length of the first frame's text, if it has arrived. If not, makes room for the
    /// rest of it.
    ///
    /// # Errors
    ///
    /// [`FrameError`] if the frame is too long.
    pub fn first_frame(&mut self) -> Result<Option<usize>, FrameError> {
        let Some(length) = self.first_length()? else { return Ok(None) };
        let n_missing = (FRAME_HEAD_BYTES + length).saturating_sub(self.0.len());
        self.0.reserve(n_missing);
        Ok((n_missing == 0).then_some(length))
    }

    /// Reads the first frame and takes it, if it has arrived.
    ///
    /// # Errors
    ///
    /// [`FrameError`] if it is too long, or no such message.
    pub fn take_message<M: for<'a> Deserialize<'a>>(&mut self) -> Result<Option<M>, FrameError> {
        let Some(length) = self.first_length()? else { return Ok(None) };
        if self.0.len() < FRAME_HEAD_BYTES + length {
            return Ok(None);
        }
        self.0.advance(FRAME_HEAD_BYTES);
        read_message(&self.0.split_to(length)).map(Some)
    }

    /// Returns the length of the first frame's text, if its head has arrived.
    fn first_length(&self) -> Result<Option<usize>, FrameError> {
        self.0.first_chunk::<FRAME_HEAD_BYTES>().map(|head| frame_length(*head)).transpose()
    }
}

/// Reads the JSON text of a frame.
///
/// # Errors
///
/// [`FrameError`] if it is not such a message.
pub fn read_message<'a, M: Deserialize<'a>>(text: &'a [u8]) -> Result<M, FrameError> {
    serde_json::from_slice(text).map_err(FrameError::Json)
}

/// The reason why a frame is not a message.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// It is longer than [`FRAME_BYTES_MAX`].
    #[error("a message has more than the {FRAME_BYTES_MAX} bytes that the pipe carries")]
    TooLong,
    /// It is not such a message.
    #[error("a message is malformed: {0}")]
    Json(serde_json::Error),
}
