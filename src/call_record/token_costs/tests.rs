//! Tests of the comparison of the views.

use proptest::prelude::*;

use super::*;
use crate::{
    call_record::{
        CallOutcome,
        record::tests::{record, subject},
    },
    fault_class::Fault,
};

const SIZES: ViewSizes = ViewSizes { direct_list: 200_000, meta_list: 5_600, search_reply: 2_000 };

/// Returns a call of a server's tool in a session, at a view.
fn call(view: &CallView, session: u64) -> CallRecord {
    let mut call = record("git", "log");
    call.caller.view = view.clone();
    call.caller.holder.member = AccountMember::Session(session);
    call
}

/// Returns a successful call of a tool of metamcp at the meta view.
fn own(tool: &str, answer_bytes: u64) -> CallRecord {
    let call = call(&CallView::Meta, 7);
    CallRecord { subject: subject(None, Some(tool), &call.caller.name), answer_bytes, ..call }
}

fn named(name: &str, call: CallRecord) -> CallRecord {
    let name = ClientName { name: name.to_owned(), version: String::new() };
    let caller = Caller { name: Arc::new(name), ..call.caller };
    CallRecord { caller, ..call }
}

#[test]
fn many_tools_are_cheaper_behind_a_search_and_few_are_not() {
    let (costs, call) = (TokenCosts::default(), call(&CallView::Direct, 7));
    costs.listed(&call.caller, 200_000);
    for _ in 0..3 {
        costs.add(&call);
    }
    let found = &costs.comparisons(SIZES)[0];
    assert_eq!((found.conversations, found.calls, found.list_tokens), (1, 3, 47_619));
    // Four turns with the list; or seven with a short one, and three replies.
    assert_eq!((found.direct_tokens, found.meta_tokens), (190_476, 14_333));
    assert_eq!(found.cheaper, CostView::Meta);

    costs.listed(&call.caller, 10_000);
    assert_eq!(costs.comparisons(SIZES)[0].cheaper, CostView::Direct);
}

#[test]
fn the_searches_that_a_client_made_replace_the_assumption_and_those_of_another_do_not() {
    let costs = TokenCosts::default();
    costs.add(&own("mcp_discover", 10_000));
    costs.add(&call(&CallView::Meta, 7));
    let direct = call(&CallView::Direct, 8);
    costs.listed(&direct.caller, 50_000);
    costs.add(&direct);
    let found = costs.comparisons(SIZES);
    assert_eq!(found.len(), 2);
    assert_eq!((found[1].view, found[1].searches), (CostView::Meta, 1));
    // Three turns with the short list, and one reply of 10,000 bytes.
    let expected = (5_600 * 3 + 10_000 * 3 / 2) * 10 / 42;
    assert_eq!((found[0].meta_tokens, found[1].meta_tokens), (expected, expected));

    for _ in 0..1000 {
        costs.add(&named("another", own("mcp_discover", 1_000_000)));
    }
    let with_other: Vec<_> = costs.comparisons(SIZES);
    assert_eq!(with_other[with_other.len() - 2..], found[..]);
}

#[test]
fn only_successful_searches_count_as_searches_and_a_script_as_one_call() {
    let costs = TokenCosts::default();
    let outcome =
        CallOutcome::Failed { code: "UNKNOWN_TOOL", fault: Fault::Offline, cause: "".into() };
    costs.add(&CallRecord { outcome: outcome.clone(), ..own("mcp_discover", 1) });
    costs.add(&CallRecord { outcome: outcome.clone(), ..own("mcp_call", 1) });
    costs.add(&CallRecord { outcome, ..own("mcp_execute", 1) });
    costs.add(&own("mcp_provision", 1));
    costs.add(&CallRecord { method: "resources/read", ..own("mcp_discover", 1) });
    assert!(costs.comparisons(SIZES).is_empty());
    costs.add(&own("mcp_execute", 1));
    costs.add(&CallRecord { parent: Some(1), ..call(&CallView::Meta, 7) });
    costs.add(&own("search_tools", 1));
    let found = &costs.comparisons(SIZES)[0];
    assert_eq!((found.calls, found.searches), (1, 1));
}

#[test]
fn a_session_that_reads_its_list_again_begins_no_further_conversation() {
    let (costs, one) = (TokenCosts::default(), call(&CallView::Direct, 1));
    for _ in 0..3 {
        costs.listed(&one.caller, 1);
    }
    assert_eq!(costs.comparisons(SIZES)[0].conversations, 1);
    for session in 0..2 * defaults::COST_SESSIONS_MAX as u64 {
        costs.listed(&call(&CallView::Direct, session + 2).caller, 1);
    }
    let found = &costs.comparisons(SIZES)[0];
    assert_eq!(found.conversations, 1 + 2 * defaults::COST_SESSIONS_MAX as u64);
    let known = costs.known();
    let sessions = known.clients.values().map(|costs| costs.sessions.len());
    assert!(sessions.max() <= Some(defaults::COST_SESSIONS_MAX));
}

#[test]
fn very_many_calls_overflow_nothing() {
    let most = ClientCosts {
        list_bytes: u64::MAX,
        n_calls: u64::MAX,
        n_searches: u64::MAX,
        search_bytes: u64::MAX,
        ..ClientCosts::default()
    };
    let sizes = ViewSizes { direct_list: u64::MAX, meta_list: u64::MAX, search_reply: u64::MAX };
    let usual = ClientCosts { list_bytes: 200_000, n_calls: 100_000_000, ..ClientCosts::default() };
    for view in [CostView::Direct, CostView::Meta] {
        assert_eq!(compare(&ClientName::default(), view, &most, sizes).meta_tokens, u64::MAX);
        let found = compare(&ClientName::default(), view, &usual, SIZES);
        assert!(found.direct_tokens > 47_000 * 100_000_000);
    }
}

#[test]
fn the_client_that_was_seen_longest_ago_is_forgotten_for_a_new_one() {
    let costs = TokenCosts::default();
    let list = |name: &str| costs.listed(&named(name, call(&CallView::Direct, 7)).caller, 1);
    list("real");
    for number in 0..2 * defaults::COST_CLIENTS_MAX {
        list(&format!("run-{number}"));
        costs.add(&named("real", call(&CallView::Direct, 7)));
    }
    list("late");
    let found = costs.comparisons(SIZES);
    assert_eq!(found.len(), defaults::COST_CLIENTS_MAX);
    assert!(["real", "late"].iter().all(|name| found.iter().any(|cost| cost.client == *name)));
    assert!(!found.iter().any(|cost| cost.client == "run-0"));
}

proptest! {
    #[test]
    fn the_advice_for_many_equal_sessions_is_that_for_one(
        n_calls in 0_u64..20,
        n_searches in 0_u64..20,
        list_bytes in 1_usize..300_000,
        answer_bytes in 0_u64..50_000,
        is_direct: bool,
        n_sessions in 1_u64..40,
    ) {
        let view = if is_direct { CallView::Direct } else { CallView::Meta };
        let (one, many) = (TokenCosts::default(), TokenCosts::default());
        let add = |costs: &TokenCosts, session: u64| {
            let call = call(&view, session);
            costs.listed(&call.caller, list_bytes);
            (0..n_calls).for_each(|_| costs.add(&call));
            (0..n_searches).for_each(|_| costs.add(&own("mcp_discover", answer_bytes)));
        };
        add(&one, 0);
        (0..n_sessions).for_each(|session| add(&many, session));
        let found = |costs: &TokenCosts| {
            let all = costs.comparisons(SIZES);
            all.into_iter().find(|cost| (cost.view == CostView::Direct) == is_direct).unwrap()
        };
        let (one, many) = (found(&one), found(&many));
        prop_assert_eq!(many.cheaper, one.cheaper);
        prop_assert_eq!((many.conversations, one.conversations), (n_sessions, 1));
        for (of_many, of_one) in
            [(many.direct_tokens, one.direct_tokens), (many.meta_tokens, one.meta_tokens)]
        {
            // Each is rounded once to bytes, and once to tokens.
            let times = of_one * n_sessions;
            prop_assert!((times..=times + 2 * n_sessions).contains(&of_many), "{of_many} {times}");
        }
    }
}
