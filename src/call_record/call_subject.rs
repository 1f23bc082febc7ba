//! The client and the tool of a call, with what is counted for both.

use std::sync::{
    Arc, Mutex, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use super::{
    ClientName,
    call_metrics::OperationMetrics,
    call_window::{CallWindow, HISTORY_SLOTS, MINUTE_SLOTS},
};
use crate::{config::defaults, redact, server_name::ServerName};

/// The client and the tool of calls, with what is counted for all of them.
///
/// A call finds its subject once, and its record keeps it.
#[derive(Debug)]
pub struct CallSubject {
    /// The server; `None` for a tool of metamcp.
    pub server: Option<ServerName>,
    /// The tool or the prompt, by its own name. A resource has none: its URI may hold a secret.
    pub item: Option<Arc<str>>,
    /// The client.
    pub client: Arc<ClientName>,
    /// The calls of the last minute.
    pub(super) minute: Mutex<CallWindow<MINUTE_SLOTS>>,
    /// The calls to the server, with those of other subjects.
    pub(super) history: Option<ServerHistory>,
    /// The metrics of successful calls of the tool, after the first one.
    pub(super) succeeded: OnceLock<Arc<OperationMetrics>>,
    /// A search finds the subject.
    is_listed: AtomicBool,
}

/// The calls to one server.
pub(super) type ServerHistory = Arc<Mutex<CallWindow<HISTORY_SLOTS>>>;

/// The names by which a subject is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SubjectNames<'a> {
    pub(super) server: Option<&'a str>,
    pub(super) item: Option<&'a str>,
    pub(super) client: &'a ClientName,
}

/// Returns the name of a tool or a prompt, cut to its bounded length in a record.
pub(super) fn cut_item(name: &str) -> &str {
    redact::cut(name, defaults::CALL_RECORD_ITEM_BYTES_MAX)
}

impl CallSubject {
    /// Returns a subject that no search finds.
    pub(super) fn new(
        server: Option<&ServerName>,
        item: Option<&str>,
        client: &Arc<ClientName>,
        history: Option<ServerHistory>,
    ) -> Self {
        Self {
            server: server.cloned(),
            item: item.map(Into::into),
            client: Arc::clone(client),
            minute: Mutex::new(CallWindow::at(0)),
            history,
            succeeded: OnceLock::new(),
            is_listed: AtomicBool::new(false),
        }
    }

    /// Returns the names by which the subject is found.
    pub(super) fn names(&self) -> SubjectNames<'_> {
        SubjectNames {
            server: self.server.as_ref().map(ServerName::as_str),
            item: self.item.as_deref(),
            client: &self.client,
        }
    }

    pub(super) fn is_listed(&self) -> bool {
        self.is_listed.load(Ordering::Relaxed)
    }

    pub(super) fn set_listed(&self, is_listed: bool) {
        self.is_listed.store(is_listed, Ordering::Relaxed);
    }
}
