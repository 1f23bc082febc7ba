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
    /// Cancelled once the server has taken `notifications/initialized`.
    pub(super) initialized: CancellationToken,
    done: CancellationToken,
    tools: OnceLock<ToolSummary>,
    pages: Mutex<HashMap<ListKind, PrefetchedPage>>,
}

/// The first page of a list, for the first reader of the list.
#[derive(Debug)]
struct PrefetchedPage {
    /// The number of changes that were announced before it was read.
    revision: u64,
    answer: Message,
}

/// The properties of a list of tools that are kept.
#[derive(Debug, PartialEq, Eq)]
struct ToolSummary {
    fingerprint: u64,
    /// The names of the tools that may be called twice.
    repeatable: HashSet<String>,
}

impl WarmUp {
    fn pages(&self) -> MutexGuard<'_, HashMap<ListKind, PrefetchedPage>> {
        // Held for single statements on plain data.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
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
        let page = self.warm_up.pages().remove(&list)?;
        (page.revision == self.lists().of(list)).then_some(page.answer)
    }

    /// Reads the first page of every list that the server has, one after the other, for at most
    /// [`defaults::WARM_UP_TIMEOUT`] in all. The server is used even if a list cannot be read.
    pub(super) async fn warm_up(self: &Arc<Self>) {
        let deadline = Instant::now() + defaults::WARM_UP_TIMEOUT;
        let server = &self.server;
        for list in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
            if !self.profile().is_some_and(|profile| profile.has(list.capability())) {
                continue;
            }
            let method = list.method();
            let revision = self.lists().of(list);
            let total = deadline.saturating_duration_since(Instant::now());
            let request = Message::request(method, None);
            let answer = match self.ask(&request, ConnectionLimits::of_total(total)).await {
                Ok(answer) => answer,
                Err(error) => {
                    tracing::warn!(
                        mcp_server = %server, method, %error,
                        "server `{server}` does not answer `{method}` before its first use: {error}"
                    );
                    break;
                }
            };
            if let Some(result) = answer.part(MessagePart::Result) {
                if list == ListKind::Tools {
                    let _set_before = self.warm_up.tools.set(ToolSummary::read(result));
                }
                self.warm_up.pages().insert(list, PrefetchedPage { revision, answer });
            } else {
                let error = self.quote(answer.part(MessagePart::Error).unwrap_or_default());
                tracing::debug!(
                    mcp_server = %server, method, error,
                    "server `{server}` refused `{method}` before its first use: {error}"
                );
            }
        }
        self.warm_up.done.cancel();
    }

    /// Accepts no new requests, for `reason`. Before the connection is established, only the task
    /// that connects decides about it.
    pub(super) fn retire_established(&self, reason: RequestFailure) {
        if self.warm_up.done.is_cancelled() {
            self.retire(reason);
        }
    }
}

/// Returns the repeatable tools of a page of `tools/list`, given the text of its result.
pub fn repeatable_tools(result: &str) -> HashSet<String> {
    ToolSummary::read(result).repeatable
}

impl ToolSummary {
    /// Reads the result of `tools/list`; malformed parts are ignored.
    fn read(result: &str) -> Self {
        #[derive(Deserialize)]
        struct Tool {
            name: String,
            annotations: Annotations,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Annotations {
            read_only_hint: bool,
            idempotent_hint: bool,
        }
        let mut hasher = DefaultHasher::new();
        result.hash(&mut hasher);
        let tools =
            ObjectMembers::one(result, "tools").and_then(|tools| all_items(tools, LIST_ITEMS_MAX));
        // A tool without annotations, or with malformed ones, is not repeatable.
        let repeatable = tools
            .into_iter()
            .flatten()
            .filter_map(|tool| serde_json::from_str::<Tool>(tool.get()).ok())
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
        let tools = ToolSummary::read(
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
    fn a_different_list_has_a_different_fingerprint() {
        let lists =
            [r#"{"tools":[]}"#, r#"{"tools":[{"name":"a"}]}"#, "no list"].map(ToolSummary::read);
        assert_eq!(lists[0], ToolSummary::read(r#"{"tools":[]}"#));
        assert_ne!(lists[0].fingerprint, lists[1].fingerprint);
        assert!(lists.iter().all(|tools| tools.repeatable.is_empty()));
    }
}
