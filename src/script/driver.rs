//! The driver of one script: its sandbox, its operations, its clock, and its record.

use std::{sync::Arc, time::Duration};

use futures_util::future::pending;
use serde_json::{Map, json};
use tokio::{sync::mpsc, time};

use super::{
    limits::{ScriptEnd, ScriptLimit, ScriptLimits},
    operation_runner::{OperationAttempt, OperationEnd, OperationNote, ScriptEvent},
    progress_reporter::ProgressReporter,
    record::{RecordEntry, RecordHead, ScriptRecord},
    record_store::{RecordFile, ResumeError},
    running_operations::{OperationStep, RunningOperations},
    sandbox_process::{SandboxProcess, SandboxProcessError},
    script_clock::ScriptClock,
    script_context::ScriptContext,
    script_outcome::ScriptOutcome,
    script_state::{ScriptAction, ScriptState},
};
use crate::{
    compute_pool::read_in_place,
    error_report::chain,
    memory_budget::MemoryReservation,
    protocol::Message,
    sandbox::message::{OperationFailure, OperationOutcome, ScriptOperation, ScriptStart},
    time_format,
};

/// The scripts that run at the same time. Each has a process with its own memory, so that eight
/// take at most half a gigabyte.
pub(super) const SCRIPTS_RUNNING_MAX: usize = 8;

/// The longest wait for other scripts to end, if a client waits for the answer.
const ADMISSION_TIMEOUT: Duration = Duration::from_secs(30);

/// The events of a script that wait for its client.
pub(super) const EVENTS_MAX: usize = 16;

/// A script that is ready to run.
pub struct PreparedScript {
    state: ScriptState,
    context: ScriptContext,
    /// The file of its record, if it has one.
    file: Option<RecordFile>,
    /// The progress, if the client wants it.
    progress: Option<ProgressReporter>,
    /// The longest wait for other scripts to end.
    admission_timeout: Duration,
    clock: ScriptClock,
}

impl PreparedScript {
    /// Returns a new script, which sees `args` if there are any. `request` is the digest of the
    /// client's request.
    pub fn new(
        code: String,
        args: Option<Vec<String>>,
        limits: ScriptLimits,
        request: String,
        context: ScriptContext,
    ) -> Self {
        let (seed, now_ms) = (fastrand::u64(..), time_format::now_ms());
        let start = ScriptStart { code, args, seed, now_ms, limits: limits.of_sandbox() };
        let head = RecordHead { start, limits, request_digest: request };
        Self::with(ScriptState::new(head), None, Duration::ZERO, context)
    }

    /// Returns the script that goes on from the record of `request_state`, with the client's `inputResponses`, JSON text.
    ///
    /// # Errors
    ///
    /// [`ResumeError`] if there is no such record, or it is of another request.
    pub async fn resume(
        request_state: &str,
        request: &str,
        responses: &str,
        context: ScriptContext,
    ) -> Result<Self, ResumeError> {
        let (file, text) = context.records.take(request_state).await?;
        let record = read_in_place(text.len(), || ScriptRecord::read(&text))?;
        if record.head.request_digest != request {
            return Err(ResumeError::OtherRequest);
        }
        let spent = Duration::from_millis(record.spent_ms);
        let state = ScriptState::resumed(record, responses);
        Ok(Self::with(state, Some(file), spent, context))
    }

    fn with(
        state: ScriptState,
        file: Option<RecordFile>,
        spent: Duration,
        context: ScriptContext,
    ) -> Self {
        let progress = context.token.as_deref().map(ProgressReporter::new);
        let clock = ScriptClock::after(spent);
        Self { state, context, file, progress, admission_timeout: ADMISSION_TIMEOUT, clock }
    }

    /// Waits up to this time for other scripts to end, since no client waits for the answer.
    pub fn set_admission_timeout(&mut self, timeout: Duration) {
        self.admission_timeout = timeout;
    }

    /// Keeps the record in a file from the start, so that the script survives this process. Returns
    /// the state that leads to it.
    ///
    /// # Errors
    ///
    /// [`std::io::Error`] if the file cannot be written.
    pub async fn record_from_start(&mut self) -> std::io::Result<String> {
        let file = self.context.records.create(lines(&self.state.take_unsaved())).await?;
        let state = file.state();
        self.file = Some(file);
        Ok(state)
    }

    /// Runs the script to its end, or until it waits for another request of its client. Dropping
    /// the future ends it with all of its operations.
    pub async fn run(mut self, events: mpsc::Sender<ScriptEvent>) -> ScriptOutcome {
        let end = self.run_rounds(&events).await;
        self.clock.stop();
        // A client can repeat a request that goes on with a script, which has not changed.
        let is_kept = self.context.can_suspend
            && self.file.is_some()
            && matches!(end, ScriptEnd::NotStarted(_) | ScriptEnd::NoMemory(_));
        let end = match is_kept {
            true => self.save().await.err().map_or(end, |error| unwritten(&error)),
            false => self.finish_record(end).await,
        };
        ScriptOutcome {
            end,
            output: self.state.take_output(),
            n_calls: self.state.n_calls(),
            spent: self.clock.spent(),
            is_kept,
        }
    }

    /// Runs the script in one sandbox after the other. Between them, a person is waited for.
    async fn run_rounds(&mut self, events: &mpsc::Sender<ScriptEvent>) -> ScriptEnd {
        let mut operations = RunningOperations::new(Arc::clone(&self.context.runner));
        let mut memory = MemoryReservation::of(Some(self.context.holder.account));
        let mut patience = self.admission_timeout;
        let mut is_second = false;
        let memory_bytes_max = self.state.limits().memory_bytes_max;
        loop {
            let place = time::timeout(patience, self.context.places.admit(self.context.holder));
            let Ok(Some(place)) = place.await else {
                let seconds = patience.as_secs();
                return ScriptEnd::NotStarted(format!(
                    "{SCRIPTS_RUNNING_MAX} other scripts were running for the last {seconds} s"
                ));
            };
            let mut sandbox =
                match SandboxProcess::start(self.context.launcher, memory_bytes_max).await {
                    Ok(sandbox) => sandbox,
                    Err(error) => return ScriptEnd::NotStarted(chain(&error)),
                };
            self.clock.replay();
            let round = self.run_round(&mut sandbox, &mut operations, &mut memory, events);
            match Box::pin(round).await {
                Ok(RoundEnd::Ended(end)) => return end,
                Ok(RoundEnd::Waits) => {}
                Err(SandboxProcessError::OutOfMemory) => {
                    return ScriptEnd::Limit(ScriptLimit::Memory(memory_bytes_max));
                }
                // The same script over its record does the same again, unless another party has
                // ended the process: its operations go on meanwhile.
                Err(SandboxProcessError::Ended(exit)) if !exit.is_violation() && !is_second => {
                    is_second = true;
                    tracing::warn!("the sandbox of a script {exit}: it is started again");
                    continue;
                }
                Err(error) => {
                    let reason = chain(&error);
                    tracing::warn!(reason, "the sandbox of a script failed: {reason}");
                    return ScriptEnd::Broken(reason);
                }
            }
            // Neither a process nor a place waits for a person.
            drop((sandbox, place));
            if let Some(end) = self.wait_for_client(&mut operations, &mut memory, events).await {
                return end;
            }
            patience = self.state.limits().wall;
        }
    }

    /// Runs the script in one sandbox.
    async fn run_round(
        &mut self,
        sandbox: &mut SandboxProcess,
        operations: &mut RunningOperations,
        memory: &mut MemoryReservation,
        events: &mpsc::Sender<ScriptEvent>,
    ) -> Result<RoundEnd, SandboxProcessError> {
        for message in self.state.begin_run() {
            sandbox.queue(&message)?;
        }
        loop {
            if let Some(end) = self.prepare_wait(memory, sandbox.n_received()).await {
                return Ok(RoundEnd::Ended(end));
            }
            if self.state.waits_for_client() {
                match self.state.suspension() {
                    Some(requests) if self.context.can_suspend => {
                        return Ok(RoundEnd::Ended(ScriptEnd::Suspended(requests)));
                    }
                    _ => return Ok(RoundEnd::Waits),
                }
            }
            let actions = tokio::select! {
                message = sandbox.next() => {
                    let (message, n_bytes) = message?;
                    read_in_place(n_bytes, || self.state.on_message(message))
                }
                (operation, step) = operations.next() => {
                    match self.on_step(operation, step, events).await {
                        Ok(actions) => actions,
                        Err(end) => return Ok(RoundEnd::Ended(end)),
                    }
                }
                end = self.deadline() => return Ok(RoundEnd::Ended(end)),
            };
            for action in actions {
                let done = match action {
                    ScriptAction::Send(message) => sandbox.queue(&message).map(Ok),
                    action => Ok(self.act(action, operations, events).await),
                };
                if let Err(end) = done? {
                    return Ok(RoundEnd::Ended(end));
                }
            }
        }
    }

    /// Waits without a sandbox until the script can go on. Returns its end if it cannot.
    async fn wait_for_client(
        &mut self,
        operations: &mut RunningOperations,
        memory: &mut MemoryReservation,
        events: &mpsc::Sender<ScriptEvent>,
    ) -> Option<ScriptEnd> {
        let n_settled = self.state.n_settled();
        while self.state.n_settled() == n_settled {
            if let Some(end) = self.prepare_wait(memory, 0).await {
                return Some(end);
            }
            let actions = tokio::select! {
                (operation, step) = operations.next() => {
                    self.on_step(operation, step, events).await
                }
                end = self.deadline() => Err(end),
            };
            let actions = match actions {
                Ok(actions) => actions,
                Err(end) => return Some(end),
            };
            for action in actions {
                if let Err(end) = self.act(action, operations, events).await {
                    return Some(end);
                }
            }
        }
        None
    }

    /// Takes the step of an operation.
    async fn on_step(
        &mut self,
        operation: u32,
        step: OperationStep,
        events: &mpsc::Sender<ScriptEvent>,
    ) -> Result<Vec<ScriptAction>, ScriptEnd> {
        let now_ms = time_format::now_ms();
        Ok(match step {
            OperationStep::End(OperationEnd::Settled(outcome)) => {
                self.state.on_settled(operation, outcome, now_ms)
            }
            OperationStep::End(OperationEnd::Asked(question)) if self.context.can_suspend => {
                self.state.on_asked(operation, question)
            }
            OperationStep::End(OperationEnd::Asked(_)) => {
                self.state.on_settled(operation, unanswerable(), now_ms)
            }
            OperationStep::Note(OperationNote::Event(event)) => {
                let is_question = matches!(*event, ScriptEvent::Question(_));
                self.state.set_asking(operation, is_question);
                self.send(events, *event).await?;
                Vec::new()
            }
            OperationStep::Note(OperationNote::Continued) => {
                self.state.set_asking(operation, false);
                Vec::new()
            }
        })
    }

    /// Does what the state asks for, except that it sends nothing to a sandbox: the next one gets
    /// all settlements.
    async fn act(
        &mut self,
        action: ScriptAction,
        operations: &mut RunningOperations,
        events: &mpsc::Sender<ScriptEvent>,
    ) -> Result<(), ScriptEnd> {
        let notice = match action {
            ScriptAction::Run(number, operation, attempt) => {
                let notice = self.progress_of(&operation, &attempt);
                operations.begin(number, operation, attempt);
                notice
            }
            ScriptAction::Send(_) => None,
            ScriptAction::Report(report) => {
                self.progress.as_mut().and_then(|progress| progress.on_report(&report))
            }
            ScriptAction::End(end) => return Err(end),
        };
        match notice {
            Some(notice) => self.send(events, ScriptEvent::Progress(notice)).await,
            None => Ok(()),
        }
    }

    /// Sends an event to the client, at the latest by the deadline of the script.
    async fn send(
        &self,
        events: &mpsc::Sender<ScriptEvent>,
        event: ScriptEvent,
    ) -> Result<(), ScriptEnd> {
        tokio::select! {
            _gone = events.send(event) => Ok(()),
            end = self.deadline() => Err(end),
        }
    }

    /// Waits for the deadline of the script, if it has one now. Returns its end.
    async fn deadline(&self) -> ScriptEnd {
        let limits = self.state.limits();
        match self.clock.deadline(limits.wall) {
            Some(deadline) => time::sleep_until(deadline).await,
            None => pending().await,
        }
        self.clock.end(limits)
    }

    /// Counts the memory, saves the record, and sets the clock. Returns the end of the script if
    /// that fails.
    async fn prepare_wait(
        &mut self,
        memory: &mut MemoryReservation,
        n_received: usize,
    ) -> Option<ScriptEnd> {
        if let Err(exhausted) = memory.resize(self.state.n_bytes() + n_received) {
            return Some(ScriptEnd::NoMemory(exhausted));
        }
        // Before the operations that it mentions are begun: they are polled after this.
        if let Err(error) = self.save().await {
            return Some(unwritten(&error));
        }
        if self.state.waits_for_client() {
            self.clock.wait();
        } else if !self.state.is_replaying() {
            self.clock.run();
        }
        None
    }

    async fn save(&mut self) -> std::io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let entries = self.state.take_unsaved();
        if entries.is_empty() { Ok(()) } else { file.append(lines(&entries)).await }
    }

    /// Returns the notification that the script calls a tool.
    fn progress_of(
        &mut self,
        operation: &ScriptOperation,
        attempt: &OperationAttempt,
    ) -> Option<Message> {
        match (operation, attempt) {
            (ScriptOperation::Tool { server, tool, .. }, OperationAttempt::First) => {
                self.progress.as_mut()?.on_call(server, tool)
            }
            _ => None,
        }
    }

    /// Keeps the record of a script that waits for its client, and removes all others. Returns the
    /// end for the client.
    async fn finish_record(&mut self, end: ScriptEnd) -> ScriptEnd {
        let requests = match end {
            ScriptEnd::Suspended(requests) => requests,
            end => {
                if let Some(file) = self.file.take() {
                    file.remove().await;
                }
                return end;
            }
        };
        let spent_ms = u64::try_from(self.clock.spent().as_millis()).unwrap_or(u64::MAX);
        let mut entries = self.state.take_unsaved();
        entries.push(RecordEntry::Suspended { spent_ms });
        let text = lines(&entries);
        let saved = match &self.file {
            Some(file) => file.append(text).await.map(|()| file.state()),
            None => self.context.records.create(text).await.map(|file| file.state()),
        };
        match saved {
            Ok(state) => ScriptEnd::Suspended(input_required(&requests, &state)),
            Err(error) => unwritten(&error),
        }
    }
}

/// The end of one run of a script.
enum RoundEnd {
    /// The script has ended.
    Ended(ScriptEnd),
    /// It waits for a person, and its client cannot answer with another request.
    Waits,
}

/// Returns the end of a script whose record cannot be written.
fn unwritten(error: &std::io::Error) -> ScriptEnd {
    ScriptEnd::Broken(format!("its record cannot be written: {error}"))
}

/// Returns the outcome of an operation that asks a client who cannot answer.
fn unanswerable() -> OperationOutcome {
    OperationOutcome::Failure(OperationFailure {
        code: "execution_failed".to_owned(),
        message: "the tool asks for input, which the caller of this script cannot give".to_owned(),
        hint: "Call the tool from a client that can answer.".to_owned(),
        server: None,
        tool: None,
        details: Map::new(),
    })
}

/// Returns the result that asks the client, JSON text.
fn input_required(requests: &str, state: &str) -> String {
    let state = json!(state);
    format!(
        r#"{{"resultType":"input_required","inputRequests":{requests},"requestState":{state}}}"#
    )
}

fn lines(entries: &[RecordEntry]) -> Vec<u8> {
    entries.iter().flat_map(RecordEntry::to_line).collect()
}
