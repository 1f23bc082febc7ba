//! All calls that are known, and what may become of each.
//!
//! Pure: what happened and when are arguments; what is to be forgotten is returned.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use super::{TaskOutcome, TaskRecord, TaskStatus, UpstreamTask};
use crate::{budget::MemoryReservation, protocol::task};

/// How much is known at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLimits {
    /// How many calls run.
    pub n_running: usize,
    /// How many are known, those that run included.
    pub n_tasks: usize,
    /// How large the outcomes are together, in bytes; the last one stays, however large it is.
    pub n_bytes: usize,
    /// For how long a call is known after its end, and for how long a lost server is waited for.
    pub expiry: Duration,
}

/// All calls that are known.
#[derive(Debug)]
pub struct TaskStore {
    tasks: BTreeMap<String, TaskRecord>,
    n_bytes: usize,
    /// The memory of the outcomes.
    memory: MemoryReservation,
    bounds: TaskLimits,
}

/// What happened to a call that runs.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskEvent {
    /// Its server has made a task of it.
    Accepted(UpstreamTask),
    /// Its server says that it works on it.
    Working {
        /// What else it says.
        message: Option<String>,
    },
    /// Its server waits for something.
    InputRequired {
        /// What else it says.
        message: Option<String>,
    },
    /// It has come so far.
    Progress(Value),
    /// Its server was lost; only the task of a server goes on then.
    Lost {
        /// Why.
        message: String,
    },
    /// Nothing more will come of it.
    Ended(TaskEnd),
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// With the result of the tool, JSON text.
    Result(String),
    /// With an error of the protocol, JSON text.
    Error {
        /// The error object.
        error: String,
        /// What it says.
        message: String,
    },
    /// It was cancelled.
    Cancelled {
        /// By whom.
        message: String,
    },
    /// Nobody knows.
    Unknown {
        /// Why.
        message: String,
    },
}

impl TaskStore {
    /// Returns a store of nothing.
    pub fn new(bounds: TaskLimits) -> Self {
        Self { tasks: BTreeMap::new(), n_bytes: 0, memory: MemoryReservation::default(), bounds }
    }

    /// Keeps what has ended for another time from now on.
    pub fn expire_after(&mut self, expiry: Duration) {
        self.bounds.expiry = expiry;
    }

    /// Returns for how long what has ended is kept.
    pub fn expiry(&self) -> Duration {
        self.bounds.expiry
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
            task.server == server && task.upstream.as_ref().is_some_and(|found| found.id == id)
        };
        self.tasks.values().find(is_meant)
    }

    /// Returns how many calls run.
    pub fn n_running(&self) -> usize {
        self.tasks.values().filter(|task| !task.status.has_ended()).count()
    }

    /// Tells whether another call may run.
    pub fn has_room(&self) -> bool {
        self.n_running() < self.bounds.n_running
    }

    /// Takes a call in that begins, or one of an earlier process. Returns what makes room for it.
    pub fn insert(&mut self, task: TaskRecord) -> Vec<String> {
        let id = task.id.clone();
        self.n_bytes += task.n_bytes();
        if let Some(replaced) = self.tasks.insert(id.clone(), task) {
            self.n_bytes -= replaced.n_bytes();
        }
        self.make_room(&id)
    }

    /// Takes note of what happened to the call `id` at `now_ms`. Returns what makes room for its
    /// outcome; nothing at all where it is not known or has ended before.
    pub fn apply(&mut self, id: &str, event: TaskEvent, now_ms: u64) -> Option<Vec<String>> {
        let task = self.tasks.get_mut(id).filter(|task| !task.status.has_ended())?;
        let before = (task.status, task.message.clone());
        match event {
            TaskEvent::Accepted(upstream) => task.upstream = Some(upstream),
            TaskEvent::Progress(progress) => {
                task.progress = Some(progress);
                return Some(Vec::new());
            }
            TaskEvent::Working { message } => {
                (task.status, task.message) = (TaskStatus::Working, message)
            }
            TaskEvent::InputRequired { message } => {
                (task.status, task.message) = (TaskStatus::InputRequired, message);
            }
            TaskEvent::Lost { message } => {
                (task.status, task.message) = (TaskStatus::Unreachable, Some(message));
            }
            TaskEvent::Ended(end) => {
                task.end(end, now_ms);
                self.n_bytes += task.n_bytes();
            }
        }
        if (task.status, &task.message) != (before.0, &before.1) {
            // A clock that was set back does not make a change older than the start.
            task.updated_ms = now_ms.max(task.created_ms);
        }
        Some(self.make_room(id))
    }

    /// Forgets what has ended long enough ago, and returns its ids; and when to look again.
    pub fn sweep(&mut self, now_ms: u64) -> (Vec<String>, Option<u64>) {
        let expiry_ms = u64::try_from(self.bounds.expiry.as_millis()).unwrap_or(u64::MAX);
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

    /// Lets go of what ended first until the bounds are kept. What runs stays, and so does `last`.
    fn make_room(&mut self, last: &str) -> Vec<String> {
        let mut gone = Vec::new();
        while self.tasks.len() > self.bounds.n_tasks
            || self.n_bytes > self.bounds.n_bytes
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
    /// Notes that nothing more will come of it.
    pub fn end(&mut self, end: TaskEnd, now_ms: u64) {
        (self.status, self.message, self.outcome) = match end {
            // A tool that says of itself that it has failed. Source: MCP 2025-11-25, "Tasks".
            TaskEnd::Result(result) => match task::has_failed(&result) {
                true => {
                    let message = "the tool says that it has failed: its result says why";
                    (
                        TaskStatus::Failed,
                        Some(message.to_owned()),
                        Some(TaskOutcome::Result(result)),
                    )
                }
                false => (TaskStatus::Completed, None, Some(TaskOutcome::Result(result))),
            },
            TaskEnd::Error { error, message } => {
                (TaskStatus::Failed, Some(message), Some(TaskOutcome::Error(error)))
            }
            TaskEnd::Cancelled { message } => (TaskStatus::Cancelled, Some(message), None),
            TaskEnd::Unknown { message } => (TaskStatus::UnknownOutcome, Some(message), None),
        };
        let now_ms = now_ms.max(self.created_ms);
        (self.updated_ms, self.ended_ms) = (now_ms, Some(now_ms));
    }
}

#[cfg(test)]
mod tests;
