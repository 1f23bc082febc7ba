//! The record of a script: everything that its run depends on, in the order of its happening.
//!
//! The same code over the same record does the same again. So a script can stop while a person is
//! asked, and go on later, also in another process. Pure.

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::limits::ScriptLimits;
use crate::sandbox::message::{ScriptOperation, ScriptStart, Settlement};

/// The bytes of a digest that are kept. A script that diverges is not an attack.
const DIGEST_BYTES: usize = 12;

/// An entry of a record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordEntry {
    /// The first entry.
    Start(Box<RecordHead>),
    /// An operation is about to begin, or to go on after an answer.
    Begun {
        /// The number of the operation.
        operation: u32,
        /// The digest of the operation.
        digest: String,
    },
    /// An operation has ended, and the script sees it.
    Settled(Settlement),
    /// An operation waits for the client.
    Asked {
        /// The number of the operation.
        operation: u32,
        /// The server's result that asks, JSON text.
        question: String,
    },
    /// The script was suspended, after it had run for this time in all.
    Suspended {
        /// The time, in milliseconds.
        spent_ms: u64,
    },
}

/// The head of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordHead {
    /// The script.
    pub(super) start: ScriptStart,
    /// Its limits.
    pub(super) limits: ScriptLimits,
    /// The digest of the client's request. Only the same request goes on with the script.
    pub(super) request_digest: String,
}

/// A record, as it is read.
#[derive(Clone, Debug)]
pub(super) struct ScriptRecord {
    pub(super) head: RecordHead,
    /// The operations, in the order of their numbers.
    pub(super) operations: Vec<RecordedOperation>,
    /// The settlements, in their order.
    pub(super) settled: Vec<Settlement>,
    /// The time for which the script has run, in milliseconds.
    pub(super) spent_ms: u64,
}

/// An operation of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedOperation {
    pub(super) digest: String,
    pub(super) stage: RecordedStage,
}

/// The last known stage of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RecordedStage {
    /// It has begun, and its outcome is unknown.
    InFlight,
    /// It waits for the client, with this result of the server.
    Asked(String),
    /// It has ended.
    Settled,
}

/// The reason why a record cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RecordError {
    /// It does not begin with its head.
    #[error("its first line is no head")]
    NoHead,
    /// A line contradicts those before it.
    #[error("line {0} contradicts the lines before it")]
    Contradiction(usize),
}

impl ScriptRecord {
    /// Reads the lines of a record. A last line without its newline was not written to its end, and
    /// does not count.
    pub(super) fn read(text: &[u8]) -> Result<Self, RecordError> {
        let mut lines = text.split_inclusive(|byte| *byte == b'\n');
        let whole = |line: &[u8]| {
            line.ends_with(b"\n")
                .then(|| serde_json::from_slice::<RecordEntry>(line).ok())
                .flatten()
        };
        let Some(RecordEntry::Start(head)) = lines.next().and_then(whole) else {
            return Err(RecordError::NoHead);
        };
        let mut record =
            Self { head: *head, operations: Vec::new(), settled: Vec::new(), spent_ms: 0 };
        for (index, line) in lines.enumerate() {
            let contradiction = RecordError::Contradiction(index + 2);
            match whole(line) {
                Some(entry) => record.add(entry).ok_or(contradiction)?,
                None if line.ends_with(b"\n") => return Err(contradiction),
                None => {}
            }
        }
        Ok(record)
    }

    /// Adds an entry; `None` if it contradicts the others.
    fn add(&mut self, entry: RecordEntry) -> Option<()> {
        match entry {
            RecordEntry::Start(_) => return None,
            RecordEntry::Begun { operation, digest } => {
                let known = self.operations.len();
                match index_of(operation)? {
                    index if index == known => self
                        .operations
                        .push(RecordedOperation { digest, stage: RecordedStage::InFlight }),
                    index => self.operations.get_mut(index)?.stage = RecordedStage::InFlight,
                }
            }
            RecordEntry::Asked { operation, question } => {
                let stage = RecordedStage::Asked(question);
                self.operations.get_mut(index_of(operation)?)?.stage = stage;
            }
            RecordEntry::Settled(settlement) => {
                let operation = self.operations.get_mut(index_of(settlement.operation)?)?;
                if operation.stage == RecordedStage::Settled {
                    return None;
                }
                operation.stage = RecordedStage::Settled;
                self.settled.push(settlement);
            }
            RecordEntry::Suspended { spent_ms } => self.spent_ms = spent_ms,
        }
        Some(())
    }
}

impl RecordEntry {
    /// Returns the line of the entry.
    pub(super) fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("our own values have string keys");
        line.push(b'\n');
        line
    }
}

/// Returns the index of an operation, which are numbered from 1.
pub(super) fn index_of(operation: u32) -> Option<usize> {
    usize::try_from(operation.checked_sub(1)?).ok()
}

/// Returns the digest by which a repeated operation is recognised.
pub(super) fn digest(operation: &ScriptOperation) -> String {
    let text = serde_json::to_vec(operation).expect("our own values have string keys");
    BASE64_STANDARD_NO_PAD.encode(&Sha256::digest(text)[..DIGEST_BYTES])
}
