//! The driver of one script: its sandbox, its operations, its clock, and its record.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    StreamExt as _,
    future::{BoxFuture, pending},
    stream::FuturesUnordered,
};
use serde_json::{Map, json, value::RawValue};
use tokio::{
    sync::mpsc,
    task::yield_now,
    time::{self, Instant},
};

use super::{
    limits::{ScriptEnd, ScriptLimits},
    operation::{OperationEnd, OperationEvents, OperationNote, OperationRunner, ScriptEvent},
    progress_reporter::ProgressReporter,
    record::{RecordEntry, RecordError, RecordHead, ScriptRecord},
    record_store::{RecordFile, ScriptRecords},
    run_state::{OperationAttempt, ScriptAction, ScriptState},
    sandbox_process::{SandboxLauncher, SandboxProcess, SandboxProcessError},
};
use crate::{
    capacity_holder::Holder,
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
const EVENTS_MAX: usize = 16;

/// A script that is ready to run.
pub struct ScriptTask {
    state: ScriptState,
    launcher: SandboxLauncher,
    runner: Arc<dyn OperationRunner>,
    records: Arc<ScriptRecords>,
    /// The file of its record, if it has one.
    file: Option<RecordFile>,
    /// The client can answer a question with another request.
    can_suspend: bool,
    /// The progress, if the client wants it.
    progress: Option<ProgressReporter>,
    holder: Holder,
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
        let record = ScriptRecord::read(&text)?;
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
        let ScriptContext { launcher, runner, records, can_suspend, token, holder } = context;
        let progress = token.as_deref().map(ProgressReporter::new);
        let (admission_timeout, clock) = (ADMISSION_TIMEOUT, ScriptClock { spent, since: None });
        Self {
            state,
            launcher,
            runner,
            records,
            file,
            can_suspend,
            progress,
            holder,
            admission_timeout,
            clock,
        }
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
        let file = self.records.create(lines(&self.state.take_unsaved())).await?;
        let state = file.state();
        self.file = Some(file);
        Ok(state)
    }

    /// Runs the script to its end, or until it waits for another request of its client. Dropping
    /// the future ends it with all of its operations.
    pub async fn run(mut self, events: mpsc::Sender<ScriptEvent>) -> ScriptOutcome {
        static SCRIPTS: LazyLock<Arc<Admission>> =
            LazyLock::new(|| Admission::new(SCRIPTS_RUNNING_MAX));
        let admitted = time::timeout(self.admission_timeout, SCRIPTS.admit(self.holder)).await;
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
        let mut operations = RunningOperations::new(Arc::clone(&self.runner));
        let mut is_second = false;
        loop {
            let mut sandbox = match SandboxProcess::start(self.launcher).await {
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
        let mut memory = MemoryReservation::of(Some(self.holder.account));
        for message in self.state.begin_run() {
            sandbox.queue(&message)?;
        }
        loop {
            if let Some(end) = self.settle_accounts(&mut memory, sandbox.n_received()).await {
                return Ok(end);
            }
            if self.can_suspend
                && let Some(requests) = self.state.suspension()
            {
                return Ok(ScriptEnd::Suspended(requests));
            }
            let wall = self.state.limits().wall;
            let deadline = self.clock.deadline(wall);
            let actions = tokio::select! {
                message = sandbox.next() => self.state.on_message(message?),
                (operation, step) = operations.next() => match step {
                    OperationStep::End(OperationEnd::Settled(outcome)) => {
                        self.state.on_settled(operation, outcome, time_format::now_ms())
                    }
                    OperationStep::End(OperationEnd::Asked(question)) if self.can_suspend => {
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
            None => self.records.create(text).await.map(|file| file.state()),
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

/// The reason why a script cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// There is no such record, or not any more.
    #[error("the script is unknown, has ended, or has waited for more than an hour")]
    Unknown,
    /// It goes on for another request already.
    #[error("the script goes on already")]
    Running,
    /// The record is of another request.
    #[error("the state belongs to another script")]
    OtherRequest,
    /// The record cannot be read.
    #[error("the record of the script is damaged")]
    Damaged,
}

impl From<RecordError> for ResumeError {
    fn from(error: RecordError) -> Self {
        tracing::warn!(%error, "the record of a script is damaged: {error}");
        Self::Damaged
    }
}

/// The operations that run, and their events.
struct RunningOperations {
    runner: Arc<dyn OperationRunner>,
    running: FuturesUnordered<BoxFuture<'static, (u32, OperationEnd)>>,
    sender: mpsc::Sender<(u32, OperationNote)>,
    notes: mpsc::Receiver<(u32, OperationNote)>,
}

impl RunningOperations {
    fn new(runner: Arc<dyn OperationRunner>) -> Self {
        let (sender, notes) = mpsc::channel(EVENTS_MAX);
        Self { runner, running: FuturesUnordered::new(), sender, notes }
    }

    fn begin(&mut self, number: u32, operation: ScriptOperation, attempt: OperationAttempt) {
        if let ScriptOperation::Sleep(ms) = operation {
            self.running.push(Box::pin(async move {
                // A timer of the runtime takes at least a millisecond.
                match ms < 1.0 {
                    true => yield_now().await,
                    false => time::sleep(Duration::from_secs_f64(ms / 1e3)).await,
                }
                (number, OperationEnd::Settled(OperationOutcome::Value(null())))
            }));
            return;
        }
        let events = OperationEvents { operation: number, events: self.sender.clone() };
        let run = Arc::clone(&self.runner).run(operation, attempt, events);
        self.running.push(Box::pin(async move { (number, run.await) }));
    }

    /// Waits for the next end or event of an operation. Cancel safe.
    async fn next(&mut self) -> (u32, OperationStep) {
        tokio::select! {
            // The events of an operation precede its end.
            biased;
            Some((operation, note)) = self.notes.recv() => (operation, OperationStep::Note(note)),
            Some((operation, end)) = self.running.next(), if !self.running.is_empty() => {
                (operation, OperationStep::End(end))
            }
        }
    }
}

/// The next step of an operation.
enum OperationStep {
    End(OperationEnd),
    Note(OperationNote),
}

fn null() -> Box<RawValue> {
    RawValue::from_string("null".to_owned()).expect("JSON")
}

/// The clock of a script, which stands still while only a person is waited for.
#[derive(Debug)]
struct ScriptClock {
    /// The time until it was stopped last.
    spent: Duration,
    /// The time at which it was started again.
    since: Option<Instant>,
}

impl ScriptClock {
    fn run(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    fn pause(&mut self) {
        if let Some(since) = self.since.take() {
            self.spent += since.elapsed();
        }
    }

    fn spent(&self) -> Duration {
        self.spent + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns the time at which it will have run for `wall`, unless it stands still.
    fn deadline(&self, wall: Duration) -> Option<Instant> {
        self.since.map(|since| since + wall.saturating_sub(self.spent))
    }
}

/// A request that a script answers, with the bytes of a message or another type.
///
/// Dropping it ends the script with all of its operations.
pub struct ScriptExchange<A = Bytes> {
    run: BoxFuture<'static, A>,
    events: mpsc::Receiver<ScriptEvent>,
    /// The answer, while events wait in front of it.
    answer: Option<A>,
}

/// The next step of a script.
#[derive(Debug)]
pub enum ScriptStep<A = Bytes> {
    /// An event for the client.
    Event(Box<ScriptEvent>),
    /// The answer to the client's request. Nothing follows.
    Answer(A),
}

impl<A> ScriptExchange<A> {
    /// Returns the exchange of a script. `answer` makes the answer to the client's request.
    pub fn new<F>(
        task: ScriptTask,
        answer: impl FnOnce(ScriptOutcome) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = A> + Send,
    {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let run = Box::pin(async move { answer(task.run(sender).await).await });
        Self { run, events, answer: None }
    }

    /// Returns the next step. Events precede the answer. Cancel safe.
    pub async fn next(&mut self) -> ScriptStep<A> {
        loop {
            if let Ok(event) = self.events.try_recv() {
                return ScriptStep::Event(Box::new(event));
            }
            if let Some(answer) = self.answer.take() {
                return ScriptStep::Answer(answer);
            }
            tokio::select! {
                Some(event) = self.events.recv() => return ScriptStep::Event(Box::new(event)),
                // It may have sent events just before it ended.
                answer = &mut self.run => self.answer = Some(answer),
            }
        }
    }
}
