//! Results that were complete at once although their clients asked for a task.
//!
//! A client of 2025-11-25 that asks for a task gets one. A server of 2026-07-28 decides itself
//! whether a call becomes a task. If it answers at once, the answer is kept here under a new id
//! until the client's `ttl` ends, within bounds. The oldest task makes room for new ones. Any
//! client that knows the id may fetch the result; the id cannot be guessed.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{config::defaults, memory_budget::MemoryReservation, protocol::task, time_format};

/// The finished tasks of one server.
#[derive(Debug, Default)]
pub struct FinishedTasks(Mutex<KeptTasks>);

#[derive(Debug, Default)]
struct KeptTasks {
    tasks: HashMap<String, Entry>,
    n_bytes: usize,
    /// The reserved memory of the results.
    memory: MemoryReservation,
    /// The number of tasks ever kept.
    n_kept: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    ends: Instant,
    task: FinishedTask,
}

/// A task that finished before its client knew of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedTask {
    /// The task's status, JSON text as defined by 2025-11-25.
    pub task: String,
    /// The result of the call, JSON text.
    pub result: String,
}

impl FinishedTasks {
    /// Keeps the `result` of a call, JSON text, for `ttl`, and returns its task.
    pub fn keep(&self, result: String, ttl: Option<Duration>, now: Instant) -> FinishedTask {
        let ttl = ttl
            .unwrap_or(defaults::FINISHED_TASK_TTL)
            .clamp(defaults::FINISHED_TASK_TTL_MIN, defaults::FINISHED_TASK_TTL_MAX);
        let id = Uuid::new_v4().to_string();
        let at = time_format::rfc3339_of(SystemTime::now());
        let task = json!({
            "taskId": id,
            // Source: MCP 2025-11-25, "Tasks", "Task Status".
            "status": if task::has_failed(&result) { "failed" } else { "completed" },
            "createdAt": at,
            "lastUpdatedAt": at,
            "ttl": u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
        });
        let task = FinishedTask { task: task.to_string(), result };
        let mut kept = self.kept();
        kept.expire(now);
        kept.n_kept += 1;
        kept.n_bytes += task.n_bytes();
        let entry = Entry { number: kept.n_kept, ends: now + ttl, task: task.clone() };
        kept.tasks.insert(id, entry);
        kept.make_room();
        task
    }

    /// Returns the task `id`, if it is kept here and has not expired.
    pub fn get(&self, id: &str, now: Instant) -> Option<FinishedTask> {
        let mut kept = self.kept();
        kept.expire(now);
        kept.tasks.get(id).map(|entry| entry.task.clone())
    }

    fn kept(&self) -> MutexGuard<'_, KeptTasks> {
        // Held only for statements on plain data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptTasks {
    fn expire(&mut self, now: Instant) {
        self.tasks.retain(|_, entry| entry.ends > now);
        self.n_bytes = self.tasks.values().map(|entry| entry.task.n_bytes()).sum();
        self.memory.shrink_to(self.n_bytes);
    }

    /// Removes the oldest tasks until the bounds are met. The last one stays, whatever its size.
    fn make_room(&mut self) {
        while self.tasks.len() > defaults::FINISHED_TASKS_MAX
            || (!self.reserve_memory() && self.tasks.len() > 1)
        {
            let oldest = self.tasks.iter().min_by_key(|(_, entry)| entry.number);
            let Some(id) = oldest.map(|(id, _)| id.clone()) else { return };
            let gone = self.tasks.remove(&id);
            self.n_bytes -= gone.map_or(0, |entry| entry.task.n_bytes());
        }
    }

    /// Reserves the memory of all tasks. Returns `false` if there is not enough.
    fn reserve_memory(&mut self) -> bool {
        self.n_bytes <= defaults::FINISHED_TASKS_BYTES_MAX
            && self.memory.resize(self.n_bytes).is_ok()
    }
}

impl FinishedTask {
    fn n_bytes(&self) -> usize {
        self.task.len() + self.result.len()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn id(task: &FinishedTask) -> String {
        let task: Value = serde_json::from_str(&task.task).expect("JSON");
        task["taskId"].as_str().expect("a string").to_owned()
    }

    fn kept(finished: &FinishedTasks, result: &str, ttl: Option<Duration>, now: Instant) -> String {
        id(&finished.keep(result.to_owned(), ttl, now))
    }

    #[test]
    fn a_finished_task_is_kept_for_its_ttl_within_bounds() {
        let (finished, now) = (FinishedTasks::default(), Instant::now());
        let minute = Duration::from_secs(60);
        for (ttl, lasts) in [
            (None, defaults::FINISHED_TASK_TTL),
            (Some(minute), minute),
            (Some(Duration::ZERO), defaults::FINISHED_TASK_TTL_MIN),
            (Some(Duration::from_secs(1 << 40)), defaults::FINISHED_TASK_TTL_MAX),
        ] {
            let id = kept(&finished, r#"{"content":[]}"#, ttl, now);
            let last = now + lasts - Duration::from_millis(1);
            let found = finished.get(&id, last).expect("it has not expired");
            assert_eq!(found.result, r#"{"content":[]}"#);
            assert_eq!(finished.get(&id, now + lasts), None, "{ttl:?}");
        }
        assert_eq!(finished.get("other", now), None);
    }

    #[test]
    fn the_task_of_a_failed_tool_has_the_status_failed() {
        let (finished, now) = (FinishedTasks::default(), Instant::now());
        for (result, status) in [
            (r#"{"isError":true}"#, "failed"),
            (r#"{"isError":false}"#, "completed"),
            ("7", "completed"),
        ] {
            let task = finished.keep(result.to_owned(), None, now).task;
            let task: Value = serde_json::from_str(&task).expect("JSON");
            assert_eq!(task["status"], status, "{result}");
            assert_eq!(task["createdAt"], task["lastUpdatedAt"]);
            assert_eq!(task["createdAt"].as_str().map(str::len), Some(24), "{task}");
        }
    }

    #[test]
    fn the_oldest_finished_task_is_removed_first() {
        let (finished, now) = (FinishedTasks::default(), Instant::now());
        let first = kept(&finished, "{}", None, now);
        let second = kept(&finished, "{}", None, now);
        for _ in 2..=defaults::FINISHED_TASKS_MAX {
            kept(&finished, "{}", None, now);
        }
        assert_eq!(finished.get(&first, now), None);
        assert!(finished.get(&second, now).is_some());

        let large = "x".repeat(defaults::FINISHED_TASKS_BYTES_MAX);
        let alone = kept(&finished, &large, None, now);
        assert_eq!(finished.get(&second, now), None);
        assert!(finished.get(&alone, now).is_some(), "one may be as large as any message");
        kept(&finished, "{}", None, now);
        assert_eq!(finished.get(&alone, now), None);
    }
}
