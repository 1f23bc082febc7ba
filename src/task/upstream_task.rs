//! The polling of a call that its server has made a task.

use std::time::Duration;

use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    time::{self, Instant},
};

use super::{
    CancelError, TaskDriver, TaskEnd, TaskEvent, UpstreamTask,
    driver::{CancelReply, TaskCommand},
};
use crate::{
    backoff::Backoff,
    call::CallError,
    capacity_holder::Holder,
    config::defaults,
    error_report::chain,
    pool::ConnectionLease,
    protocol::{
        Message, ObjectMembers, RpcError,
        jsonrpc::MessagePart,
        rpc_error::{INTERNAL_ERROR, REQUEST_TIMEOUT},
        task,
    },
};

/// The poller of one task.
struct TaskPoller<'a> {
    driver: &'a TaskDriver,
    id: &'a str,
    server: &'a str,
    upstream: UpstreamTask,
    /// The lease that keeps the connection in use.
    lease: Option<ConnectionLease>,
    /// The time until the next poll.
    pause: Duration,
    backoff: Backoff,
    /// The time at which metamcp gives up a lost server.
    lost_until: Option<Instant>,
    /// The callers that wait for the next poll; dropping a sender wakes its caller.
    waiting: Vec<oneshot::Sender<()>>,
}

/// The state of a task, as its server reports it.
enum PolledState {
    /// It continues; poll it again after this time.
    Running(TaskEvent, Duration),
    /// The server cannot be reached, or cannot answer.
    Lost(String),
    /// It has ended.
    Ended(TaskEnd),
}

impl TaskDriver {
    /// Polls the task of a server until it has ended. `lease` keeps its connection in use.
    pub(super) async fn follow(
        &self,
        id: &str,
        server: &str,
        upstream: UpstreamTask,
        lease: Option<ConnectionLease>,
        deadline: Instant,
        commands: &mut mpsc::Receiver<TaskCommand>,
    ) {
        // A task from an earlier process has no lease, and is polled at once.
        let pause = lease.as_ref().map_or(Duration::ZERO, |_| poll_interval(upstream.poll_ms));
        let (backoff, lost_until, waiting) =
            (Backoff::new(defaults::TASK_LOST_PAUSE), None, vec![]);
        let (driver, survives) = (self, upstream.survives);
        let mut poller =
            TaskPoller { driver, id, server, upstream, lease, pause, backoff, lost_until, waiting };
        loop {
            let now = Instant::now();
            if let Some(end) = poller.timed_out(now, deadline).await {
                return self.end(id, end).await;
            }
            tokio::select! {
                () = time::sleep_until((now + poller.pause).min(deadline)) => {}
                Some(command) = commands.recv() => match command {
                    TaskCommand::Poll(reply) => poller.waiting.push(reply),
                    // A task that was not cancelled may have ended meanwhile: it is polled now.
                    TaskCommand::Cancel(reply) => if poller.cancel(reply).await {
                        return;
                    },
                },
                () = self.abort.cancelled() => return poller.abandon().await,
                // It need not be awaited: the next start polls it again.
                () = self.stop.cancelled(), if survives => return,
            }
            if !poller.may_poll() {
                poller.pause = defaults::TASK_LOST_PAUSE.0;
                continue;
            }
            let state = tokio::select! {
                state = poller.poll() => state,
                () = self.abort.cancelled() => return poller.abandon().await,
                () = self.stop.cancelled(), if survives => return,
            };
            match state {
                PolledState::Running(event, pause) => poller.record_running(event, pause).await,
                PolledState::Lost(message) => poller.record_lost(message, now).await,
                PolledState::Ended(end) => return self.end(id, end).await,
            }
            poller.waiting.clear();
        }
    }
}

impl TaskPoller<'_> {
    /// Returns the end of the task if its time is over, or that of its lost server.
    async fn timed_out(&self, now: Instant, deadline: Instant) -> Option<TaskEnd> {
        let server = self.server;
        if now >= deadline {
            let _best_effort = self.cancel_upstream().await;
            let message = format!(
                "the call took longer than its timeout: server `{server}` was told to cancel it"
            );
            let error = RpcError::new(REQUEST_TIMEOUT, "REQUEST_TIMEOUT", message.clone())
                .suggest("Call the tool again with a larger `timeout`, in milliseconds.");
            return Some(TaskEnd::Error { error: error.object(), message });
        }
        self.lost_until.filter(|lost_until| now >= *lost_until).map(|_| {
            TaskEnd::Unknown(format!("server `{server}` was lost and did not come back in time"))
        })
    }

    /// Returns whether to poll the server now. A lost server is not started just to learn that it
    /// does not know the task.
    fn may_poll(&self) -> bool {
        self.lost_until.is_none()
            || self.upstream.survives
            || !self.waiting.is_empty()
            || self.driver.operators.is_connected(self.server) != Some(false)
    }

    async fn record_running(&mut self, event: TaskEvent, pause: Duration) {
        self.driver.record_event(self.id, event).await;
        if self.lost_until.take().is_some() {
            self.backoff = Backoff::new(defaults::TASK_LOST_PAUSE);
        }
        self.pause = pause;
        if self.lease.is_none() {
            self.lease = self.driver.operators.lease_of(self.server);
        }
    }

    /// Records that the server was lost; `now` is the time before the poll.
    async fn record_lost(&mut self, message: String, now: Instant) {
        self.lease = None;
        self.lost_until = self.lost_until.or(Some(now + self.driver.expiry()));
        self.driver.record_event(self.id, TaskEvent::Lost(message)).await;
        self.pause = self.backoff.pause(fastrand::f64());
    }

    /// Polls the server for the state of the task, and for the result once it has ended.
    async fn poll(&self) -> PolledState {
        self.state().await.unwrap_or_else(|error| match error {
            // The server will not come back.
            CallError::UnknownServer { .. }
            | CallError::DisabledServer { .. }
            | CallError::Untranslatable(..) => PolledState::Ended(TaskEnd::of_error(&error)),
            error => PolledState::Lost(chain(&error)),
        })
    }

    async fn state(&self) -> Result<PolledState, CallError> {
        let answer = self.request(task::GET).await?;
        let Some(task) = answer.part(MessagePart::Result).and_then(ObjectMembers::read) else {
            return Ok(self.without_state(TaskEnd::of_answer(&answer)));
        };
        let message = task.string("statusMessage");
        let poll_ms = task.get("pollInterval").and_then(|ms| ms.parse().ok());
        let pause = poll_interval(poll_ms.or(self.upstream.poll_ms));
        Ok(match task.string("status").as_deref() {
            Some("completed" | "failed") => {
                PolledState::Ended(TaskEnd::of_answer(&self.request(task::RESULT).await?))
            }
            Some("cancelled") => {
                let message = message.unwrap_or_else(|| "cancelled by its server".to_owned());
                PolledState::Ended(TaskEnd::Cancelled(message))
            }
            Some("input_required") => {
                PolledState::Running(TaskEvent::InputRequired(message), pause)
            }
            Some(_) | None => PolledState::Running(TaskEvent::Working(message), pause),
        })
    }

    /// Returns the state of a task for which the server answers with an error.
    fn without_state(&self, end: TaskEnd) -> PolledState {
        let server = self.server;
        PolledState::Ended(match end {
            // The server has an internal error, which says nothing about the task.
            TaskEnd::Error { error, message }
                if RpcError::code_of(&error) == Some(INTERNAL_ERROR) =>
            {
                return PolledState::Lost(format!(
                    "server `{server}` cannot report the state of the task: {message}"
                ));
            }
            TaskEnd::Error { error, message } => {
                let message = format!("server `{server}` no longer knows the task: {message}");
                TaskEnd::Error { error, message }
            }
            end @ (TaskEnd::Result(_) | TaskEnd::Cancelled(_) | TaskEnd::Unknown(_)) => end,
        })
    }

    /// Cancels the task for an operator. Returns whether the task has ended.
    async fn cancel(&self, reply: CancelReply) -> bool {
        let cancelled = self.cancel_upstream().await;
        let has_ended = cancelled.is_ok();
        if has_ended {
            let end = TaskEnd::Cancelled("cancelled by an operator".to_owned());
            self.driver.end(self.id, end).await;
        }
        let _gone = reply.send(cancelled);
        has_ended
    }

    /// Leaves the task because the service stops: cancels it, unless its server keeps it.
    async fn abandon(&self) {
        if self.upstream.survives {
            return;
        }
        let end = match time::timeout(defaults::DRAIN_DEADLINE / 2, self.cancel_upstream()).await {
            Ok(Ok(())) => {
                TaskEnd::Cancelled("cancelled because the service was stopped".to_owned())
            }
            Ok(Err(_)) | Err(_) => TaskEnd::stopped(),
        };
        self.driver.end(self.id, end).await;
    }

    async fn cancel_upstream(&self) -> Result<(), CancelError> {
        let answer = self.request(task::CANCEL).await.map_err(CancelError::Unasked)?;
        match TaskEnd::of_answer(&answer) {
            TaskEnd::Error { message, .. } => Err(CancelError::Refused(message)),
            TaskEnd::Result(_) | TaskEnd::Cancelled(_) | TaskEnd::Unknown(_) => Ok(()),
        }
    }

    async fn request(&self, method: &str) -> Result<Message, CallError> {
        let params = format!(r#"{{"taskId":{}}}"#, Value::from(&*self.upstream.id));
        self.driver.operators.ask_about_task(self.server, method, &params, Holder::SERVICE).await
    }
}

fn poll_interval(poll_ms: Option<u64>) -> Duration {
    let (shortest, longest) = defaults::TASK_POLL_RANGE;
    poll_ms.map_or(defaults::TASK_POLL, Duration::from_millis).clamp(shortest, longest)
}
