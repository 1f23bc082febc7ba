//! The calls that have not ended.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use foldhash::quality::RandomState;
use tokio::time::Instant;

use super::{CallRecord, CallSubject};
use crate::server_name::ServerName;

/// The calls that have not ended, by number. There are at most as many as requests of clients.
#[derive(Debug, Default)]
pub struct RunningCalls(Mutex<HashMap<u64, RunningCall, RandomState>>);

/// A call that has not ended.
#[derive(Clone, Debug)]
pub struct RunningCall {
    /// The tool and the client.
    pub subject: CallSubject,
    /// The time since the request.
    pub age: Duration,
    started: Instant,
}

impl RunningCalls {
    pub(super) fn begin(&self, call: &CallRecord, started: Instant) {
        let subject = CallSubject {
            server: call.server.clone(),
            item: call.item.clone(),
            client: Arc::clone(&call.caller.name),
        };
        let running = RunningCall { subject, age: Duration::ZERO, started };
        self.calls().insert(call.number, running);
    }

    pub(super) fn routed(&self, number: u64, server: &ServerName, item: Option<&Arc<str>>) {
        if let Some(call) = self.calls().get_mut(&number) {
            (call.subject.server, call.subject.item) = (Some(server.clone()), item.cloned());
        }
    }

    pub(super) fn end(&self, number: u64) {
        self.calls().remove(&number);
    }

    /// Returns all running calls, the oldest first.
    pub fn all(&self) -> Vec<RunningCall> {
        let now = Instant::now();
        let aged = |call: &RunningCall| RunningCall {
            age: now.saturating_duration_since(call.started),
            ..call.clone()
        };
        let mut calls: Vec<_> = self.calls().values().map(aged).collect();
        calls.sort_by_key(|call| call.started);
        calls
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<u64, RunningCall, RandomState>> {
        // Held only for statements on plain data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
