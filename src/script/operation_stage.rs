//! An operation of a script, as the script's state knows it: its stage, and what it counts as.
//! Pure.

use serde::{Deserialize, de::IgnoredAny};

use super::{operation_runner::OperationAttempt, record::RecordedStage};
use crate::sandbox::message::{OperationOutcome, ScriptOperation, Settlement};

/// An operation that a script has begun.
#[derive(Debug)]
pub(super) struct Operation {
    /// The digest of what it does.
    pub(super) digest: String,
    pub(super) stage: OperationStage,
}

/// The stage of an operation.
#[derive(Debug)]
pub(super) enum OperationStage {
    /// An earlier process knew it, and this one has not begun it. The answers of the client to its
    /// question, if it has any.
    Recorded(RecordedStage, Option<String>),
    /// It waits for its turn.
    Queued(ScriptOperation, OperationAttempt),
    /// It runs.
    Running {
        /// It has asked its client, who has not answered yet.
        is_asking: bool,
        /// It is one of the calls that run at the same time.
        is_limited: bool,
        /// The server that it calls a tool of.
        server: Option<Box<str>>,
    },
    /// It waits for another request of its client, with this result of the server.
    Asked(String),
    /// It has ended.
    Settled,
}

/// The steps of a chain. They are only counted, and take no memory.
#[derive(Deserialize)]
struct ChainSteps {
    steps: Vec<IgnoredAny>,
}

/// Returns the number of calls that an operation counts as.
pub(super) fn n_calls(what: &ScriptOperation) -> usize {
    match what {
        ScriptOperation::Sleep(_) => 0,
        ScriptOperation::Chain(args) => serde_json::from_str::<ChainSteps>(args.get())
            .map_or(1, |chain| chain.steps.len().max(1)),
        ScriptOperation::Tool { .. }
        | ScriptOperation::Search(_)
        | ScriptOperation::Describe { .. } => 1,
    }
}

/// Returns the memory that an operation takes, in bytes.
pub(super) fn size_of_operation(what: &ScriptOperation) -> usize {
    let text = match what {
        ScriptOperation::Tool { server, tool, args } => {
            server.len() + tool.len() + args.get().len()
        }
        ScriptOperation::Describe { server, tool } => server.len() + tool.len(),
        ScriptOperation::Search(args) | ScriptOperation::Chain(args) => args.get().len(),
        ScriptOperation::Sleep(_) => 0,
    };
    text + std::mem::size_of::<ScriptOperation>()
}

pub(super) fn size_of_settlement(settlement: &Settlement) -> usize {
    let text = match &settlement.outcome {
        OperationOutcome::Value(value) => value.get().len(),
        OperationOutcome::Failure(failure) => failure.message.len() + failure.hint.len(),
    };
    text + std::mem::size_of::<Settlement>()
}
