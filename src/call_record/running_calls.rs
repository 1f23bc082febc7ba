//! The calls that have not ended.
//!
//! metamcp reads the name of a tool only when the call goes to a server, or an operator asks.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use slab::Slab;
use tokio::time::Instant;

use super::{CallSubject, ClientName, call_subject::cut_item};
use crate::{
    config::defaults,
    protocol::{Message, jsonrpc::MessagePart},
};

/// The calls that have not ended. There are at most as many as requests of clients.
#[derive(Debug, Default)]
pub struct RunningCalls(Mutex<Slab<(CallTarget, Instant)>>);

/// The tool and the client of a call that has not ended.
#[derive(Clone, Debug)]
pub(super) enum CallTarget {
    /// The client has named it.
    Asked(AskedTool),
    /// It is known.
    Known(Arc<CallSubject>),
}

/// A tool or a prompt, as a client asks for it.
#[derive(Clone, Debug)]
pub(super) struct AskedTool {
    /// The name, as JSON text.
    name: Option<Bytes>,
    pub(super) client: Arc<ClientName>,
}

impl AskedTool {
    /// Returns the tool or the prompt that `request` names.
    pub(super) fn of(client: &Arc<ClientName>, request: &Message) -> Self {
        let name = match request.bytes().len() < defaults::MEMORY_COUNTED_MIN {
            true => request.slice(MessagePart::Name),
            // The slice would keep the request in memory.
            false => request
                .unescaped(MessagePart::Name)
                .map(|name| serde_json::Value::from(cut_item(&name)).to_string().into()),
        };
        Self { name, client: Arc::clone(client) }
    }

    /// Returns the name.
    pub(super) fn item(&self) -> Option<String> {
        serde_json::from_slice(self.name.as_ref()?).ok()
    }
}

/// A call that has not ended.
#[derive(Clone, Debug)]
pub struct RunningCall {
    /// The tool and the client.
    pub subject: Arc<CallSubject>,
    /// The time of the request.
    pub started: Instant,
}

impl RunningCall {
    /// Returns the time since the request.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }
}

impl RunningCalls {
    /// Adds a call. Returns its key.
    pub(super) fn begin(&self, asked: AskedTool, started: Instant) -> usize {
        self.calls().insert((CallTarget::Asked(asked), started))
    }

    /// Names the subject of a call, by its key.
    pub(super) fn name(&self, key: usize, subject: Arc<CallSubject>) {
        if let Some((target, _)) = self.calls().get_mut(key) {
            *target = CallTarget::Known(subject);
        }
    }

    /// Removes a call by its key.
    pub(super) fn end(&self, key: usize) -> Option<CallTarget> {
        self.calls().try_remove(key).map(|(target, _)| target)
    }

    /// Returns all running calls, the oldest first.
    pub fn all(&self) -> Vec<RunningCall> {
        let mut calls: Vec<_> = self.calls().iter().map(|(_, call)| call.clone()).collect();
        calls.sort_by_key(|(_, started)| *started);
        let running = |(target, started)| {
            let subject = match target {
                CallTarget::Known(subject) => subject,
                CallTarget::Asked(asked) => {
                    let item = asked.item();
                    let item = item.as_deref().map(cut_item);
                    Arc::new(CallSubject::new(None, item, &asked.client, None))
                }
            };
            RunningCall { subject, started }
        };
        calls.into_iter().map(running).collect()
    }

    fn calls(&self) -> MutexGuard<'_, Slab<(CallTarget, Instant)>> {
        // Held only for statements on plain data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        call_record::{CallRecorder, CallView, Caller, PeerProtocol},
        capacity_holder::Holder,
        server_name::ServerName,
        telemetry::ring::RingQuery,
    };

    fn caller(view: CallView) -> Caller {
        let (name, holder) = (Arc::default(), Holder::unknown());
        Caller { name, holder, view, protocol: PeerProtocol::default() }
    }

    #[tokio::test]
    async fn a_call_has_the_name_that_its_client_gave_until_it_goes_to_a_server() {
        let recorder = Arc::<CallRecorder>::default();
        let git = ServerName::new("git").unwrap();
        let shown = || -> Vec<(Option<ServerName>, Option<Arc<str>>)> {
            let calls = recorder.running().all().into_iter();
            calls.map(|call| (call.subject.server.clone(), call.subject.item.clone())).collect()
        };
        let request = Message::request("tools/call", Some(r#"{"name":"git__\u006cog"}"#));
        let call = recorder.observe(|| caller(CallView::Direct), &request, None);
        assert_eq!(shown(), [(None, Some("git__log".into()))]);
        let renamed = Message::request("tools/call", Some(r#"{"name":"log"}"#));
        let mut call = call.unwrap();
        call.routed(&git, &renamed);
        assert_eq!(shown(), [(Some(git.clone()), Some("log".into()))]);
        drop(call);
        assert!(shown().is_empty());

        // They end before they go to a server. The memory of the large one is not kept.
        let large = format!(
            r#"{{"name":"git__log","arguments":{:?}}}"#,
            "x".repeat(2 * defaults::MEMORY_COUNTED_MIN)
        );
        for request in [request, Message::request("tools/call", Some(&large))] {
            drop(recorder.observe(|| caller(CallView::Direct), &request, None));
        }
        let all = RingQuery { since_ms: None, after: None, entries_max: usize::MAX };
        let records = recorder.ring().read(all, |_| true).entries;
        let targets: Vec<_> = records.iter().map(|call| (call.server(), call.item())).collect();
        let asked = (None, Some("git__log"));
        assert_eq!(targets, [(Some(&git), Some("log")), asked, asked]);
    }
}
