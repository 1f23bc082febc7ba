//! The calls that continue without their callers, and the tasks that drive them.

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

use super::{TaskEnd, TaskEvent, TaskFiles, TaskLimits, TaskRecord, TaskStatus, TaskStore};
use crate::{
    call::CallError,
    capacity_holder::Holder,
    config::defaults,
    pool::ServerSlot,
    protocol::{Message, list_page::ListItem},
    view::Views,
};

/// The calls that continue without their callers.
#[derive(Debug)]
pub struct TaskDriver {
    pub(super) views: Arc<Views>,
    store: Mutex<TaskStore>,
    /// The channels for commands to running calls, by id.
    orders: Mutex<HashMap<String, mpsc::Sender<TaskCommand>>>,
    /// Grows with each change of the store.
    changes: watch::Sender<u64>,
    shelf: Arc<TaskFiles>,
    clock: Clock,
    drivers: TaskTracker,
    /// Cancelled when no more calls may start.
    pub(super) stop: CancellationToken,
    /// Cancelled when running calls are to end now.
    pub(super) hurry: CancellationToken,
}

/// A call to start.
#[derive(Debug)]
pub struct TaskWork {
    /// The server.
    pub slot: Arc<ServerSlot>,
    /// The definition of the tool.
    pub tool: ListItem,
    /// The `tools/call` request, as a client of the server would send it.
    pub request: Message,
    /// The maximum time that it may run.
    pub patience: Duration,
    /// The party that it counts for.
    pub holder: Holder,
}

/// The reason why a call does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskStartError {
    /// Too many calls run.
    #[error("{} calls run in the background already", defaults::TASKS_RUNNING_MAX)]
    Full,
    /// The service stops.
    #[error("the service is stopping")]
    Stopping,
}

/// The reason why a call was not cancelled.
#[derive(Debug, thiserror::Error)]
pub enum CancelError {
    /// Its server cannot be reached.
    #[error("its server cannot be told")]
    Unasked(#[source] CallError),
    /// Its server refuses.
    #[error("its server refuses: {0}")]
    Refused(String),
}

/// A command to a running call.
#[derive(Debug)]
pub(super) enum TaskCommand {
    /// End the call. The reply is the error if it continues.
    Cancel(oneshot::Sender<Result<(), CancelError>>),
    /// Poll the server now. The reply comes when the status is known.
    Look(oneshot::Sender<()>),
}

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

impl TaskDriver {
    /// Creates the driver of the calls of the clients of `views`, which are stored on `shelf`.
    pub fn new(views: Arc<Views>, shelf: TaskFiles) -> Arc<Self> {
        let bounds = TaskLimits {
            n_running: defaults::TASKS_RUNNING_MAX,
            n_tasks: defaults::TASKS_MAX,
            n_bytes: defaults::TASKS_BYTES_MAX,
            expiry: views.config().tasks.expiry,
        };
        Arc::new(Self {
            views,
            store: Mutex::new(TaskStore::new(bounds)),
            orders: Mutex::default(),
            changes: watch::Sender::new(0),
            shelf: Arc::new(shelf),
            clock: Clock::new(),
            drivers: TaskTracker::new(),
            stop: CancellationToken::new(),
            hurry: CancellationToken::new(),
        })
    }

    /// Restores the calls of earlier processes. Ended ones keep their outcome. Tasks of a server
    /// that may still exist are polled again. All others get an unknown outcome. Cancel safe: a
    /// later call reads the files again.
    pub async fn restore(self: &Arc<Self>) {
        let shelf = Arc::clone(&self.shelf);
        let found = tokio::task::spawn_blocking(move || shelf.read()).await.unwrap_or_default();
        let now_ms = self.clock.now_ms();
        for mut task in found {
            let id = task.id.clone();
            let survives = task.upstream.as_ref().is_some_and(|upstream| upstream.survives);
            if task.status.has_ended() {
                let gone = self.store().insert(task);
                self.forget(gone).await;
            } else if survives {
                task.status = TaskStatus::Unreachable;
                task.message = Some("the service was restarted while the call ran".to_owned());
                let server = task.server.clone();
                let gone = self.store().insert(task);
                self.forget(gone).await;
                let orders = self.expect_orders(&id);
                self.drivers.spawn(Arc::clone(self).recover(id, server, orders));
            } else {
                let message = "the service was restarted while the call ran".to_owned();
                task.end(TaskEnd::Unknown { message }, now_ms);
                let gone = self.store().insert(task);
                self.forget(gone).await;
                self.save(&id).await;
            }
        }
    }

    /// Starts a call, and returns its first state. The call is on disk by then.
    ///
    /// # Errors
    ///
    /// [`TaskStartError`] if too many calls run, or the service stops.
    ///
    /// # Cancel safety
    ///
    /// If dropped early, the call may start or not.
    pub async fn start(self: &Arc<Self>, work: TaskWork) -> Result<TaskRecord, TaskStartError> {
        if self.stop.is_cancelled() {
            return Err(TaskStartError::Stopping);
        }
        let id = Uuid::new_v4().to_string();
        let server = work.slot.name().as_str();
        let task = TaskRecord::new(id.clone(), server, &work.tool.key, self.clock.now_ms());
        let gone = {
            let mut store = self.store();
            if !store.has_room() {
                return Err(TaskStartError::Full);
            }
            store.insert(task.clone())
        };
        let (orders, (begins, begun)) = (self.expect_orders(&id), oneshot::channel());
        // The call continues, whatever happens to its caller.
        self.drivers.spawn(Arc::clone(self).run(id, work, orders, begins));
        self.changed();
        self.forget(gone).await;
        let _ended_meanwhile = begun.await;
        // Source: MCP 2025-11-25, "Tasks": a new task is "working", however soon it ends.
        Ok(task)
    }

    /// Supervises all calls until `stop`, and drops ended ones when they expire. After that,
    /// running calls may continue until `hurry`.
    ///
    /// # Cancel safety
    ///
    /// If dropped early, ended calls no longer expire, and running ones are not awaited.
    pub async fn supervise(self: Arc<Self>, stop: CancellationToken, hurry: CancellationToken) {
        let mut changes = self.changes.subscribe();
        loop {
            self.store().expire_after(self.views.config().tasks.expiry);
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
            () = hurry.cancelled() => {}
        }
        self.hurry.cancel();
        self.drivers.wait().await;
    }

    /// Applies a changed configuration from now on.
    pub fn reconfigured(&self) {
        self.changed();
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
        let found = store.get(id).filter(|task| server.is_none_or(|server| task.server == server));
        found.or_else(|| store.upstream(server?, id)).cloned()
    }

    /// Returns all calls, the oldest first.
    pub fn all(&self) -> Vec<TaskRecord> {
        self.store().all().into_iter().cloned().collect()
    }

    /// Polls the server of a lost call, and returns the state of the call after that. Cancel safe.
    pub async fn poll_server(&self, id: &str) -> Option<TaskRecord> {
        let (told, known) = oneshot::channel();
        if self.order(id, TaskCommand::Look(told)).await {
            let _ended_meanwhile = known.await;
        }
        self.get(id)
    }

    /// Waits until a call has ended, for at most `patience`, and returns its state after that.
    /// Cancel safe.
    pub async fn ended(&self, id: &str, patience: Duration) -> Option<TaskRecord> {
        let mut changes = self.changes.subscribe();
        let ended = async {
            while self.get(id).is_some_and(|task| !task.status.has_ended()) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        let _in_time = time::timeout(patience, ended).await;
        self.get(id)
    }

    /// Cancels a call, also at its server. Does nothing if it has ended. Cancel safe: the call is
    /// cancelled or not.
    ///
    /// # Errors
    ///
    /// [`CancelError`] if its server cannot be reached, or refuses; the call then continues.
    pub async fn cancel(&self, id: &str) -> Result<Option<TaskRecord>, CancelError> {
        let (told, done) = oneshot::channel();
        if self.order(id, TaskCommand::Cancel(told)).await
            && let Ok(done) = done.await
        {
            done?;
        }
        Ok(self.get(id))
    }

    /// Sends a command to a call; `false` if the call does not run.
    async fn order(&self, id: &str, order: TaskCommand) -> bool {
        let orders = {
            let all = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
            all.get(id).cloned()
        };
        match orders {
            Some(orders) => orders.send(order).await.is_ok(),
            None => false,
        }
    }

    fn expect_orders(&self, id: &str) -> mpsc::Receiver<TaskCommand> {
        let (orders, taken) = mpsc::channel(defaults::TASK_ORDERS_MAX);
        let mut all = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(id.to_owned(), orders);
        taken
    }

    /// Records an event of a call, and writes it to disk if a restart must know it.
    pub(super) async fn record_event(&self, id: &str, event: TaskEvent) {
        let is_kept = matches!(event, TaskEvent::Accepted(_) | TaskEvent::Ended(_));
        if let TaskEvent::Ended(_) = event {
            let mut all = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
            all.remove(id);
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
        let shelf = Arc::clone(&self.shelf);
        let _panicked = tokio::task::spawn_blocking(move || shelf.write(&task)).await;
        if self.get(id).is_none() {
            // The call was dropped to make room meanwhile.
            self.forget(vec![id.to_owned()]).await;
        }
    }

    async fn forget(&self, ids: Vec<String>) {
        if ids.is_empty() {
            return;
        }
        let shelf = Arc::clone(&self.shelf);
        let _panicked = tokio::task::spawn_blocking(move || shelf.remove(&ids)).await;
    }

    fn changed(&self) {
        self.changes.send_modify(|n_changes| *n_changes += 1);
    }

    fn store(&self) -> MutexGuard<'_, TaskStore> {
        // Held only for operations on plain data.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
