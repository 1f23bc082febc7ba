//! One task from its start to its end, and a call in particular.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{
    CallWork, TaskDriver, TaskEnd, TaskEvent, TaskSubject, TaskWork, UpstreamTask,
    driver::{CancelReply, TaskCommand},
};
use crate::{
    call::{CallError, Exchange},
    config::{TransportConfig, defaults},
    connection::{CallEvent, ConnectionLimits, SideMessage},
    error_report::chain,
    protocol::{Message, ObjectMembers, jsonrpc::MessagePart},
    view::{BackgroundCall, operator},
};

/// The answer to a call that its server may have made a task.
enum CallAnswer {
    /// The call has ended.
    Ended(TaskEnd),
    /// The server has made it a task.
    Task(UpstreamTask),
}

impl TaskDriver {
    /// Does the work of a task to its end. Sends `saved` once the task is on disk.
    pub(super) async fn run(
        self: Arc<Self>,
        id: String,
        work: TaskWork,
        commands: mpsc::Receiver<TaskCommand>,
        saved: oneshot::Sender<()>,
    ) {
        self.save(&id).await;
        let _gone = saved.send(());
        match work {
            TaskWork::Call(call) => self.run_call(id, *call, commands).await,
            TaskWork::Script(script, _) => self.run_script(&id, *script, commands).await,
        }
    }

    /// Makes a call and drives it to its end.
    async fn run_call(
        &self,
        id: String,
        work: CallWork,
        mut commands: mpsc::Receiver<TaskCommand>,
    ) {
        let CallWork { slot, tool, request, timeout, holder } = work;
        let server = slot.name().as_str().to_owned();
        let survives = survives(&slot.declared().transport);
        let deadline = Instant::now() + timeout;
        let limits = ConnectionLimits { silence: timeout, total: timeout };
        // The server keeps the task until metamcp has seen its end, and for the expiry after that.
        let ttl = timeout + self.expiry();
        let request = with_progress_token(request, &id);
        let call = self.operators.call_in_background(slot, &tool, request, limits, ttl, holder);
        tokio::pin!(call);
        let call = loop {
            tokio::select! {
                call = &mut call => break call,
                Some(command) = commands.recv() => match command {
                    TaskCommand::Poll(reply) => drop(reply),
                    TaskCommand::Cancel(reply) => return self.end_cancelled(&id, reply).await,
                },
                () = self.abort.cancelled() => {
                    let message = "the service was stopped before the call was sent".to_owned();
                    return self.end(&id, TaskEnd::Cancelled(message)).await;
                }
            }
        };
        let BackgroundCall { exchange, lease } = match call {
            Ok(call) => call,
            Err(error) => return self.end(&id, TaskEnd::of_error(&error)).await,
        };
        match self.answer(&id, *exchange, &mut commands, survives).await {
            Some(CallAnswer::Ended(end)) => self.end(&id, end).await,
            Some(CallAnswer::Task(upstream)) => {
                self.record_event(&id, TaskEvent::Accepted(upstream.clone())).await;
                self.follow(&id, &server, upstream, lease, deadline, &mut commands).await;
            }
            None => {}
        }
    }

    /// Continues with a task of an earlier process: one that a server made, or a script.
    pub(super) async fn recover(
        self: Arc<Self>,
        id: String,
        subject: TaskSubject,
        mut commands: mpsc::Receiver<TaskCommand>,
    ) {
        let server = match subject {
            TaskSubject::Call { server, .. } => server,
            TaskSubject::Script { state, .. } => {
                return self.resume_script(&id, &state, commands).await;
            }
        };
        let Some(upstream) = self.get(&id).and_then(|task| task.upstream) else { return };
        let deadline = Instant::now() + defaults::TASK_TIMEOUT_MAX;
        self.follow(&id, &server, upstream, None, deadline, &mut commands).await;
    }

    /// Waits for the answer to the call; `None` if the call has already ended.
    async fn answer(
        &self,
        id: &str,
        mut exchange: Exchange,
        commands: &mut mpsc::Receiver<TaskCommand>,
        survives: bool,
    ) -> Option<CallAnswer> {
        loop {
            tokio::select! {
                event = exchange.next() => match event {
                    Ok(CallEvent::Answer(answer)) => {
                        return Some(CallAnswer::read(&answer, survives));
                    }
                    Ok(CallEvent::Message(SideMessage::Notification(notice))) => {
                        if let Some(progress) = operator::progress_of(&notice) {
                            self.record_event(id, TaskEvent::Progress(progress)).await;
                        }
                    }
                    // There is no client to ask.
                    Ok(CallEvent::Message(SideMessage::Question(question))) => question.refuse(),
                    Ok(CallEvent::RetryAfter(asked)) => {
                        let text = format!("server `{}` {asked}", exchange.server());
                        let progress = json!({ "progress": 0, "message": text });
                        self.record_event(id, TaskEvent::Progress(progress)).await;
                    }
                    Ok(CallEvent::Deferred) => {}
                    Err(error) => return Some(CallAnswer::Ended(TaskEnd::of_error(&error))),
                },
                Some(command) = commands.recv() => match command {
                    TaskCommand::Poll(reply) => drop(reply),
                    TaskCommand::Cancel(reply) => {
                        exchange.cancel();
                        self.end_cancelled(id, reply).await;
                        return None;
                    }
                },
                () = self.abort.cancelled() => {
                    exchange.cancel();
                    self.end(id, TaskEnd::stopped()).await;
                    return None;
                }
            }
        }
    }

    /// Ends a cancelled task that leaves nothing behind at its server.
    pub(super) async fn end_cancelled(&self, id: &str, reply: CancelReply) {
        self.end(id, TaskEnd::Cancelled("cancelled by an operator".to_owned())).await;
        let _gone = reply.send(Ok(()));
    }
}

impl CallAnswer {
    /// Reads the answer to the call: its end, or a new task.
    fn read(answer: &Message, survives: bool) -> Self {
        let result = answer.part(MessagePart::Result);
        let created = result.and_then(|result| ObjectMembers::one(result, "task"));
        let task = created.and_then(ObjectMembers::read).and_then(|task| {
            let id = task.string("taskId")?;
            let poll_ms = task.get("pollInterval").and_then(|ms| ms.parse().ok());
            Some(UpstreamTask { id, poll_ms, survives })
        });
        task.map_or_else(|| Self::Ended(TaskEnd::of_answer(answer)), Self::Task)
    }
}

impl TaskEnd {
    /// Returns the end that an answer means.
    pub(super) fn of_answer(answer: &Message) -> Self {
        if let Some(result) = answer.part(MessagePart::Result) {
            return Self::Result(result.to_owned());
        }
        let error = answer.part(MessagePart::Error).unwrap_or("{}");
        let message = ObjectMembers::read(error).and_then(|error| error.string("message"));
        Self::Error { error: error.to_owned(), message: message.unwrap_or_default() }
    }

    /// Returns the end of a call that failed on the way.
    pub(super) fn of_error(error: &CallError) -> Self {
        Self::Error { error: error.to_rpc().object(), message: chain(error) }
    }

    /// Returns the end of a running call when the service stops.
    pub(super) fn stopped() -> Self {
        let message =
            "the service was stopped while the call ran, and told the server to cancel it";
        Self::Unknown(message.to_owned())
    }
}

/// Returns whether a server is a separate process that can outlive the service.
fn survives(transport: &TransportConfig) -> bool {
    match transport {
        TransportConfig::Http(_) => true,
        // Each connection to a unit is another process.
        TransportConfig::Stdio { .. } | TransportConfig::Unit { .. } => false,
    }
}

/// Returns the call with a request for progress reports.
fn with_progress_token(request: Message, id: &str) -> Message {
    if request.part(MessagePart::ProgressToken).is_some() {
        return request;
    }
    let token = Value::from(id).to_string();
    request.with_params(|params| params.set_in_object("_meta", "progressToken", &token))
}
