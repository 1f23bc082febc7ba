//! All known calls, and the events of each.
//!
//! Pure: events and times are arguments, and the ids to forget are returned.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use super::{TaskOutcome, TaskRecord, TaskStatus, TaskSubject, UpstreamTask};
use crate::{memory_budget::MemoryReservation, protocol::task};

/// The limits on known calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLimits {
    /// The number of running calls.
    pub n_running: usize,
    /// The number of known calls, running ones included.
    pub n_tasks: usize,
    /// The size of all outcomes, in bytes; the last outcome stays, whatever its size.
    pub n_bytes: usize,
    /// The time for which an ended call is known, and a lost server is waited for.
    pub expiry: Duration,
}

/// All known calls.
#[derive(Debug)]
pub struct TaskStore {
    tasks: BTreeMap<String, TaskRecord>,
    n_bytes: usize,
    /// The memory of the outcomes.
    memory: MemoryReservation,
    limits: TaskLimits,
}

/// An event of a running call.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskEvent {
    /// Its server has made it a task.
    Accepted(UpstreamTask),
    /// Its server works on it, and may say so in a message.
    Working(Option<String>),
    /// Its server waits for input, and may say so in a message.
    InputRequired(Option<String>),
    /// It has made this progress.
    Progress(Value),
    /// Its server was lost for this reason; only a task of the server continues then.
    Lost(String),
    /// It has ended.
    Ended(TaskEnd),
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// The result of the tool, JSON text.
    Result(String),
    /// An error of the protocol, JSON text.
    Error {
        /// The error object.
        error: String,
        /// Its message.
        message: String,
    },
    /// It was cancelled, for this reason.
    Cancelled(String),
    /// The outcome is unknown, for this reason.
    Unknown(String),
}

impl TaskStore {
    /// Creates an empty store.
    pub fn new(limits: TaskLimits) -> Self {
        Self { tasks: BTreeMap::new(), n_bytes: 0, memory: MemoryReservation::default(), limits }
    }

    /// Changes the time for which ended calls are kept.
    pub fn expire_after(&mut self, expiry: Duration) {
        self.limits.expiry = expiry;
    }

    /// Returns the time for which ended calls are kept.
    pub fn expiry(&self) -> Duration {
        self.limits.expiry
    }

    /// Returns the call `id`.
    pub fn get(&self, id: &str) -> Option<&TaskRecord> {
        self.tasks.get(id)
    }

    /// Returns all calls, the oldest first.
    pub fn all(&self) -> Vec<&TaskRecord> {
        let mut all: Vec<&TaskRecord> = self.tasks.values().collect();
        all.sort_by(|a, b| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
        all
    }

    /// Returns the call that is the task `id` at `server`.
    pub fn upstream(&self, server: &str, id: &str) -> Option<&TaskRecord> {
        let is_meant = |task: &&TaskRecord| {
            task.subject.server() == Some(server)
                && task.upstream.as_ref().is_some_and(|found| found.id == id)
        };
        self.tasks.values().find(is_meant)
    }

    /// Returns the number of running calls.
    pub fn n_running(&self) -> usize {
        self.tasks.values().filter(|task| !task.status.has_ended()).count()
    }

    /// Returns whether another call may run.
    pub fn has_room(&self) -> bool {
        self.n_running() < self.limits.n_running
    }

    /// Inserts a new call, or one of an earlier process. Returns the ids that were dropped for it.
    pub fn insert(&mut self, task: TaskRecord) -> Vec<String> {
        let id = task.id.clone();
        self.n_bytes += task.n_bytes();
        if let Some(replaced) = self.tasks.insert(id.clone(), task) {
            self.n_bytes -= replaced.n_bytes();
        }
        self.make_room(&id)
    }

    /// Records an event of the call `id` at `now_ms`. Returns the ids that were dropped for its
    /// outcome; `None` if the call is unknown or has ended.
    pub fn apply(&mut self, id: &str, event: TaskEvent, now_ms: u64) -> Option<Vec<String>> {
        let task = self.tasks.get_mut(id).filter(|task| !task.status.has_ended())?;
        let before = (task.status, task.message.clone());
        match event {
            TaskEvent::Accepted(upstream) => task.upstream = Some(upstream),
            TaskEvent::Progress(progress) => {
                task.progress = Some(progress);
                return Some(Vec::new());
            }
            TaskEvent::Working(message) => {
                (task.status, task.message) = (TaskStatus::Working, message);
            }
            TaskEvent::InputRequired(message) => {
                (task.status, task.message) = (TaskStatus::InputRequired, message);
            }
            TaskEvent::Lost(message) => {
                (task.status, task.message) = (TaskStatus::Unreachable, Some(message));
            }
            TaskEvent::Ended(end) => {
                task.end(end, now_ms);
                self.n_bytes += task.n_bytes();
            }
        }
        if (task.status, &task.message) != (before.0, &before.1) {
            // A clock that was set back must not make a change older than the start.
            task.updated_ms = now_ms.max(task.created_ms);
        }
        Some(self.make_room(id))
    }

    /// Drops expired calls. Returns their ids, and the time of the next expiry.
    pub fn sweep(&mut self, now_ms: u64) -> (Vec<String>, Option<u64>) {
        let expiry_ms = u64::try_from(self.limits.expiry.as_millis()).unwrap_or(u64::MAX);
        let (mut over, mut next) = (Vec::new(), None::<u64>);
        for task in self.tasks.values() {
            let Some(ended) = task.ended_ms else { continue };
            let expires = ended.saturating_add(expiry_ms);
            if expires <= now_ms {
                over.push(task.id.clone());
            } else {
                next = Some(next.map_or(expires, |next| next.min(expires)));
            }
        }
        over.iter().for_each(|id| self.remove(id));
        (over, next)
    }

    fn remove(&mut self, id: &str) {
        if let Some(task) = self.tasks.remove(id) {
            self.n_bytes -= task.n_bytes();
            self.memory.shrink_to(self.n_bytes);
        }
    }

    /// Drops the calls that ended first until the limits are kept. Running calls and `last` stay.
    fn make_room(&mut self, last: &str) -> Vec<String> {
        let mut gone = Vec::new();
        while self.tasks.len() > self.limits.n_tasks
            || self.n_bytes > self.limits.n_bytes
            || self.memory.resize(self.n_bytes).is_err()
        {
            let others = self.tasks.values().filter(|task| task.id != last);
            let first = others.filter_map(|task| Some((task.ended_ms?, &task.id))).min();
            let Some((_, id)) = first else { break };
            let id = id.clone();
            self.remove(&id);
            gone.push(id);
        }
        gone
    }
}

impl TaskRecord {
    /// Records that the service was restarted while the task ran.
    pub fn restart(&mut self, now_ms: u64) {
        let message = match &self.subject {
            TaskSubject::Call { .. } => "the service was restarted while the call ran",
            TaskSubject::Script { .. } => "the service was restarted, and the script goes on",
        };
        let message = message.to_owned();
        match (&self.subject, self.survives()) {
            (_, false) => self.end(TaskEnd::Unknown(message), now_ms),
            (TaskSubject::Call { .. }, true) => {
                (self.status, self.message) = (TaskStatus::Unreachable, Some(message));
            }
            (TaskSubject::Script { .. }, true) => self.message = Some(message),
        }
    }

    /// Records the end of the task.
    pub fn end(&mut self, end: TaskEnd, now_ms: u64) {
        (self.status, self.message, self.outcome) = match end {
            // A result may say that the tool has failed. Source: MCP 2025-11-25, "Tasks".
            TaskEnd::Result(result) => {
                let message = "the tool reported a failure: its result has the reason";
                let (status, message) = match task::has_failed(&result) {
                    true => (TaskStatus::Failed, Some(message.to_owned())),
                    false => (TaskStatus::Completed, None),
                };
                (status, message, Some(TaskOutcome::Result(result)))
            }
            TaskEnd::Error { error, message } => {
                (TaskStatus::Failed, Some(message), Some(TaskOutcome::Error(error)))
            }
            TaskEnd::Cancelled(message) => (TaskStatus::Cancelled, Some(message), None),
            TaskEnd::Unknown(message) => (TaskStatus::UnknownOutcome, Some(message), None),
        };
        let now_ms = now_ms.max(self.created_ms);
        (self.updated_ms, self.ended_ms) = (now_ms, Some(now_ms));
    }
}

#[cfg(test)]
mod tests;
