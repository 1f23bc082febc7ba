//! The calls that go on without whoever made them, and who looks after each.

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
    config::defaults,
    holder::Holder,
    pool::ServerSlot,
    protocol::{Message, payloads::ListItem},
    view::Views,
};

/// The calls that go on without whoever made them.
#[derive(Debug)]
pub struct TaskDriver {
    pub(super) views: Arc<Views>,
    store: Mutex<TaskStore>,
    /// Where those are told something that run.
    orders: Mutex<HashMap<String, mpsc::Sender<TaskCommand>>>,
    /// Grows with each change of the store.
    changes: watch::Sender<u64>,
    shelf: Arc<TaskFiles>,
    clock: Clock,
    drivers: TaskTracker,
    /// No call begins any more.
    pub(super) stop: CancellationToken,
    /// Those that run are to end now.
    pub(super) hurry: CancellationToken,
}

/// A call that is to begin.
#[derive(Debug)]
pub struct TaskWork {
    /// The server.
    pub slot: Arc<ServerSlot>,
    /// The definition of the tool.
    pub tool: ListItem,
    /// The call, `tools/call` as a client of the server would send it.
    pub request: Message,
    /// For how long it may run.
    pub patience: Duration,
    /// The party that it counts for.
    pub holder: Holder,
}

/// Why a call does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskStartError {
    /// Too many run.
    #[error("{} calls run in the background already", defaults::TASKS_RUNNING_MAX)]
    Full,
    /// The service stops.
    #[error("the service is stopping")]
    Stopping,
}

/// Why a call goes on that was to be cancelled.
#[derive(Debug, thiserror::Error)]
pub enum CancelError {
    /// Its server cannot be told.
    #[error("its server cannot be told")]
    Unasked(#[source] CallError),
    /// Its server does not want to.
    #[error("its server refuses: {0}")]
    Refused(String),
}

/// What a call that runs is told.
#[derive(Debug)]
pub(super) enum TaskCommand {
    /// To end. The answer is why it does not.
    Cancel(oneshot::Sender<Result<(), CancelError>>),
    /// To look how it is doing, now. The answer comes when that is known.
    Look(oneshot::Sender<()>),
}

/// The time of day when the service was started, and what has passed since: it never goes back.
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
    /// Returns the calls of the clients of `views`, which are kept on `shelf`.
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

    /// Takes in the calls of earlier processes: those that had ended with what came of them, those
    /// that were tasks of a server that may still be there to be asked again, and all others with an
    /// outcome that nobody knows.
    ///
    /// # Cancel safety
    ///
    /// Safe: what is being read is read again.
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

    /// Starts a call, and returns it as it begins. It is on the disk by then.
    ///
    /// # Errors
    ///
    /// [`TaskStartError`] when too many run, or the service stops.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, the call may begin or not.
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
        // It is driven whatever becomes of whoever has asked for it.
        self.drivers.spawn(Arc::clone(self).run(id, work, orders, begins));
        self.changed();
        self.forget(gone).await;
        let _ended_meanwhile = begun.await;
        // Source: MCP 2025-11-25, "Tasks": a task begins as one that works, however soon it ends.
        Ok(task)
    }

    /// Looks after all calls until `stop`: what has ended is forgotten in time. Then those that run may
    /// go on until `hurry`.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, nothing is forgotten any more, and those that run are not waited for.
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
                // Something has ended, maybe, or another time is declared.
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

    /// Has another configuration count from now on.
    pub fn reconfigured(&self) {
        self.changed();
    }

    /// Returns how many calls run.
    pub fn n_running(&self) -> usize {
        self.store().n_running()
    }

    /// Returns for how long what has ended is kept.
    pub fn expiry(&self) -> Duration {
        self.store().expiry()
    }

    /// Returns a call by its id, ours.
    pub fn get(&self, id: &str) -> Option<TaskRecord> {
        self.store().get(id).cloned()
    }

    /// Returns a call by its id, ours or that of the server that has it.
    pub fn find(&self, server: Option<&str>, id: &str) -> Option<TaskRecord> {
        let store = self.store();
        let found = store.get(id).filter(|task| server.is_none_or(|server| task.server == server));
        found.or_else(|| store.upstream(server?, id)).cloned()
    }

    /// Returns all calls, the oldest first.
    pub fn all(&self) -> Vec<TaskRecord> {
        self.store().all().into_iter().cloned().collect()
    }

    /// Has the server of a call that was lost asked again, and returns how it is doing then.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn poll_server(&self, id: &str) -> Option<TaskRecord> {
        let (told, known) = oneshot::channel();
        if self.order(id, TaskCommand::Look(told)).await {
            let _ended_meanwhile = known.await;
        }
        self.get(id)
    }

    /// Waits until a call has ended, for at most `patience`, and returns how it is doing then.
    ///
    /// # Cancel safety
    ///
    /// Safe.
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

    /// Ends a call, at its server, too. Nothing where it has ended already.
    ///
    /// # Errors
    ///
    /// [`CancelError`] when its server is not told, or refuses; it goes on then.
    ///
    /// # Cancel safety
    ///
    /// Safe: it is cancelled or not.
    pub async fn cancel(&self, id: &str) -> Result<Option<TaskRecord>, CancelError> {
        let (told, done) = oneshot::channel();
        if self.order(id, TaskCommand::Cancel(told)).await
            && let Ok(done) = done.await
        {
            done?;
        }
        Ok(self.get(id))
    }

    /// Gives an order to a call; `false` where it does not run.
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

    /// Takes note of what happened to a call, and has it on the disk if a restart has to know it.
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
        // Who waits for it learns of it last: a service that is killed then still knows it.
        if is_seen {
            self.changed();
        }
    }

    /// Writes what is known of a call. Only who drives it does, so that the last word is on the disk.
    pub(super) async fn save(&self, id: &str) {
        let Some(task) = self.get(id) else { return };
        let shelf = Arc::clone(&self.shelf);
        let _panicked = tokio::task::spawn_blocking(move || shelf.write(&task)).await;
        if self.get(id).is_none() {
            // It had to make room meanwhile.
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
        // Held for statements on plain data.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
