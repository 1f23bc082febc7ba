//! The driver of one script: its sandbox, its operations, its clock, and its record.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use futures_util::future::pending;
use serde_json::{Map, json};
use tokio::{
    sync::mpsc,
    time::{self, Instant},
};

use super::{
    limits::{ScriptEnd, ScriptLimits},
    operation::{OperationAttempt, OperationEnd, OperationNote, OperationRunner, ScriptEvent},
    progress_reporter::ProgressReporter,
    record::{RecordEntry, RecordHead, ScriptRecord},
    record_store::{RecordFile, ResumeError, ScriptRecords},
    run_state::{ScriptAction, ScriptState},
    running_operations::{OperationStep, RunningOperations},
    sandbox_process::{SandboxLauncher, SandboxProcess, SandboxProcessError},
    script_clock::ScriptClock,
};
use crate::{
    capacity_holder::Holder,
    compute_pool::read_in_place,
    error_report::chain,
    fair_share::Admission,
    memory_budget::MemoryReservation,
    protocol::Message,
    sandbox::message::{OperationFailure, OperationOutcome, ScriptOperation, ScriptStart},
    time_format,
};

/// The scripts that run at the same time. Each has a process with its own memory, so that eight
/// take at most half a gigabyte.
const SCRIPTS_RUNNING_MAX: usize = 8;

/// The longest wait for other scripts to end, if a client waits for the answer.
const ADMISSION_TIMEOUT: Duration = Duration::from_secs(30);

/// The events of a script that wait for its client.
pub(super) const EVENTS_MAX: usize = 16;

/// A script that is ready to run.
pub struct ScriptTask {
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

/// The outcome of a run.
#[derive(Debug)]
pub struct ScriptOutcome {
    /// The way in which it ended.
    pub end: ScriptEnd,
    /// The console output.
    pub output: String,
    /// The number of calls that it has made.
    pub n_calls: usize,
    /// The time for which it has run.
    pub spent: Duration,
}

impl ScriptOutcome {
    /// Returns the size of what the script has printed and returned, in bytes.
    pub fn n_bytes(&self) -> usize {
        let value = match &self.end {
            ScriptEnd::Returned(value) => value.get().len(),
            _ => 0,
        };
        self.output.len() + value
    }
}

/// The services and the circumstances of a script.
pub struct ScriptContext {
    /// The way to start its sandbox.
    pub launcher: SandboxLauncher,
    /// The services that do its operations.
    pub runner: Arc<dyn OperationRunner>,
    /// The records of all scripts.
    pub records: Arc<ScriptRecords>,
    /// `true` if the client can answer a question with another request.
    pub can_suspend: bool,
    /// The client's progress token, JSON text.
    pub token: Option<String>,
    /// The holder that it counts for.
    pub holder: Holder,
}

impl ScriptTask {
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
        let head = RecordHead { start, limits, request };
        Self::with(ScriptState::new(head), None, Duration::ZERO, context)
    }

    /// Returns the script that goes on from a record, with the client's `inputResponses`, JSON text.
    ///
    /// # Errors
    ///
    /// [`ResumeError`] if there is no such record, or it is of another request.
    pub async fn resume(
        state: &str,
        request: &str,
        responses: &str,
        context: ScriptContext,
    ) -> Result<Self, ResumeError> {
        let (file, text) = context.records.take(state).await?;
        let record = read_in_place(text.len(), || ScriptRecord::read(&text))?;
        if record.head.request != request {
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
        static SCRIPTS: LazyLock<Arc<Admission>> =
            LazyLock::new(|| Admission::new(SCRIPTS_RUNNING_MAX));
        let admitted =
            time::timeout(self.admission_timeout, SCRIPTS.admit(self.context.holder)).await;
        let end = match admitted {
            Ok(Some(_permit)) => self.run_admitted(&events).await,
            Ok(None) | Err(_) => {
                let seconds = self.admission_timeout.as_secs();
                let reason = format!(
                    "{SCRIPTS_RUNNING_MAX} other scripts were running for the last {seconds} s"
                );
                ScriptEnd::NotStarted(reason)
            }
        };
        let end = self.finish_record(end).await;
        ScriptOutcome {
            end,
            output: self.state.take_output(),
            n_calls: self.state.n_calls(),
            spent: self.clock.spent(),
        }
    }

    async fn run_admitted(&mut self, events: &mpsc::Sender<ScriptEvent>) -> ScriptEnd {
        let mut operations = RunningOperations::new(Arc::clone(&self.context.runner));
        let mut is_second = false;
        loop {
            let mut sandbox = match SandboxProcess::start(self.context.launcher).await {
                Ok(sandbox) => sandbox,
                Err(error) => return ScriptEnd::NotStarted(chain(&error)),
            };
            self.clock.run();
            let round = Box::pin(self.run_round(&mut sandbox, &mut operations, events)).await;
            self.clock.pause();
            match round {
                Ok(end) => return end,
                // The same script over its record does the same again, unless another party has
                // ended the process: its operations go on meanwhile.
                Err(SandboxProcessError::Ended(exit)) if !exit.is_violation() && !is_second => {
                    is_second = true;
                    tracing::warn!("the sandbox of a script {exit}: it is started again");
                }
                Err(error) => {
                    let reason = chain(&error);
                    tracing::warn!(reason, "the sandbox of a script failed: {reason}");
                    return ScriptEnd::Broken(reason);
                }
            }
        }
    }

    /// Runs the script in one sandbox.
    async fn run_round(
        &mut self,
        sandbox: &mut SandboxProcess,
        operations: &mut RunningOperations,
        events: &mpsc::Sender<ScriptEvent>,
    ) -> Result<ScriptEnd, SandboxProcessError> {
        let mut memory = MemoryReservation::of(Some(self.context.holder.account));
        for message in self.state.begin_run() {
            sandbox.queue(&message)?;
        }
        loop {
            if let Some(end) = self.settle_accounts(&mut memory, sandbox.n_received()).await {
                return Ok(end);
            }
            if self.context.can_suspend
                && let Some(requests) = self.state.suspension()
            {
                return Ok(ScriptEnd::Suspended(requests));
            }
            let wall = self.state.limits().wall;
            let deadline = self.clock.deadline(wall);
            let actions = tokio::select! {
                message = sandbox.next() => {
                    let (message, n_bytes) = message?;
                    read_in_place(n_bytes, || self.state.on_message(message))
                }
                (operation, step) = operations.next() => match step {
                    OperationStep::End(OperationEnd::Settled(outcome)) => {
                        self.state.on_settled(operation, outcome, time_format::now_ms())
                    }
                    OperationStep::End(OperationEnd::Asked(question)) if self.context.can_suspend => {
                        self.state.on_asked(operation, question)
                    }
                    OperationStep::End(OperationEnd::Asked(_)) => {
                        self.state.on_settled(operation, unanswerable(), time_format::now_ms())
                    }
                    OperationStep::Note(OperationNote::Event(event)) => {
                        let is_question = matches!(*event, ScriptEvent::Question(_));
                        self.state.set_asking(operation, is_question);
                        if send(events, *event, deadline).await.is_err() {
                            return Ok(ScriptEnd::Timeout(wall));
                        }
                        Vec::new()
                    }
                    OperationStep::Note(OperationNote::Continued) => {
                        self.state.set_asking(operation, false);
                        Vec::new()
                    }
                },
                () = sleep_until(deadline) => return Ok(ScriptEnd::Timeout(wall)),
            };
            for action in actions {
                let notice = match action {
                    ScriptAction::Run(number, operation, attempt) => {
                        let notice = self.progress_of(&operation, &attempt);
                        operations.begin(number, operation, attempt);
                        notice
                    }
                    ScriptAction::Send(message) => {
                        sandbox.queue(&message)?;
                        None
                    }
                    ScriptAction::Report(report) => {
                        self.progress.as_mut().and_then(|progress| progress.on_report(&report))
                    }
                    ScriptAction::End(end) => return Ok(end),
                };
                if let Some(notice) = notice
                    && send(events, ScriptEvent::Progress(notice), deadline).await.is_err()
                {
                    return Ok(ScriptEnd::Timeout(wall));
                }
            }
        }
    }

    /// Counts the memory, saves the record, and stops or starts the clock. Returns the end of the
    /// script if that fails.
    async fn settle_accounts(
        &mut self,
        memory: &mut MemoryReservation,
        n_received: usize,
    ) -> Option<ScriptEnd> {
        if let Err(exhausted) = memory.resize(self.state.n_bytes() + n_received) {
            return Some(ScriptEnd::NoMemory(exhausted));
        }
        // Before the operations that it mentions are begun: they are polled after this.
        if let Err(error) = self.save().await {
            return Some(ScriptEnd::Broken(format!("its record cannot be written: {error}")));
        }
        match self.state.waits_for_client() {
            true => self.clock.pause(),
            false => self.clock.run(),
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
            Err(error) => ScriptEnd::Broken(format!("its record cannot be written: {error}")),
        }
    }
}

/// Sends an event to the client, at the latest by `deadline`.
async fn send(
    events: &mpsc::Sender<ScriptEvent>,
    event: ScriptEvent,
    deadline: Option<Instant>,
) -> Result<(), time::error::Elapsed> {
    let sent = events.send(event);
    let _gone = match deadline {
        Some(deadline) => time::timeout_at(deadline, sent).await?,
        None => sent.await,
    };
    Ok(())
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

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => time::sleep_until(deadline).await,
        None => pending().await,
    }
}
