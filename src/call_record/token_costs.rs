//! The cost in tokens of the tool lists and searches of each client, and that of the other view. Pure,
//! but for the lock.
//!
//! A model reads the tool list again in each turn, and a call is a turn. At `/meta` the list is short,
//! but each search is a further turn, and its reply stays in the context until the conversation ends.
//! So the views are compared for one conversation of average length, times their number.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use foldhash::quality::RandomState;
use serde::Serialize;

use super::{CallRecord, CallView, Caller, ClientName};
use crate::{capacity_holder::AccountMember, config::defaults, protocol::payloads::method};

/// The tools of metamcp that search. Their replies have the definitions of tools.
pub const SEARCH_TOOLS: [&str; 2] = ["mcp_discover", "search_tools"];

/// The tools of metamcp that make several calls in one turn.
pub const SCRIPT_TOOLS: [&str; 3] = ["mcp_execute", "run_chain", "execute_code"];

/// The costs of all clients, by name and view.
#[derive(Debug, Default)]
pub struct TokenCosts(Mutex<KnownCosts>);

#[derive(Debug, Default)]
struct KnownCosts {
    clients: HashMap<(Arc<ClientName>, CostView), ClientCosts, RandomState>,
    /// The number of updates, by which clients are forgotten in the order of their last one.
    n_updates: u64,
}

/// The views whose costs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CostView {
    /// All tools in the list.
    Direct,
    /// Four tools that find the others.
    Meta,
}

impl CostView {
    /// Returns the word for metrics, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Meta => "meta",
        }
    }
}

/// The lists that a client has read, and the calls that it made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ClientCosts {
    /// The bytes of the tool list that it read last.
    list_bytes: u64,
    /// The number of conversations. A session that reads the tool list begins one.
    n_conversations: u64,
    /// The number of calls of tools of servers. A script counts as one.
    n_calls: u64,
    /// The number of searches that succeeded.
    n_searches: u64,
    /// The bytes of the replies to these.
    search_bytes: u64,
    /// The sessions that read the list last. They begin no conversation if they read it again.
    sessions: VecDeque<AccountMember>,
    /// The number of the last update.
    updated: u64,
}

/// The sizes that a comparison needs, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewSizes {
    /// The tool list of the view of all servers.
    pub direct_list: u64,
    /// The tool list of the meta view.
    pub meta_list: u64,
    /// The reply to a search, for a client that made none.
    pub search_reply: u64,
}

/// The costs of one client at both views, for the calls that it made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ViewComparison {
    /// The name of the client.
    pub client: String,
    /// Its version.
    pub version: String,
    /// The view that it uses.
    pub view: CostView,
    /// The tokens of the tool list that it read.
    pub list_tokens: u64,
    /// The conversations: the sessions that read the tool list.
    pub conversations: u64,
    /// The calls of tools of servers.
    pub calls: u64,
    /// The searches that it made.
    pub searches: u64,
    /// The tokens that it read at the direct view, or would have read there.
    pub direct_tokens: u64,
    /// The tokens that it read at the meta view, or would have read there.
    pub meta_tokens: u64,
    /// The cheaper view.
    pub cheaper: CostView,
}

impl TokenCosts {
    /// Records that a client read a tool list of so many bytes.
    pub fn listed(&self, caller: &Caller, list_bytes: usize) {
        self.update(caller, |costs| {
            costs.list_bytes = list_bytes as u64;
            costs.begin(caller.holder.member);
        });
    }

    /// Records a call that has ended.
    pub(super) fn add(&self, call: &CallRecord) {
        // No model makes a turn for a prompt or a resource, or for a call of a script.
        if call.parent.is_some() || call.method != method::TOOLS_CALL {
            return;
        }
        let is_own = |tools: &[&str]| {
            call.outcome.is_ok() && call.item().is_some_and(|item| tools.contains(&item))
        };
        if call.server().is_some() || is_own(&SCRIPT_TOOLS) {
            self.update(&call.caller, |costs| costs.n_calls = costs.n_calls.saturating_add(1));
        } else if is_own(&SEARCH_TOOLS) {
            self.update(&call.caller, |costs| {
                costs.n_searches = costs.n_searches.saturating_add(1);
                costs.search_bytes = costs.search_bytes.saturating_add(call.answer_bytes);
            });
        }
    }

    fn update(&self, caller: &Caller, change: impl FnOnce(&mut ClientCosts)) {
        let view = match &caller.view {
            CallView::Direct => CostView::Direct,
            CallView::Meta => CostView::Meta,
            // One server has one list, and operators read none.
            CallView::Server(_) | CallView::Operator => return,
        };
        let mut known = self.known();
        known.n_updates += 1;
        let updated = known.n_updates;
        let key = (Arc::clone(&caller.name), view);
        if known.clients.len() >= defaults::COST_CLIENTS_MAX && !known.clients.contains_key(&key) {
            known.forget_one();
        }
        let costs = known.clients.entry(key).or_default();
        costs.updated = updated;
        change(costs);
    }

    /// Compares the views for each client, in the order of their names.
    pub fn comparisons(&self, sizes: ViewSizes) -> Vec<ViewComparison> {
        let known = self.known();
        let mut found: Vec<_> = known
            .clients
            .iter()
            .filter(|(_, costs)| costs.list_bytes > 0 || costs.n_calls > 0)
            .map(|((client, view), costs)| {
                let search_reply = known.search_reply(client).unwrap_or(sizes.search_reply);
                compare(client, *view, costs, ViewSizes { search_reply, ..sizes })
            })
            .collect();
        drop(known);
        found.sort_by(|one, other| {
            (&one.client, &one.version, one.view).cmp(&(&other.client, &other.version, other.view))
        });
        found
    }

    fn known(&self) -> MutexGuard<'_, KnownCosts> {
        // Held only for statements on plain data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownCosts {
    /// Forgets the client whose last list or call is the oldest.
    fn forget_one(&mut self) {
        let oldest = self.clients.iter().min_by_key(|(_, costs)| costs.updated);
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.clients.remove(&key);
        }
    }

    /// Returns the average size of the replies to the searches of a client, if it made some.
    fn search_reply(&self, client: &Arc<ClientName>) -> Option<u64> {
        let costs = self.clients.get(&(Arc::clone(client), CostView::Meta))?;
        costs.search_bytes.checked_div(costs.n_searches)
    }
}

impl ClientCosts {
    /// Counts the conversation of a session that reads the list, if it is a new one.
    fn begin(&mut self, session: AccountMember) {
        // The whole account is no session: each of its lists begins a conversation.
        if session != AccountMember::Whole {
            if self.sessions.contains(&session) {
                return;
            }
            if self.sessions.len() >= defaults::COST_SESSIONS_MAX {
                self.sessions.pop_front();
            }
            self.sessions.push_back(session);
        }
        self.n_conversations = self.n_conversations.saturating_add(1);
    }
}

/// Compares the views for the calls of one client.
///
/// In a conversation at the direct view, each turn reads the list. At the meta view, each turn reads a
/// short list, and each search is a turn whose reply is read in half of all turns on average. A client
/// at the direct view is taken to search once for each call, which is the most that it would.
///
/// With `n` conversations of average length, the sums of all are `n` times those of one.
fn compare(
    client: &ClientName,
    view: CostView,
    costs: &ClientCosts,
    sizes: ViewSizes,
) -> ViewComparison {
    // A client may have read its list before this service started.
    let n_conversations = costs.n_conversations.max(1);
    let [n, n_calls] = [n_conversations, costs.n_calls].map(u128::from);
    let (n_searches, search_bytes) = match view {
        CostView::Direct => (n_calls, n_calls * u128::from(sizes.search_reply)),
        CostView::Meta => (u128::from(costs.n_searches), u128::from(costs.search_bytes)),
    };
    let (direct_list, meta_list) = match (view, costs.list_bytes) {
        (_, 0) => (sizes.direct_list, sizes.meta_list),
        (CostView::Direct, measured) => (measured, sizes.meta_list),
        (CostView::Meta, measured) => (sizes.direct_list, measured),
    };
    let direct = u128::from(direct_list).saturating_mul(n_calls + n);
    let n_turns = n_calls + n_searches + n;
    let lists = u128::from(meta_list).saturating_mul(n_turns);
    let meta = lists.saturating_add(search_bytes.saturating_mul(n_turns) / (2 * n));
    let list = if view == CostView::Direct { direct_list } else { meta_list };
    ViewComparison {
        client: client.name.clone(),
        version: client.version.clone(),
        view,
        list_tokens: tokens(list.into()),
        conversations: n_conversations,
        calls: costs.n_calls,
        searches: costs.n_searches,
        direct_tokens: tokens(direct),
        meta_tokens: tokens(meta),
        cheaper: if direct <= meta { CostView::Direct } else { CostView::Meta },
    }
}

/// Returns the number of tokens of so many bytes of tool lists or replies.
fn tokens(bytes: u128) -> u64 {
    let tokens = bytes.saturating_mul(10) / u128::from(defaults::BYTES_PER_TEN_TOKENS);
    u64::try_from(tokens).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
