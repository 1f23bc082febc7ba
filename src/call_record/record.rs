//! The record of one call.

use std::{sync::Arc, time::Duration};

use super::{CallOutcome, CallSpans, CallSubject, CallTexts, Caller, PeerProtocol};
use crate::{
    server_name::{self, ServerName},
    telemetry::{ring::RingEntry, trace_context::TraceParent},
};

/// The record of one call, made when the call ends.
#[derive(Clone, Debug)]
pub struct CallRecord {
    /// The number of the call since the start, from 1.
    pub number: u64,
    /// The time of the start, in microseconds since 1970.
    pub started_us: u64,
    /// The client.
    pub caller: Caller,
    /// The method, such as `tools/call`.
    pub method: &'static str,
    /// The server and the tool, and the client.
    pub subject: Arc<CallSubject>,
    /// The outcome.
    pub outcome: CallOutcome,
    /// The time from the request to the answer.
    pub duration: Duration,
    /// The time from the last request to the server to its answer, if it got the request.
    pub at_server: Option<Duration>,
    /// The bytes of the request.
    pub request_bytes: u64,
    /// The bytes of the answer.
    pub answer_bytes: u64,
    /// The generation of the connection that answered.
    pub generation: Option<u64>,
    /// The number of times that metamcp sent the call again.
    pub n_retries: u32,
    /// The number of the call that caused this one: of a script or a chain.
    pub parent: Option<u64>,
    /// The trace and the span of the client that caused the call, if it named them.
    pub trace: Option<TraceParent>,
    /// The arguments and the result, if its server's records have them.
    pub texts: Option<Arc<CallTexts>>,
    /// Its own spans, if spans are exported.
    pub spans: Option<Arc<CallSpans>>,
    /// The id of the client's request, cut to a bounded length, if spans are exported.
    pub request_id: Option<Arc<str>>,
    /// The protocol between metamcp and the server that got the request.
    pub server_protocol: PeerProtocol,
}

impl RingEntry for CallRecord {
    fn n_bytes(&self) -> usize {
        let cause = match &self.outcome {
            CallOutcome::Failed { cause, .. } => cause.len(),
            _ => 0,
        };
        let texts = self.texts.as_ref().map_or(0, |texts| texts.n_bytes());
        // Most records share their subject, but none needs to.
        let subject = size_of::<CallSubject>() + self.item().map_or(0, str::len);
        let spans = self.spans.as_ref().map_or(0, |_| size_of::<CallSpans>());
        size_of::<Self>() + subject + cause + texts + spans
    }

    /// Returns the time of the end.
    fn at_ms(&self) -> u64 {
        let duration_us = u64::try_from(self.duration.as_micros()).unwrap_or(u64::MAX);
        self.started_us.saturating_add(duration_us) / 1000
    }
}

impl CallRecord {
    /// Returns the server; `None` for a tool of metamcp.
    pub fn server(&self) -> Option<&ServerName> {
        self.subject.server.as_ref()
    }

    /// Returns the tool or the prompt, by its own name. A resource has none.
    pub fn item(&self) -> Option<&str> {
        self.subject.item.as_deref()
    }

    /// Returns the id of the trace, in hexadecimal digits.
    pub fn trace_id(&self) -> Option<String> {
        let of_spans = self.spans.as_deref().map(|spans| spans.trace_id);
        let trace_id = of_spans.or(self.trace.map(|trace| trace.trace_id))?;
        Some(format!("{trace_id:032x}"))
    }

    /// Returns whether `name` is the name of the tool or prompt, alone, behind its server's, or as
    /// `SERVER/NAME`.
    pub fn is_of_tool(&self, name: &str) -> bool {
        server_name::is_tool(name, self.server().map(ServerName::as_str), self.item())
    }

    /// Returns the name of the tool or prompt with its server's, as clients of all servers call it.
    pub fn target(&self) -> String {
        match (self.server(), self.item()) {
            (Some(server), Some(item)) => server.qualify(item),
            (Some(server), None) => server.to_string(),
            (None, item) => item.unwrap_or(self.method).to_owned(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        call_record::{CallView, ClientName},
        capacity_holder::{Account, AccountMember, Holder},
    };

    /// Returns a subject.
    pub(in crate::call_record) fn subject(
        server: Option<&str>,
        tool: Option<&str>,
        client: &Arc<ClientName>,
    ) -> Arc<CallSubject> {
        let server = server.map(|server| ServerName::new(server).expect("a name"));
        Arc::new(CallSubject::new(server.as_ref(), tool, client, None))
    }

    /// Returns the record of a successful call.
    pub(in crate::call_record) fn record(server: &str, tool: &str) -> CallRecord {
        let name = ClientName { name: "claude-code".to_owned(), version: "2.1.4".to_owned() };
        let name = Arc::new(name);
        let holder = Holder { account: Account::User(1000), member: AccountMember::Session(7) };
        CallRecord {
            number: 12,
            started_us: 1_795_737_600_000_000,
            caller: Caller {
                name: Arc::clone(&name),
                holder,
                view: CallView::Direct,
                protocol: PeerProtocol::default(),
            },
            method: "tools/call",
            subject: subject(Some(server), Some(tool), &name),
            outcome: CallOutcome::Ok,
            duration: Duration::from_micros(12_345),
            at_server: Some(Duration::from_micros(11_000)),
            request_bytes: 100,
            answer_bytes: 2000,
            generation: Some(3),
            n_retries: 0,
            parent: None,
            trace: None,
            texts: None,
            spans: None,
            request_id: None,
            server_protocol: PeerProtocol::default(),
        }
    }

    #[test]
    fn a_call_is_named_as_clients_of_all_servers_call_it() {
        assert_eq!(record("git", "log").target(), "git__log");
        let of = |server, tool| CallRecord {
            subject: subject(server, tool, &Arc::default()),
            ..record("git", "log")
        };
        let read = CallRecord { method: "resources/read", ..of(Some("git"), None) };
        assert_eq!(read.target(), "git");
        let own = of(None, Some("mcp_discover"));
        assert_eq!(own.target(), "mcp_discover");
    }
}
