//! The lists that are read once before a client uses a connection to an upstream.
//!
//! An aggregator fills its maps from names to servers when it is asked for its lists, and starts
//! its own servers then. Asked by several clients at once, it starts some of them twice.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use serde::Deserialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Connection, ConnectionLimits, RequestFailure};
use crate::{
    config::defaults,
    protocol::{
        Message, ObjectMembers,
        json_array::{LIST_ITEMS_MAX, all_items},
        jsonrpc::MessagePart,
        list_page::ListKind,
    },
};

/// The progress of a new connection, and the lists that were read ahead.
#[derive(Debug, Default)]
pub(super) struct WarmUp {
    initialized: CancellationToken,
    done: CancellationToken,
    tools: OnceLock<Tools>,
    ahead: Mutex<HashMap<ListKind, Ahead>>,
}

/// The first page of a list, for the first reader of the list.
#[derive(Debug)]
struct Ahead {
    /// The number of changes that were announced before it was read.
    revision: u64,
    answer: Message,
}

/// The properties of a list of tools that are kept.
#[derive(Debug, PartialEq, Eq)]
struct Tools {
    fingerprint: u64,
    /// The names of the tools that may be called twice.
    repeatable: HashSet<String>,
}

impl WarmUp {
    /// Waits until the server has taken `notifications/initialized`. Cancel safe.
    pub(super) async fn initialized(&self) {
        self.initialized.cancelled().await;
    }

    fn ahead(&self) -> MutexGuard<'_, HashMap<ListKind, Ahead>> {
        // Held for single statements on plain data.
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Returns a number that differs if the tools differ, once they were read. Only the tools of an
    /// upstream are read before a client uses its connection.
    pub fn tools_fingerprint(&self) -> Option<u64> {
        self.warm_up.tools.get().map(|tools| tools.fingerprint)
    }

    /// Returns whether the server says that calling `tool` twice has the effect of calling it once.
    pub fn is_repeatable(&self, tool: &str) -> bool {
        self.warm_up.tools.get().is_some_and(|tools| tools.repeatable.contains(tool))
    }

    /// Takes the answer to the first request for `list`, which was sent before a client used the
    /// connection, unless the list has changed since. Only upstreams are asked in advance.
    pub fn take_prefetched(&self, list: ListKind) -> Option<Message> {
        let ahead = self.warm_up.ahead().remove(&list)?;
        (ahead.revision == self.lists().of(list)).then_some(ahead.answer)
    }

    /// Records that the handshake is done.
    pub(super) fn note_initialized(&self) {
        self.warm_up.initialized.cancel();
    }

    /// Reads the first page of every list that the server has, one after the other, for at most
    /// [`defaults::WARM_UP_TIMEOUT`] in all. The server is used even if a list cannot be read.
    pub(super) async fn warm_up(self: &Arc<Self>) {
        let ends = Instant::now() + defaults::WARM_UP_TIMEOUT;
        for list in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
            if !self.profile().is_some_and(|profile| profile.has(list.capability())) {
                continue;
            }
            let method = list.method();
            let revision = self.lists().of(list);
            match self.read_ahead(list, ends).await {
                Ok(answer) => match answer.part(MessagePart::Result) {
                    Some(result) => {
                        if list == ListKind::Tools {
                            let _set_before = self.warm_up.tools.set(Tools::read(result));
                        }
                        self.warm_up.ahead().insert(list, Ahead { revision, answer });
                    }
                    None => {
                        let error = self.quote(answer.part(MessagePart::Error).unwrap_or_default());
                        tracing::debug!(mcp_server = %self.server, method, error, "list not read ahead");
                    }
                },
                Err(error) => {
                    tracing::warn!(mcp_server = %self.server, method, %error, "list not read ahead");
                    break;
                }
            }
        }
        self.warm_up.done.cancel();
    }

    async fn read_ahead(
        self: &Arc<Self>,
        list: ListKind,
        ends: Instant,
    ) -> Result<Message, RequestFailure> {
        let total = ends.saturating_duration_since(Instant::now());
        let limits = ConnectionLimits { silence: total, total };
        self.ask(&Message::request(list.method(), None), limits).await
    }

    /// Accepts no new requests, for `reason`. Before the connection is established, only the task
    /// that connects decides about it.
    pub(super) fn abandon(&self, reason: RequestFailure) {
        if self.warm_up.done.is_cancelled() {
            self.retire(reason);
        }
    }
}

/// Returns the repeatable tools of a page of `tools/list`, given the text of its result.
pub fn repeatable_tools(result: &str) -> HashSet<String> {
    Tools::read(result).repeatable
}

impl Tools {
    /// Reads the result of `tools/list`; malformed parts are ignored.
    fn read(result: &str) -> Self {
        #[derive(Deserialize)]
        struct Tool {
            name: String,
            annotations: Annotations,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        #[derive(Default)]
        struct Annotations {
            read_only_hint: bool,
            idempotent_hint: bool,
        }
        let mut hasher = DefaultHasher::new();
        result.hash(&mut hasher);
        let tools =
            ObjectMembers::one(result, "tools").and_then(|tools| all_items(tools, LIST_ITEMS_MAX));
        // A tool without annotations, or with malformed ones, is not repeatable.
        let tools = tools
            .into_iter()
            .flatten()
            .filter_map(|tool| serde_json::from_str::<Tool>(tool.get()).ok());
        let repeatable = tools
            .filter(|tool| tool.annotations.read_only_hint || tool.annotations.idempotent_hint)
            .map(|tool| tool.name)
            .collect();
        Self { fingerprint: hasher.finish(), repeatable }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_repeatable_only_if_its_server_says_so() {
        let tools = Tools::read(
            r#"{"tools":[
                {"name":"read","annotations":{"readOnlyHint":true,"title":"x"}},
                {"name":"set","annotations":{"idempotentHint":true,"readOnlyHint":false}},
                {"name":"add","annotations":{"readOnlyHint":false}},
                {"name":"plain"},
                {"name":"null","annotations":null},
                {"name":"odd","annotations":{"readOnlyHint":"yes"}},
                7
            ],"nextCursor":"2"}"#,
        );
        assert_eq!(tools.repeatable, HashSet::from(["read".to_owned(), "set".to_owned()]));
    }

    #[test]
    fn another_list_has_another_fingerprint() {
        let lists = [r#"{"tools":[]}"#, r#"{"tools":[{"name":"a"}]}"#, "no list"].map(Tools::read);
        assert_eq!(lists[0], Tools::read(r#"{"tools":[]}"#));
        assert_ne!(lists[0].fingerprint, lists[1].fingerprint);
        assert!(lists.iter().all(|tools| tools.repeatable.is_empty()));
    }
}
