//! The cost in tokens of the tool lists and searches of each client, and that of the other view. Pure,
//! but for the lock.
//!
//! A model reads the tool list again in each turn, and a call is a turn. At `/meta` the list is short,
//! but each search is a further turn, and its reply stays in the context for the rest.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use foldhash::quality::RandomState;
use serde::Serialize;

use super::{CallRecord, CallView, ClientName};
use crate::config::defaults;

/// The costs of all clients, by name and view.
#[derive(Debug, Default)]
pub struct TokenCosts(Mutex<CostsByClient>);

type CostsByClient = HashMap<(Arc<ClientName>, CostView), ClientCosts, RandomState>;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCosts {
    /// The bytes of the tool list that it read last.
    pub list_bytes: u64,
    /// The number of calls of tools of servers.
    pub n_calls: u64,
    /// The number of calls of tools of metamcp, which search and describe.
    pub n_searches: u64,
    /// The bytes of the replies to these.
    pub search_bytes: u64,
}

/// The sizes that a comparison needs, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewSizes {
    /// The tool list of the view of all servers.
    pub direct_list: u64,
    /// The tool list of the meta view.
    pub meta_list: u64,
    /// The reply to a search, as long as none was measured.
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
    pub fn listed(&self, client: &Arc<ClientName>, view: &CallView, list_bytes: usize) {
        self.update(client, view, |costs| costs.list_bytes = list_bytes as u64);
    }

    /// Records a call that has ended.
    pub(super) fn add(&self, call: &CallRecord) {
        if call.parent.is_some() {
            return;
        }
        self.update(&call.caller.name, &call.caller.view, |costs| match call.server {
            Some(_) => costs.n_calls += 1,
            None => {
                costs.n_searches += 1;
                costs.search_bytes += call.answer_bytes;
            }
        });
    }

    fn update(
        &self,
        client: &Arc<ClientName>,
        view: &CallView,
        change: impl FnOnce(&mut ClientCosts),
    ) {
        let view = match view {
            CallView::Direct => CostView::Direct,
            CallView::Meta => CostView::Meta,
            // One server has one list, and operators read none.
            CallView::Server(_) | CallView::Operator => return,
        };
        let mut costs = self.costs();
        let is_full = costs.len() >= defaults::COST_CLIENTS_MAX;
        if let Some(known) = costs.get_mut(&(Arc::clone(client), view)) {
            change(known);
        } else if !is_full {
            change(costs.entry((Arc::clone(client), view)).or_default());
        }
    }

    /// Compares the views for each client, in the order of their names.
    pub fn comparisons(&self, sizes: ViewSizes) -> Vec<ViewComparison> {
        let costs = self.costs();
        let searching = costs.iter().filter(|((_, view), _)| *view == CostView::Meta);
        let (n_searches, bytes) = searching.fold((0, 0), |(n, bytes), (_, costs)| {
            (n + costs.n_searches, bytes + costs.search_bytes)
        });
        let reply = bytes.checked_div(n_searches).unwrap_or(sizes.search_reply);
        let sizes = ViewSizes { search_reply: reply, ..sizes };
        let mut found: Vec<_> = costs
            .iter()
            .filter(|(_, costs)| costs.list_bytes > 0 || costs.n_calls > 0)
            .map(|((client, view), costs)| compare(client, *view, costs, sizes))
            .collect();
        drop(costs);
        found.sort_by(|one, other| {
            (&one.client, &one.version, one.view).cmp(&(&other.client, &other.version, other.view))
        });
        found
    }

    fn costs(&self) -> MutexGuard<'_, CostsByClient> {
        // Held only for statements on plain data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Compares the views for the calls of one client.
///
/// At the direct view, each turn reads the list. At the meta view, each turn reads a short list, and
/// each search is a turn whose reply is read in half of all turns on average. A client at the direct
/// view is taken to search once for each call, which is the most that it would.
fn compare(
    client: &ClientName,
    view: CostView,
    costs: &ClientCosts,
    sizes: ViewSizes,
) -> ViewComparison {
    let n_calls = costs.n_calls;
    let n_searches = match view {
        CostView::Direct => n_calls,
        CostView::Meta => costs.n_searches,
    };
    let (direct_list, meta_list) = match (view, costs.list_bytes) {
        (_, 0) => (sizes.direct_list, sizes.meta_list),
        (CostView::Direct, measured) => (measured, sizes.meta_list),
        (CostView::Meta, measured) => (sizes.direct_list, measured),
    };
    let direct = direct_list * (n_calls + 1);
    let n_turns = n_calls + n_searches + 1;
    let meta = meta_list * n_turns + sizes.search_reply * n_searches * n_turns / 2;
    ViewComparison {
        client: client.name.clone(),
        version: client.version.clone(),
        view,
        list_tokens: tokens(if view == CostView::Direct { direct_list } else { meta_list }),
        calls: n_calls,
        searches: costs.n_searches,
        direct_tokens: tokens(direct),
        meta_tokens: tokens(meta),
        cheaper: if direct <= meta { CostView::Direct } else { CostView::Meta },
    }
}

/// Returns the number of tokens of so many bytes of tool lists or replies.
fn tokens(bytes: u64) -> u64 {
    bytes * 10 / defaults::BYTES_PER_TEN_TOKENS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_record::record::tests::record;

    const SIZES: ViewSizes =
        ViewSizes { direct_list: 200_000, meta_list: 5_600, search_reply: 2_000 };

    fn client() -> Arc<ClientName> {
        Arc::clone(&record("git", "log").caller.name)
    }

    #[test]
    fn many_tools_are_cheaper_behind_a_search_and_few_are_not() {
        let costs = TokenCosts::default();
        costs.listed(&client(), &CallView::Direct, 200_000);
        for _ in 0..3 {
            costs.add(&record("git", "log"));
        }
        let found = &costs.comparisons(SIZES)[0];
        assert_eq!((found.calls, found.list_tokens), (3, 47_619));
        // Four turns with the list; or seven with a short one, and three replies.
        assert_eq!((found.direct_tokens, found.meta_tokens), (190_476, 14_333));
        assert_eq!(found.cheaper, CostView::Meta);

        costs.listed(&client(), &CallView::Direct, 10_000);
        assert_eq!(costs.comparisons(SIZES)[0].cheaper, CostView::Direct);
    }

    #[test]
    fn the_searches_that_clients_made_replace_the_assumption() {
        let costs = TokenCosts::default();
        let mut search = record("git", "mcp_discover");
        (search.server, search.caller.view) = (None, CallView::Meta);
        search.answer_bytes = 10_000;
        costs.add(&search);
        let mut call = record("git", "log");
        call.caller.view = CallView::Meta;
        costs.add(&call);
        costs.listed(&client(), &CallView::Direct, 50_000);
        let found = costs.comparisons(SIZES);
        assert_eq!(found.len(), 2);
        assert_eq!((found[1].view, found[1].searches), (CostView::Meta, 1));
        // Three turns with the short list, and one reply of 10,000 bytes.
        assert_eq!(found[1].meta_tokens, (5_600 * 3 + 10_000 * 3 / 2) * 10 / 42);
    }

    #[test]
    fn the_number_of_clients_is_bounded() {
        let costs = TokenCosts::default();
        for number in 0..2 * defaults::COST_CLIENTS_MAX {
            let client = ClientName { name: number.to_string(), version: String::new() };
            costs.listed(&Arc::new(client), &CallView::Direct, 1);
        }
        assert_eq!(costs.comparisons(SIZES).len(), defaults::COST_CLIENTS_MAX);
    }
}
