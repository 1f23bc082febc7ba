//! The calls and scripts that continue without their callers, and the tasks that drive them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use super::{
    TaskEnd, TaskEvent, TaskFiles, TaskLimits, TaskRecord, TaskStartError, TaskStore, TaskWork,
};
use crate::{
    call::CallError,
    config::defaults,
    reconfigure::{ConfigChange, Reconfigure},
    view::OperatorView,
};

/// The calls and scripts that continue without their callers.
#[derive(Debug)]
pub struct TaskDriver {
    pub(super) operators: Arc<OperatorView>,
    store: Mutex<TaskStore>,
    /// The channels for commands to running calls, by id.
    commands: Mutex<HashMap<String, mpsc::Sender<TaskCommand>>>,
    /// Grows with each change of the store.
    changes: watch::Sender<u64>,
    files: Arc<TaskFiles>,
    clock: Clock,
    drivers: TaskTracker,
    /// Cancelled when no more calls may start.
    pub(super) stop: CancellationToken,
    /// Cancelled when running calls are to end now.
    pub(super) abort: CancellationToken,
}

/// The reason why a call was not cancelled.
#[derive(Debug, thiserror::Error)]
pub enum CancelError {
    /// Its server cannot be reached.
    #[error("the server of the call cannot be reached")]
    Unasked(#[source] CallError),
    /// Its server refuses.
    #[error("the server of the call refuses: {0}")]
    Refused(String),
}

/// A command to a running call.
#[derive(Debug)]
pub(super) enum TaskCommand {
    /// End the call. The reply is the error if it continues.
    Cancel(CancelReply),
    /// Poll the server now. The sender is dropped when the status is known.
    Poll(oneshot::Sender<()>),
}

/// The sender of the reply to [`TaskCommand::Cancel`].
pub(super) type CancelReply = oneshot::Sender<Result<(), CancelError>>;

/// The time of day at the start of the service, plus the time elapsed since: it never goes back.
#[derive(Clone, Copy, Debug)]
struct Clock {
    started_ms: u64,
    since: Instant,
}

impl Clock {
    fn new() -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self { started_ms: millis(since_1970.unwrap_or_default()), since: Instant::now() }
    }

    fn now_ms(self) -> u64 {
        self.started_ms + millis(self.since.elapsed())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 2)
}

impl Reconfigure for TaskDriver {
    /// Wakes [`TaskDriver::supervise`], which reads the configuration again.
    fn reconfigure(&self, _change: &ConfigChange) {
        self.changed();
    }
}

impl TaskDriver {
    /// Creates the driver of calls through `operators`, which are stored in `files`.
    pub fn new(operators: Arc<OperatorView>, files: TaskFiles) -> Arc<Self> {
        let bounds = TaskLimits {
            n_running: defaults::TASKS_RUNNING_MAX,
            n_tasks: defaults::TASKS_MAX,
            n_bytes: defaults::TASKS_BYTES_MAX,
            expiry: operators.config().tasks.expiry,
        };
        Arc::new(Self {
            operators,
            store: Mutex::new(TaskStore::new(bounds)),
            commands: Mutex::default(),
            changes: watch::Sender::new(0),
            files: Arc::new(files),
            clock: Clock::new(),
            drivers: TaskTracker::new(),
            stop: CancellationToken::new(),
            abort: CancellationToken::new(),
        })
    }

    /// Restores the tasks of earlier processes. Ended ones keep their outcome. Tasks of a server
    /// that may still exist are polled again, and scripts go on from their records. All others get
    /// an unknown outcome. Cancel safe: a later call reads the files again.
    pub async fn restore(self: &Arc<Self>) {
        let files = Arc::clone(&self.files);
        let found = tokio::task::spawn_blocking(move || files.read()).await.unwrap_or_default();
        let now_ms = self.clock.now_ms();
        for mut task in found {
            let (id, subject) = (task.id.clone(), task.subject.clone());
            let had_ended = task.status.has_ended();
            let survives = !had_ended && task.survives();
            if !had_ended {
                task.restart(now_ms);
            }
            let gone = self.store().insert(task);
            self.forget(gone).await;
            if survives {
                let commands = self.open_commands(&id);
                self.drivers.spawn(Arc::clone(self).recover(id, subject, commands));
            } else if !had_ended {
                self.save(&id).await;
            }
        }
    }

    /// Starts a task, and returns its first state. The task is on disk by then.
    ///
    /// # Errors
    ///
    /// [`TaskStartError`] if too many tasks run, the service stops, or a script cannot be recorded.
    ///
    /// # Cancel safety
    ///
    /// If dropped early, the task may start or not.
    pub async fn start(self: &Arc<Self>, mut work: TaskWork) -> Result<TaskRecord, TaskStartError> {
        if self.stop.is_cancelled() {
            return Err(TaskStartError::Stopping);
        }
        if !self.store().has_room() {
            return Err(TaskStartError::Full);
        }
        let id = Uuid::new_v4().to_string();
        let subject = work.subject().await?;
        let task = TaskRecord::new(id.clone(), subject, self.clock.now_ms());
        let gone = {
            let mut store = self.store();
            // Another task may have started meanwhile.
            if !store.has_room() {
                return Err(TaskStartError::Full);
            }
            store.insert(task.clone())
        };
        let (commands, (saved, is_saved)) = (self.open_commands(&id), oneshot::channel());
        // The call continues, whatever happens to its caller.
        self.drivers.spawn(Arc::clone(self).run(id, work, commands, saved));
        self.changed();
        self.forget(gone).await;
        let _ended_meanwhile = is_saved.await;
        // Source: MCP 2025-11-25, "Tasks": a new task is "working", however soon it ends.
        Ok(task)
    }

    /// Supervises all calls until `stop`, and drops ended ones when they expire. After that,
    /// running calls may continue until `abort`.
    ///
    /// # Cancel safety
    ///
    /// If dropped early, ended calls no longer expire, and running ones are not awaited.
    pub async fn supervise(self: Arc<Self>, stop: CancellationToken, abort: CancellationToken) {
        let mut changes = self.changes.subscribe();
        loop {
            self.store().expire_after(self.operators.config().tasks.expiry);
            let (over, next_ms) = self.store().sweep(self.clock.now_ms());
            self.forget(over).await;
            let next = async {
                match next_ms {
                    Some(next_ms) => {
                        let left = next_ms.saturating_sub(self.clock.now_ms()).max(1);
                        time::sleep(Duration::from_millis(left)).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = next => {}
                // A call may have ended, or the expiry may have changed.
                _ = changes.changed() => {}
            }
        }
        self.stop.cancel();
        self.drivers.close();
        tokio::select! {
            () = self.drivers.wait() => return,
            () = abort.cancelled() => {}
        }
        self.abort.cancel();
        self.drivers.wait().await;
    }

    /// Returns the number of running calls.
    pub fn n_running(&self) -> usize {
        self.store().n_running()
    }

    /// Returns the time for which ended calls are kept.
    pub fn expiry(&self) -> Duration {
        self.store().expiry()
    }

    /// Returns a call by metamcp's id.
    pub fn get(&self, id: &str) -> Option<TaskRecord> {
        self.store().get(id).cloned()
    }

    /// Returns a call by metamcp's id, or by its id at `server`.
    pub fn find(&self, server: Option<&str>, id: &str) -> Option<TaskRecord> {
        let store = self.store();
        let found =
            store.get(id).filter(|task| server.is_none() || task.subject.server() == server);
        found.or_else(|| store.upstream(server?, id)).cloned()
    }

    /// Returns all calls, the oldest first.
    pub fn all(&self) -> Vec<TaskRecord> {
        self.store().all().into_iter().cloned().collect()
    }

    /// Polls the server of a lost call, and returns the state of the call after that. Cancel safe.
    pub async fn poll_server(&self, id: &str) -> Option<TaskRecord> {
        let (reply, known) = oneshot::channel();
        if self.send(id, TaskCommand::Poll(reply)).await {
            let _dropped = known.await;
        }
        self.get(id)
    }

    /// Waits until a call has ended, for at most `timeout`, and returns its state after that.
    /// Cancel safe.
    pub async fn ended(&self, id: &str, timeout: Duration) -> Option<TaskRecord> {
        let mut changes = self.changes.subscribe();
        let ended = async {
            while self.get(id).is_some_and(|task| !task.status.has_ended()) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        let _in_time = time::timeout(timeout, ended).await;
        self.get(id)
    }

    /// Cancels a call, also at its server. Does nothing if it has ended. Cancel safe: the call is
    /// cancelled or not.
    ///
    /// # Errors
    ///
    /// [`CancelError`] if its server cannot be reached, or refuses; the call then continues.
    pub async fn cancel(&self, id: &str) -> Result<Option<TaskRecord>, CancelError> {
        let (reply, done) = oneshot::channel();
        if self.send(id, TaskCommand::Cancel(reply)).await
            && let Ok(done) = done.await
        {
            done?;
        }
        Ok(self.get(id))
    }

    /// Sends a command to a call; `false` if the call does not run.
    async fn send(&self, id: &str, command: TaskCommand) -> bool {
        let commands = self.commands().get(id).cloned();
        match commands {
            Some(commands) => commands.send(command).await.is_ok(),
            None => false,
        }
    }

    fn open_commands(&self, id: &str) -> mpsc::Receiver<TaskCommand> {
        let (commands, taken) = mpsc::channel(defaults::TASK_COMMANDS_MAX);
        self.commands().insert(id.to_owned(), commands);
        taken
    }

    pub(super) async fn end(&self, id: &str, end: TaskEnd) {
        self.record_event(id, TaskEvent::Ended(end)).await;
    }

    /// Records an event of a call, and writes it to disk if a restart must know it.
    pub(super) async fn record_event(&self, id: &str, event: TaskEvent) {
        let is_kept = matches!(event, TaskEvent::Accepted(_) | TaskEvent::Ended(_));
        if let TaskEvent::Ended(_) = event {
            self.commands().remove(id);
        }
        let is_seen = !matches!(event, TaskEvent::Progress(_));
        let gone = self.store().apply(id, event, self.clock.now_ms());
        self.forget(gone.unwrap_or_default()).await;
        if is_kept {
            self.save(id).await;
        }
        // Waiters are notified last: a service that is killed after that still knows the event.
        if is_seen {
            self.changed();
        }
    }

    /// Writes a call to disk. Only its driver does so, and so the last state is on disk.
    pub(super) async fn save(&self, id: &str) {
        let Some(task) = self.get(id) else { return };
        let files = Arc::clone(&self.files);
        let _panicked = tokio::task::spawn_blocking(move || files.write(&task)).await;
        if self.get(id).is_none() {
            // The call was dropped to make room meanwhile.
            self.forget(vec![id.to_owned()]).await;
        }
    }

    async fn forget(&self, ids: Vec<String>) {
        if ids.is_empty() {
            return;
        }
        let files = Arc::clone(&self.files);
        let _panicked = tokio::task::spawn_blocking(move || files.remove(&ids)).await;
    }

    fn changed(&self) {
        self.changes.send_modify(|n_changes| *n_changes += 1);
    }

    fn commands(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<TaskCommand>>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self) -> MutexGuard<'_, TaskStore> {
        // Held only for operations on plain data.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
