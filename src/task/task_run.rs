//! One call from its start to its end.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tokio::{
    sync::{mpsc, oneshot},
    time::{self, Instant},
};

use super::{
    CancelError, TaskDriver, TaskEnd, TaskEvent, TaskWork, UpstreamTask, driver::TaskCommand,
};
use crate::{
    backoff::Backoff,
    call::{CallError, Exchange},
    capacity_holder::Holder,
    config::{TransportConfig, defaults},
    connection::{CallEvent as Came, ConnectionLimits, SideMessage},
    error_report::chain,
    pool::ConnectionLease,
    protocol::{
        Message, ObjectMembers, RpcError,
        jsonrpc::MessagePart,
        payloads::method,
        rpc_error::{INTERNAL_ERROR, REQUEST_TIMEOUT},
        task,
    },
    view::BackgroundCall,
};

/// The answer to a call that its server may have made a task.
enum Answered {
    /// The call has ended.
    Ended(TaskEnd),
    /// The server has made it a task.
    Task(UpstreamTask),
}

/// The state of a task, as its server reports it.
enum Told {
    /// It continues; poll it again after this time.
    Goes(TaskEvent, Duration),
    /// It has ended.
    Ended(TaskEnd),
    /// The server cannot be asked, or cannot answer.
    Lost(String),
}

impl TaskDriver {
    /// Makes the call and drives it to its end. Sends `begins` once the call is on disk.
    pub(super) async fn run(
        self: Arc<Self>,
        id: String,
        work: TaskWork,
        mut orders: mpsc::Receiver<TaskCommand>,
        begins: oneshot::Sender<()>,
    ) {
        self.save(&id).await;
        let _gone = begins.send(());
        let server = work.slot.name().as_str().to_owned();
        let survives = survives(&work.slot.declared().transport);
        let until = Instant::now() + work.patience;
        let limits = ConnectionLimits { silence: work.patience, total: work.patience };
        // The server keeps the task until metamcp has seen its end, and for the expiry after that.
        let ttl = work.patience + self.expiry();
        let request = reporting(work.request, &id);
        let (slot, tool) = (work.slot, &work.tool);
        let calling = self.views.call_in_background(slot, tool, request, limits, ttl, work.holder);
        tokio::pin!(calling);
        let begun = loop {
            tokio::select! {
                begun = &mut calling => break begun,
                Some(order) = orders.recv() => match order {
                    TaskCommand::Look(told) => answer_all(vec![told]),
                    order @ TaskCommand::Cancel(_) => return self.gave_up(&id, order).await,
                },
                () = self.hurry.cancelled() => {
                    let message = "the service was stopped before the call was sent".to_owned();
                    return self.record_event(&id, TaskEvent::Ended(TaskEnd::Cancelled { message })).await;
                }
            }
        };
        let BackgroundCall { exchange, lease } = match begun {
            Ok(background) => background,
            Err(error) => return self.record_event(&id, TaskEvent::Ended(failed(&error))).await,
        };
        match self.answer(&id, *exchange, &mut orders, survives).await {
            Some(Answered::Ended(end)) => self.record_event(&id, TaskEvent::Ended(end)).await,
            Some(Answered::Task(upstream)) => {
                self.record_event(&id, TaskEvent::Accepted(upstream.clone())).await;
                self.follow(&id, &server, upstream, lease, until, &mut orders).await;
            }
            None => {}
        }
    }

    /// Continues with a task that a server made for an earlier process.
    pub(super) async fn recover(
        self: Arc<Self>,
        id: String,
        server: String,
        mut orders: mpsc::Receiver<TaskCommand>,
    ) {
        let Some(upstream) = self.get(&id).and_then(|task| task.upstream) else { return };
        let until = Instant::now() + defaults::TASK_PATIENCE_MAX;
        self.follow(&id, &server, upstream, None, until, &mut orders).await;
    }

    /// Waits for the answer to the call; `None` if the call has already ended.
    async fn answer(
        &self,
        id: &str,
        mut exchange: Exchange,
        orders: &mut mpsc::Receiver<TaskCommand>,
        survives: bool,
    ) -> Option<Answered> {
        loop {
            tokio::select! {
                came = exchange.next() => match came {
                    Ok(Came::Answer(answer)) => return Some(answered(&answer, survives)),
                    Ok(Came::Aside(SideMessage::Notification(notice))) => {
                        if let Some(progress) = progress(&notice) {
                            self.record_event(id, TaskEvent::Progress(progress)).await;
                        }
                    }
                    // There is no client to ask.
                    Ok(Came::Aside(SideMessage::Question(question))) => question.refuse(),
                    Ok(Came::Deferred) => {}
                    Err(error) => return Some(Answered::Ended(failed(&error))),
                },
                Some(order) = orders.recv() => match order {
                    TaskCommand::Look(told) => answer_all(vec![told]),
                    order @ TaskCommand::Cancel(_) => {
                        exchange.cancel();
                        self.gave_up(id, order).await;
                        return None;
                    }
                },
                () = self.hurry.cancelled() => {
                    exchange.cancel();
                    self.stopped(id).await;
                    return None;
                }
            }
        }
    }

    /// Polls the task of a server until it has ended. `lease` keeps its connection in use.
    async fn follow(
        &self,
        id: &str,
        server: &str,
        upstream: UpstreamTask,
        mut lease: Option<ConnectionLease>,
        until: Instant,
        orders: &mut mpsc::Receiver<TaskCommand>,
    ) {
        let mut pause = match lease {
            Some(_) => bounded(upstream.poll_ms),
            // The task is from an earlier process.
            None => Duration::ZERO,
        };
        let mut backoff = Backoff::new(defaults::TASK_LOST_PAUSE);
        let mut lost_until: Option<Instant> = None;
        let mut looks: Vec<oneshot::Sender<()>> = Vec::new();
        loop {
            let now = Instant::now();
            if now >= until {
                let _best_effort = self.tell_cancelled(server, &upstream.id).await;
                let text = "it took longer than it was given: its server was told to cancel it";
                return self.record_event(id, TaskEvent::Ended(timed_out(text))).await;
            }
            if lost_until.is_some_and(|lost_until| now >= lost_until) {
                let message = "its server was lost and did not come back in time".to_owned();
                return self.record_event(id, TaskEvent::Ended(TaskEnd::Unknown { message })).await;
            }
            tokio::select! {
                () = time::sleep_until((now + pause).min(until)) => {}
                Some(order) = orders.recv() => match order {
                    TaskCommand::Look(told) => looks.push(told),
                    TaskCommand::Cancel(told) => {
                        let cancelled = self.tell_cancelled(server, &upstream.id).await;
                        if cancelled.is_ok() {
                            let message = "cancelled by an operator".to_owned();
                            self.record_event(id, TaskEvent::Ended(TaskEnd::Cancelled { message })).await;
                        }
                        let is_over = cancelled.is_ok();
                        let _gone = told.send(cancelled);
                        if is_over {
                            return;
                        }
                        // The task may have ended meanwhile: it is polled now.
                    }
                },
                () = self.hurry.cancelled() => {
                    return self.left(id, server, &upstream).await;
                }
                // It need not be awaited: the next start polls it again.
                () = self.stop.cancelled(), if upstream.survives => return,
            }
            // A lost server is not started just to learn that it does not know the task.
            let is_asked = lost_until.is_none() || upstream.survives || !looks.is_empty();
            if !is_asked && self.views.is_connected(server) == Some(false) {
                pause = defaults::TASK_LOST_PAUSE.0;
                continue;
            }
            let told = tokio::select! {
                told = self.ask(server, &upstream) => told,
                () = self.hurry.cancelled() => return self.left(id, server, &upstream).await,
                () = self.stop.cancelled(), if upstream.survives => return,
            };
            match told {
                Told::Goes(event, next) => {
                    self.record_event(id, event).await;
                    if lost_until.take().is_some() {
                        backoff = Backoff::new(defaults::TASK_LOST_PAUSE);
                    }
                    pause = next;
                    if lease.is_none() {
                        lease = self.views.lease_of(server);
                    }
                }
                Told::Ended(end) => {
                    self.record_event(id, TaskEvent::Ended(end)).await;
                    return answer_all(looks);
                }
                Told::Lost(message) => {
                    lease = None;
                    lost_until = lost_until.or(Some(now + self.expiry()));
                    self.record_event(id, TaskEvent::Lost { message }).await;
                    pause = backoff.pause(fastrand::f64());
                }
            }
            answer_all(std::mem::take(&mut looks));
        }
    }

    /// Asks a server for the state of its task, and for the result once it has ended.
    async fn ask(&self, server: &str, upstream: &UpstreamTask) -> Told {
        let params = params(&upstream.id);
        let answer =
            match self.views.ask_about_task(server, task::GET, &params, Holder::SERVICE).await {
                Ok(answer) => answer,
                Err(error) => return refused(error),
            };
        let Some(told) = answer.part(MessagePart::Result).and_then(ObjectMembers::read) else {
            return match end_of(&answer) {
                // The server has an internal error, which says nothing about the task.
                TaskEnd::Error { error, message }
                    if RpcError::code_of(&error) == Some(INTERNAL_ERROR) =>
                {
                    Told::Lost(format!("its server cannot say how it is doing: {message}"))
                }
                end => Told::Ended(forgotten(end)),
            };
        };
        let message = told.string("statusMessage");
        let poll_ms = told.get("pollInterval").and_then(|ms| ms.parse().ok()).or(upstream.poll_ms);
        match told.string("status").as_deref() {
            Some("completed" | "failed") => {
                match self
                    .views
                    .ask_about_task(server, task::RESULT, &params, Holder::SERVICE)
                    .await
                {
                    Ok(answer) => Told::Ended(end_of(&answer)),
                    Err(error) => refused(error),
                }
            }
            Some("cancelled") => {
                let message = message.unwrap_or_else(|| "cancelled by its server".to_owned());
                Told::Ended(TaskEnd::Cancelled { message })
            }
            Some("input_required") => {
                Told::Goes(TaskEvent::InputRequired { message }, bounded(poll_ms))
            }
            Some(_) | None => Told::Goes(TaskEvent::Working { message }, bounded(poll_ms)),
        }
    }

    /// Makes a server cancel its task.
    async fn tell_cancelled(&self, server: &str, id: &str) -> Result<(), CancelError> {
        let asked =
            self.views.ask_about_task(server, task::CANCEL, &params(id), Holder::SERVICE).await;
        let answer = asked.map_err(CancelError::Unasked)?;
        match end_of(&answer) {
            TaskEnd::Error { message, .. } => Err(CancelError::Refused(message)),
            TaskEnd::Result(_) | TaskEnd::Cancelled { .. } | TaskEnd::Unknown { .. } => Ok(()),
        }
    }

    /// Ends a call that leaves nothing behind at its server.
    async fn gave_up(&self, id: &str, order: TaskCommand) {
        let message = "cancelled by an operator".to_owned();
        self.record_event(id, TaskEvent::Ended(TaskEnd::Cancelled { message })).await;
        if let TaskCommand::Cancel(told) = order {
            let _gone = told.send(Ok(()));
        }
    }

    /// Ends a call because the service stops. Its server was told to cancel it.
    async fn stopped(&self, id: &str) {
        let message =
            "the service was stopped while the call ran, and its server told to cancel it";
        let message = message.to_owned();
        self.record_event(id, TaskEvent::Ended(TaskEnd::Unknown { message })).await;
    }

    /// Leaves the task of a server because the service stops.
    async fn left(&self, id: &str, server: &str, upstream: &UpstreamTask) {
        if upstream.survives {
            return;
        }
        match time::timeout(defaults::HURRY / 2, self.tell_cancelled(server, &upstream.id)).await {
            Ok(Ok(())) => {
                let message = "cancelled because the service was stopped".to_owned();
                self.record_event(id, TaskEvent::Ended(TaskEnd::Cancelled { message })).await;
            }
            Ok(Err(_)) | Err(_) => self.stopped(id).await,
        }
    }
}

/// Answers those that wait for the state of a call.
fn answer_all(looks: Vec<oneshot::Sender<()>>) {
    for told in looks {
        let _gone = told.send(());
    }
}

/// Returns whether a server is a separate process that can outlive the service.
fn survives(transport: &TransportConfig) -> bool {
    match transport {
        TransportConfig::Http { .. } => true,
        // Each connection to a unit is another process.
        TransportConfig::Stdio { .. } | TransportConfig::Unit { .. } => false,
    }
}

/// Returns the call with a request for progress reports.
fn reporting(request: Message, id: &str) -> Message {
    if request.part(MessagePart::ProgressToken).is_some() {
        return request;
    }
    let token = Value::from(id).to_string();
    request.with_params(|params| params.set_in_object("_meta", "progressToken", &token))
}

/// Returns the progress of a call, if `notice` reports it.
fn progress(notice: &Message) -> Option<Value> {
    if notice.method() != Some(method::PROGRESS) {
        return None;
    }
    let params: Map<String, Value> = serde_json::from_str(notice.params()?).ok()?;
    let told = ["progress", "total", "message"];
    let found =
        told.into_iter().filter_map(|name| Some((name.to_owned(), params.get(name)?.clone())));
    Some(Value::Object(found.collect()))
}

/// Returns the time until the next poll.
fn bounded(poll_ms: Option<u64>) -> Duration {
    let (shortest, longest) = defaults::TASK_POLL_RANGE;
    poll_ms.map_or(defaults::TASK_POLL, Duration::from_millis).clamp(shortest, longest)
}

fn params(id: &str) -> String {
    format!(r#"{{"taskId":{}}}"#, Value::from(id))
}

/// Returns what the answer to the call means: its end, or a new task.
fn answered(answer: &Message, survives: bool) -> Answered {
    let created =
        answer.part(MessagePart::Result).and_then(|result| ObjectMembers::one(result, "task"));
    let Some(task) = created.and_then(ObjectMembers::read) else {
        return Answered::Ended(end_of(answer));
    };
    match task.string("taskId") {
        Some(id) => {
            let poll_ms = task.get("pollInterval").and_then(|ms| ms.parse().ok());
            Answered::Task(UpstreamTask { id, poll_ms, survives })
        }
        None => Answered::Ended(end_of(answer)),
    }
}

/// Returns the end that an answer means.
fn end_of(answer: &Message) -> TaskEnd {
    match (answer.part(MessagePart::Result), answer.part(MessagePart::Error)) {
        (Some(result), _) => TaskEnd::Result(result.to_owned()),
        (None, error) => {
            let error = error.unwrap_or("{}");
            let message = ObjectMembers::read(error).and_then(|error| error.string("message"));
            TaskEnd::Error { error: error.to_owned(), message: message.unwrap_or_default() }
        }
    }
}

/// Returns the end of a task that its server no longer knows.
fn forgotten(end: TaskEnd) -> TaskEnd {
    match end {
        TaskEnd::Error { error, message } => {
            let message = format!("its server does not know the task any more: {message}");
            TaskEnd::Error { error, message }
        }
        other @ (TaskEnd::Result(_) | TaskEnd::Cancelled { .. } | TaskEnd::Unknown { .. }) => other,
    }
}

/// Returns the end of a call that failed on the way.
fn failed(error: &CallError) -> TaskEnd {
    TaskEnd::Error { error: error.to_rpc().object(), message: chain(error) }
}

fn timed_out(text: &str) -> TaskEnd {
    let error = RpcError::new(REQUEST_TIMEOUT, "REQUEST_TIMEOUT", text)
        .suggest("Give it more time: `timeout`, in milliseconds.");
    TaskEnd::Error { error: error.object(), message: text.to_owned() }
}

/// Returns what an error means that a server could not be asked about its task.
fn refused(error: CallError) -> Told {
    match error {
        // The server will not come back.
        CallError::UnknownServer { .. } | CallError::Untranslatable { .. } => {
            Told::Ended(failed(&error))
        }
        error => Told::Lost(chain(&error)),
    }
}
