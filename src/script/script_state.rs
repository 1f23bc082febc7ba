//! The state of one script: its operations, its record, and what happens next.
//!
//! ```text
//!  begin ──▶ queued ──▶ running ──▶ settled ──▶ sent to the script
//!                ▲         │
//!                │         ▼
//!                ╰─────  asked        all that is unsettled is asked, and the script is idle:
//!                                     suspended
//! ```
//!
//! A script that goes on runs from its start over its record. Its operations of before are compared
//! with the record, and are not run again. Their settlements are sent at once, in their order.
//!
//! Pure: the caller passes the time, runs the operations, and saves the record.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{json, value::RawValue};

use super::{
    limits::{OPERATIONS_MAX, PENDING_MAX, ScriptEnd, ScriptLimit, ScriptLimits},
    operation_runner::OperationAttempt,
    operation_stage::{Operation, OperationStage, n_calls, size_of_operation, size_of_settlement},
    record::{RecordEntry, RecordHead, RecordedStage, ScriptRecord, digest, index_of},
    script_questions::{answers_of, input_requests},
};
use crate::{
    config::defaults,
    protocol::{
        ObjectMembers,
        nesting_depth::{DEPTH_MAX, is_too_deep_within},
    },
    sandbox::message::{
        FAILURE_BYTES_MAX, FailureKind, HostMessage, OperationFailure, OperationOutcome,
        PROGRESS_TEXT_BYTES_MAX, SandboxMessage, ScriptFailure, ScriptOperation, ScriptProgress,
        Settlement,
    },
};

/// The most bytes of arguments that wait for their turn. The largest single one fits.
const QUEUED_BYTES_MAX: usize = 32 << 20;

/// The most bytes of a record: a quarter of the room for all.
pub(super) const RECORD_BYTES_MAX: usize = 16 << 20;

/// The levels of an answer above the value of its script: the message, the result, the structure.
const VALUE_LEVELS: usize = 3;

/// The state of one script.
#[derive(Debug)]
pub(super) struct ScriptState {
    head: RecordHead,
    operations: Vec<Operation>,
    /// The settlements, in their order.
    settled: Vec<Settlement>,
    /// The number of settlements that a run before this one has seen.
    n_replayed: usize,
    /// The number of operations that this run has begun.
    n_begun: usize,
    /// The number of settlements that the script has received, if it waits.
    idle_after: Option<usize>,
    /// The operations that wait for their turn.
    queue: VecDeque<u32>,
    queued_bytes: usize,
    n_running: usize,
    n_calls: usize,
    /// The number of operations that this run has begun and that are not settled.
    n_pending: usize,
    /// The number of those that wait for another request of the client.
    n_asked: usize,
    /// The number of those that wait for an answer of the client on the way.
    n_asking: usize,
    /// The console output of this run.
    output: String,
    record_bytes: usize,
    unsaved: Vec<RecordEntry>,
    now_ms: u64,
}

/// An action of the driver.
#[derive(Debug)]
pub(super) enum ScriptAction {
    /// Run an operation.
    Run(u32, ScriptOperation, OperationAttempt),
    /// Send a message to the sandbox.
    Send(HostMessage),
    /// Report progress to the client.
    Report(ScriptProgress),
    /// End the script.
    End(ScriptEnd),
}

impl ScriptState {
    /// Returns the state of a new script.
    pub(super) fn new(head: RecordHead) -> Self {
        let now_ms = head.start.now_ms;
        Self {
            unsaved: vec![RecordEntry::Start(Box::new(head.clone()))],
            head,
            operations: Vec::new(),
            settled: Vec::new(),
            n_replayed: 0,
            n_begun: 0,
            idle_after: None,
            queue: VecDeque::new(),
            queued_bytes: 0,
            n_running: 0,
            n_calls: 0,
            n_pending: 0,
            n_asked: 0,
            n_asking: 0,
            output: String::new(),
            record_bytes: 0,
            now_ms,
        }
    }

    /// Returns the state of a script that goes on, with the client's `inputResponses`, JSON text.
    pub(super) fn resumed(record: ScriptRecord, responses: &str) -> Self {
        let ScriptRecord { head, operations, settled, .. } = record;
        let mut state = Self::new(head);
        state.unsaved.clear();
        state.n_replayed = settled.len();
        state.now_ms = settled.last().map_or(state.now_ms, |last| last.now_ms);
        state.record_bytes = settled.iter().map(size_of_settlement).sum();
        state.settled = settled;
        let responses = ObjectMembers::read(responses).unwrap_or_default();
        for (number, recorded) in (1..).zip(operations) {
            let answers = match &recorded.stage {
                RecordedStage::Asked(question) => answers_of(number, question, &responses),
                RecordedStage::InFlight | RecordedStage::Settled => None,
            };
            let stage = OperationStage::Recorded(recorded.stage, answers);
            state.operations.push(Operation { digest: recorded.digest, stage });
        }
        state
    }

    /// Returns the limits of the script.
    pub(super) fn limits(&self) -> &ScriptLimits {
        &self.head.limits
    }

    /// Begins a run. Returns the messages that begin it.
    pub(super) fn begin_run(&mut self) -> Vec<HostMessage> {
        (self.n_begun, self.idle_after, self.n_calls, self.n_pending) = (0, None, 0, 0);
        let is_asked = |operation: &&Operation| matches!(operation.stage, OperationStage::Asked(_));
        self.n_asked = self.operations.iter().filter(is_asked).count();
        self.n_replayed = self.settled.len();
        self.output.clear();
        let start = HostMessage::Start(Box::new(self.head.start.clone()));
        let settled = self.settled.iter().cloned().map(HostMessage::Settle);
        std::iter::once(start).chain(settled).collect()
    }

    /// Takes a message of the sandbox.
    pub(super) fn on_message(&mut self, message: SandboxMessage) -> Vec<ScriptAction> {
        let acted = match message {
            SandboxMessage::Begin { operation, what } => self.on_begin(operation, what),
            SandboxMessage::Print(text) => self.on_print(&text),
            SandboxMessage::Progress(progress)
                if progress.message.len() > PROGRESS_TEXT_BYTES_MAX =>
            {
                Err(broken("the text of its progress is too long"))
            }
            SandboxMessage::Failed(failure) if failure.n_bytes() > FAILURE_BYTES_MAX => {
                Err(broken("its failure is too long"))
            }
            SandboxMessage::Progress(progress) => Ok(match self.is_replaying() {
                true => Vec::new(),
                false => vec![ScriptAction::Report(progress)],
            }),
            SandboxMessage::Idle(n_received) => self.on_idle(n_received),
            SandboxMessage::Returned(value) => {
                let end = self.end_with(value);
                self.note_cancelled();
                Err(end)
            }
            SandboxMessage::Failed(failure) => {
                self.note_cancelled();
                Err(self.end_of(failure))
            }
        };
        acted.unwrap_or_else(|end| vec![ScriptAction::End(end)])
    }

    /// Returns the end of a script with this failure.
    fn end_of(&self, failure: ScriptFailure) -> ScriptEnd {
        match failure.kind {
            FailureKind::Memory => {
                ScriptEnd::Limit(ScriptLimit::Memory(self.limits().memory_bytes_max))
            }
            FailureKind::Output => self.output_limit(),
            FailureKind::Syntax
            | FailureKind::Exception
            | FailureKind::Stuck
            | FailureKind::Value => ScriptEnd::Failed(Box::new(failure)),
        }
    }

    fn on_print(&mut self, text: &str) -> Result<Vec<ScriptAction>, ScriptEnd> {
        if self.output.len() + text.len() > self.limits().output_bytes_max {
            return Err(self.output_limit());
        }
        self.output.push_str(text);
        Ok(Vec::new())
    }

    /// Adds to the output how many calls the end of the script cancels, if any, and if it fits.
    fn note_cancelled(&mut self) {
        let is_call = |operation: &&Operation| match &operation.stage {
            OperationStage::Queued(what, _) => !matches!(what, ScriptOperation::Sleep(_)),
            OperationStage::Running { is_limited, .. } => *is_limited,
            OperationStage::Asked(_) => true,
            OperationStage::Recorded(..) | OperationStage::Settled => false,
        };
        let n_calls = self.operations.iter().filter(is_call).count();
        if n_calls > 0 {
            let text = format!(
                "[calls that were cancelled, because the script did not await them: {n_calls}]\n"
            );
            if self.output.len() + text.len() <= self.limits().output_bytes_max {
                self.output.push_str(&text);
            }
        }
    }

    /// Returns the end of a script with this value, which counts as output.
    fn end_with(&self, value: Box<RawValue>) -> ScriptEnd {
        let text = value.get();
        if self.output.len() + text.len() > self.limits().output_bytes_max {
            return self.output_limit();
        }
        if is_too_deep_within(text.as_bytes(), VALUE_LEVELS) {
            let message = format!("it is nested deeper than {} levels", DEPTH_MAX - VALUE_LEVELS);
            let (kind, stack) = (FailureKind::Value, String::new());
            let failure = ScriptFailure { kind, message, place: None, stack, cause: None };
            return ScriptEnd::Failed(Box::new(failure));
        }
        ScriptEnd::Returned(value)
    }

    fn output_limit(&self) -> ScriptEnd {
        ScriptEnd::Limit(ScriptLimit::Output(self.limits().output_bytes_max))
    }

    fn on_idle(&mut self, n_received: u32) -> Result<Vec<ScriptAction>, ScriptEnd> {
        let n_received = n_received as usize;
        if n_received > self.settled.len() || self.idle_after.is_some_and(|n| n >= n_received) {
            return Err(broken("it reports results that were not sent"));
        }
        self.idle_after = Some(n_received);
        if n_received == self.settled.len() && self.n_begun < self.operations.len() {
            return Err(ScriptEnd::Diverged(number_of(self.n_begun)));
        }
        Ok(Vec::new())
    }

    fn on_begin(
        &mut self,
        operation: u32,
        what: ScriptOperation,
    ) -> Result<Vec<ScriptAction>, ScriptEnd> {
        let index = self.n_begun;
        if index_of(operation) != Some(index) {
            return Err(broken("its operations are not numbered in order"));
        }
        let max_ms = self.limits().sleep_max.as_millis() as f64;
        if matches!(what, ScriptOperation::Sleep(ms) if !(0.0..=max_ms).contains(&ms)) {
            return Err(broken("it sleeps for too long"));
        }
        self.n_begun += 1;
        self.n_pending += 1;
        let may_call = self.count_calls(&what);
        let digest = digest(&what);
        if self.n_pending > PENDING_MAX {
            return Err(broken("it has too many operations in flight"));
        }
        let Some(known) = self.operations.get_mut(index) else {
            return self.on_first_begin(operation, what, digest, may_call);
        };
        if known.digest != digest {
            return Err(ScriptEnd::Diverged(operation));
        }
        let attempt = match &mut known.stage {
            OperationStage::Recorded(RecordedStage::Settled, _) | OperationStage::Settled => {
                known.stage = OperationStage::Settled;
                self.n_pending -= 1;
                return Ok(Vec::new());
            }
            OperationStage::Recorded(RecordedStage::Asked(question), answers) => {
                let question = std::mem::take(question);
                let Some(answers) = answers.take() else {
                    known.stage = OperationStage::Asked(question);
                    self.n_asked += 1;
                    return Ok(Vec::new());
                };
                OperationAttempt::Answered { question, answers }
            }
            OperationStage::Recorded(RecordedStage::InFlight, _) => {
                OperationAttempt::OutcomeUnknown
            }
            // This process runs it already.
            OperationStage::Queued(..)
            | OperationStage::Running { .. }
            | OperationStage::Asked(_) => {
                return Ok(Vec::new());
            }
        };
        self.enqueue(operation, what, attempt)
    }

    /// Counts the calls of an operation. Returns `false` if the script may not make so many more.
    fn count_calls(&mut self, what: &ScriptOperation) -> bool {
        let n_calls = self.n_calls.saturating_add(n_calls(what));
        let may_call = n_calls <= self.limits().calls_max;
        if may_call {
            self.n_calls = n_calls;
        }
        may_call
    }

    fn on_first_begin(
        &mut self,
        operation: u32,
        what: ScriptOperation,
        digest: String,
        may_call: bool,
    ) -> Result<Vec<ScriptAction>, ScriptEnd> {
        if self.operations.len() >= OPERATIONS_MAX {
            return Err(ScriptEnd::Limit(ScriptLimit::Operations(OPERATIONS_MAX)));
        }
        let stage = OperationStage::Running { is_asking: false, is_limited: false, server: None };
        self.operations.push(Operation { digest, stage });
        if !may_call {
            let digest = self.operations.last().map(|it| it.digest.clone()).unwrap_or_default();
            self.unsaved.push(RecordEntry::Begun { operation, digest });
            let failure = too_many_calls(self.limits().calls_max, &what);
            return Ok(self.on_settled(operation, OperationOutcome::Failure(failure), self.now_ms));
        }
        self.enqueue(operation, what, OperationAttempt::First)
    }

    fn enqueue(
        &mut self,
        operation: u32,
        what: ScriptOperation,
        attempt: OperationAttempt,
    ) -> Result<Vec<ScriptAction>, ScriptEnd> {
        self.queued_bytes += size_of_operation(&what);
        if self.queued_bytes > QUEUED_BYTES_MAX {
            return Err(ScriptEnd::Limit(ScriptLimit::Arguments(QUEUED_BYTES_MAX)));
        }
        if let Some(found) = self.operation(operation) {
            found.stage = OperationStage::Queued(what, attempt);
        }
        self.queue.push_back(operation);
        Ok(self.run_queued())
    }

    /// Starts the operations whose turn it is. A sleep waits for no other operation.
    fn run_queued(&mut self) -> Vec<ScriptAction> {
        let mut actions = Vec::new();
        let mut waiting = VecDeque::new();
        while let Some(operation) = self.queue.pop_front() {
            let has_room = self.n_running < self.limits().parallel_max;
            let Some(found) = self.operation(operation) else { continue };
            let is_limited =
                !matches!(&found.stage, OperationStage::Queued(ScriptOperation::Sleep(_), _));
            if is_limited && !has_room {
                waiting.push_back(operation);
                continue;
            }
            let running = OperationStage::Running { is_asking: false, is_limited, server: None };
            let OperationStage::Queued(what, attempt) =
                std::mem::replace(&mut found.stage, running)
            else {
                continue;
            };
            if let (
                ScriptOperation::Tool { server: called, .. },
                OperationStage::Running { server, .. },
            ) = (&what, &mut found.stage)
            {
                *server = Some(called.as_str().into());
            }
            let digest = found.digest.clone();
            self.n_running += usize::from(is_limited);
            self.queued_bytes -= size_of_operation(&what);
            self.unsaved.push(RecordEntry::Begun { operation, digest });
            actions.push(ScriptAction::Run(operation, what, attempt));
        }
        self.queue = waiting;
        actions
    }

    /// Takes the outcome of an operation.
    pub(super) fn on_settled(
        &mut self,
        operation: u32,
        outcome: OperationOutcome,
        now_ms: u64,
    ) -> Vec<ScriptAction> {
        if !self.leave_running(operation, OperationStage::Settled) {
            return Vec::new();
        }
        // The time of a script never goes back.
        self.now_ms = self.now_ms.max(now_ms);
        let settlement = Settlement { operation, now_ms: self.now_ms, outcome };
        self.record_bytes += size_of_settlement(&settlement);
        if self.record_bytes > RECORD_BYTES_MAX {
            return vec![ScriptAction::End(ScriptEnd::Limit(ScriptLimit::Record(
                RECORD_BYTES_MAX,
            )))];
        }
        // A sandbox that repeats the script may not have come to this operation.
        if index_of(operation).is_some_and(|index| index < self.n_begun) {
            self.n_pending -= 1;
        }
        self.settled.push(settlement.clone());
        self.unsaved.push(RecordEntry::Settled(settlement.clone()));
        let mut actions = vec![ScriptAction::Send(HostMessage::Settle(settlement))];
        actions.extend(self.run_queued());
        actions
    }

    /// Takes the question of an operation that only another request of the client can answer.
    pub(super) fn on_asked(&mut self, operation: u32, question: String) -> Vec<ScriptAction> {
        let stage = OperationStage::Asked(question.clone());
        if !self.leave_running(operation, stage) {
            return Vec::new();
        }
        self.n_asked += 1;
        self.record_bytes += question.len();
        self.unsaved.push(RecordEntry::Asked { operation, question });
        self.run_queued()
    }

    /// Moves an operation from running to `stage`; `false` if it does not run.
    fn leave_running(&mut self, operation: u32, stage: OperationStage) -> bool {
        let Some(found) = self.operation(operation) else { return false };
        let OperationStage::Running { is_limited, is_asking, .. } = found.stage else {
            return false;
        };
        found.stage = stage;
        self.n_running -= usize::from(is_limited);
        self.n_asking -= usize::from(is_asking);
        true
    }

    /// Sets whether a running operation waits for the client's answer on the way.
    pub(super) fn set_asking(&mut self, operation: u32, is_asking_now: bool) {
        if let Some(Operation { stage: OperationStage::Running { is_asking, .. }, .. }) =
            self.operation(operation)
            && *is_asking != is_asking_now
        {
            *is_asking = is_asking_now;
            match is_asking_now {
                true => self.n_asking += 1,
                false => self.n_asking -= 1,
            }
        }
    }

    /// Returns whether only the client is waited for.
    pub(super) fn waits_for_client(&self) -> bool {
        if !self.is_idle() || self.n_pending == 0 || self.n_asked + self.n_asking == 0 {
            return false;
        }
        if self.n_pending == self.n_asked + self.n_asking {
            return true;
        }
        // A question that comes over a pipe belongs to any of the calls at its server.
        let asking = self.operations.iter().filter_map(|operation| match &operation.stage {
            OperationStage::Running { is_asking: true, server, .. } => server.as_deref(),
            _ => None,
        });
        let asking: BTreeSet<&str> = asking.collect();
        self.operations.iter().take(self.n_begun).all(|operation| match &operation.stage {
            OperationStage::Running { is_asking: true, .. }
            | OperationStage::Asked(_)
            | OperationStage::Settled => true,
            OperationStage::Running { server, .. } => {
                server.as_deref().is_some_and(|server| asking.contains(server))
            }
            OperationStage::Queued(..) | OperationStage::Recorded(..) => false,
        })
    }

    /// Returns the questions to the client, JSON text of `inputRequests`, if nothing else can
    /// happen.
    pub(super) fn suspension(&self) -> Option<String> {
        if !self.is_idle() || self.n_pending == 0 || self.n_pending != self.n_asked {
            return None;
        }
        let asked =
            self.operations.iter().zip(1_u32..).filter_map(|(operation, number)| match &operation
                .stage
            {
                OperationStage::Asked(question) => Some((number, question.as_str())),
                _ => None,
            });
        let asked: Vec<(u32, &str)> = asked.collect();
        Some(input_requests(&asked))
    }

    /// Returns whether the script waits for the outcomes of operations, all sent ones included.
    fn is_idle(&self) -> bool {
        self.idle_after == Some(self.settled.len())
    }

    /// Returns whether this run repeats what an earlier one has reported.
    pub(super) fn is_replaying(&self) -> bool {
        self.n_replayed > 0 && self.idle_after.is_none_or(|n| n + 1 < self.n_replayed)
    }

    fn operation(&mut self, number: u32) -> Option<&mut Operation> {
        self.operations.get_mut(index_of(number)?)
    }

    /// Returns the console output so far, and empties it.
    pub(super) fn take_output(&mut self) -> String {
        std::mem::take(&mut self.output)
    }

    /// Returns the new entries of the record.
    pub(super) fn take_unsaved(&mut self) -> Vec<RecordEntry> {
        std::mem::take(&mut self.unsaved)
    }

    /// Returns the memory that the script takes in this process, in bytes.
    pub(super) fn n_bytes(&self) -> usize {
        // The record is in memory twice: the settlements, and those not sent yet.
        2 * self.record_bytes + self.queued_bytes + self.output.len()
    }

    /// Returns the number of operations that are settled.
    pub(super) fn n_settled(&self) -> usize {
        self.settled.len()
    }

    /// Returns the number of calls that the script has made.
    pub(super) fn n_calls(&self) -> usize {
        self.n_calls
    }
}

fn too_many_calls(calls_max: usize, what: &ScriptOperation) -> OperationFailure {
    let (server, tool) = match what {
        ScriptOperation::Tool { server, tool, .. } => (Some(server.clone()), Some(tool.clone())),
        _ => (None, None),
    };
    OperationFailure {
        code: "limit_exceeded".to_owned(),
        message: format!("the script has called tools {calls_max} times, and may not call more"),
        hint: match calls_max < defaults::EXECUTE_CALLS_MAX {
            true => format!(
                "Call fewer tools, or allow up to {} calls with `max_tool_calls`.",
                defaults::EXECUTE_CALLS_MAX
            ),
            false => "Call tools that take many items at once, or split the script.".to_owned(),
        },
        server,
        tool,
        details: [
            ("limit".to_owned(), json!("tool_calls")),
            ("value".to_owned(), json!(calls_max)),
        ]
        .into_iter()
        .collect(),
    }
}

fn broken(reason: &str) -> ScriptEnd {
    ScriptEnd::Broken(reason.to_owned())
}

fn number_of(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}
