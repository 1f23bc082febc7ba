//! The sums of successful calls in a second with very many of them.
//!
//! The journal drops entries of a service that writes too many. So the first successes of a second
//! have entries of their own; the others are summed by client and tool, and by client or together
//! where those are too many. Failures are never summed. Pure.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use foldhash::quality::RandomState;

use super::{CallRecord, CallSubject, ClientName};
use crate::{config::defaults, server_name::ServerName};

/// An entry of the journal or the file.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "most entries are calls")]
pub enum CallEntry {
    /// One call.
    Call(CallRecord),
    /// The successful calls of one client to one tool in one second.
    Sum(Box<CallSum>),
    /// The number of records that were dropped, because the journal or the file was too slow.
    Dropped(u64),
}

/// The successful calls of one client in one second, beyond those with entries of their own. They are
/// of one tool, unless the second has too many tools; and of one client, unless it has too many
/// clients.
#[derive(Clone, Debug)]
pub struct CallSum {
    /// A record of what the calls have in common. Its number, time, method and view are those of
    /// the last one. The client is `other clients` in a second with too many clients.
    pub last: CallRecord,
    /// All calls are of the tool of the last one. In a second with too many tools, they are not.
    pub is_of_one_tool: bool,
    /// The number of calls.
    pub n_calls: u64,
    /// The sum of their durations.
    pub total: Duration,
    /// The longest duration.
    pub longest: Duration,
    /// The bytes of all requests.
    pub request_bytes: u64,
    /// The bytes of all answers.
    pub answer_bytes: u64,
}

impl CallSum {
    /// Returns the sum of no calls so far, of the tool of `last`.
    pub(super) fn empty(last: CallRecord) -> Self {
        Self {
            last,
            is_of_one_tool: true,
            n_calls: 0,
            total: Duration::ZERO,
            longest: Duration::ZERO,
            request_bytes: 0,
            answer_bytes: 0,
        }
    }

    /// Returns the average duration.
    pub(super) fn average(&self) -> Duration {
        self.total / u32::try_from(self.n_calls).unwrap_or(u32::MAX).max(1)
    }
}

/// The largest number of sums in a second, without that of [`OTHER_CLIENTS`].
const SUMS_MAX: usize = defaults::CALL_SUMS_MAX + defaults::CALL_CLIENT_SUMS_MAX;

/// The client of the calls of all clients that have no room.
const OTHER_CLIENTS: &str = "other clients";

/// The successes of the current second.
#[derive(Debug, Default)]
pub(super) struct SuccessSummary {
    /// The current second, since 1970.
    second: u64,
    /// The number of successes with entries of their own.
    n_single: usize,
    /// The sums by the address of their subject. Each one keeps its subject, so that no other
    /// subject gets that address.
    by_subject: HashMap<usize, CallSum, RandomState>,
    /// The sums of the other calls, by their names.
    by_names: BTreeMap<SumNames, CallSum>,
}

/// A client, a server and a tool; without the latter two for all tools of a client, or of all
/// clients, that have no room.
type SumNames = (Arc<ClientName>, Option<ServerName>, Option<Arc<str>>);

impl SuccessSummary {
    /// Adds the entries for a call that is read at `now_ms` to `entries`.
    pub(super) fn add(&mut self, call: &CallRecord, now_ms: u64, entries: &mut Vec<CallEntry>) {
        self.flush(now_ms, entries);
        let is_ok = call.outcome.is_ok();
        if !is_ok || self.n_single < defaults::CALL_ENTRIES_PER_SECOND {
            self.n_single += usize::from(is_ok);
            return entries.push(CallEntry::Call(call.clone()));
        }
        let n_sums = self.by_subject.len() + self.by_names.len();
        let address = Arc::as_ptr(&call.subject).addr();
        let has_sum = n_sums < defaults::CALL_SUMS_MAX || self.by_subject.contains_key(&address);
        let sum = if call.subject.is_listed() && has_sum {
            self.by_subject.entry(address).or_insert_with(|| CallSum::empty(call.clone()))
        } else {
            let names = self.names_with_room(call, n_sums);
            let (client, is_of_one_tool) =
                (Arc::clone(&names.0), names.1.is_some() || names.2.is_some());
            let sum = self.by_names.entry(names).or_insert_with(|| CallSum::empty(call.clone()));
            (sum.last.caller.name, sum.is_of_one_tool) = (client, is_of_one_tool);
            sum
        };
        sum.n_calls += 1;
        sum.total += call.duration;
        sum.longest = sum.longest.max(call.duration);
        sum.request_bytes += call.request_bytes;
        sum.answer_bytes += call.answer_bytes;
        let CallRecord { number, started_us, method, caller, .. } = &mut sum.last;
        (*number, *started_us, *method) = (call.number, call.started_us, call.method);
        caller.view.clone_from(&call.caller.view);
    }

    /// Returns the names of the sum that counts `call`, where there are `n_sums`.
    fn names_with_room(&self, call: &CallRecord, n_sums: usize) -> SumNames {
        let has_room =
            |names: &SumNames, n_sums_max| n_sums < n_sums_max || self.by_names.contains_key(names);
        let CallSubject { server, item, .. } = &*call.subject;
        let of_tool = (Arc::clone(&call.caller.name), server.clone(), item.clone());
        if has_room(&of_tool, defaults::CALL_SUMS_MAX) {
            return of_tool;
        }
        let of_client = (of_tool.0, None, None);
        if has_room(&of_client, SUMS_MAX) {
            return of_client;
        }
        (Arc::new(named(OTHER_CLIENTS)), None, None)
    }

    /// Adds the sums to `entries`, if their second is over.
    pub(super) fn flush(&mut self, now_ms: u64, entries: &mut Vec<CallEntry>) {
        if now_ms / 1000 == self.second {
            return;
        }
        (self.second, self.n_single) = (now_ms / 1000, 0);
        let by_subject = std::mem::take(&mut self.by_subject);
        let by_names = std::mem::take(&mut self.by_names);
        let sums = by_subject.into_values().chain(by_names.into_values());
        entries.extend(sums.map(|sum| CallEntry::Sum(Box::new(sum))));
    }

    /// Returns whether sums wait for the end of their second.
    pub(super) fn is_pending(&self) -> bool {
        !self.by_subject.is_empty() || !self.by_names.is_empty()
    }
}

/// Returns a client without a version.
fn named(name: &str) -> ClientName {
    ClientName { name: name.to_owned(), ..ClientName::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_record::{
        CallOutcome,
        record::tests::{record, subject},
    };

    /// Returns a call of a subject that a search finds, or does not find.
    fn call(tool: &str, is_listed: bool) -> CallRecord {
        let call = CallRecord { duration: Duration::from_millis(3), ..record("git", tool) };
        call.subject.set_listed(is_listed);
        call
    }

    #[test]
    fn successes_beyond_the_bound_of_a_second_are_summed_and_failures_never() {
        let (mut summary, call) = (SuccessSummary::default(), call("log", true));
        let add = |summary: &mut SuccessSummary, outcome, now_ms| {
            let mut entries = Vec::new();
            summary.add(&CallRecord { outcome, ..call.clone() }, now_ms, &mut entries);
            entries
        };
        for _ in 0..defaults::CALL_ENTRIES_PER_SECOND {
            let entries = add(&mut summary, CallOutcome::Ok, 1000);
            assert!(matches!(entries[..], [CallEntry::Call(_)]));
        }
        for _ in 0..5 {
            assert!(add(&mut summary, CallOutcome::Ok, 1999).is_empty());
        }
        assert!(summary.is_pending());
        assert!(matches!(
            add(&mut summary, CallOutcome::ToolError, 1999)[..],
            [CallEntry::Call(_)]
        ));
        let entries = add(&mut summary, CallOutcome::Ok, 2000);
        let [CallEntry::Sum(sum), CallEntry::Call(_)] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!((sum.n_calls, sum.average()), (5, Duration::from_millis(3)));
        assert!(!summary.is_pending());
    }

    #[test]
    fn calls_that_share_no_subject_are_summed_by_their_names() {
        let mut summary = SuccessSummary { second: 1, n_single: usize::MAX, ..Default::default() };
        let mut entries = Vec::new();
        (0..3).for_each(|_| summary.add(&call("log", false), 1000, &mut entries));
        summary.flush(2000, &mut entries);
        let [CallEntry::Sum(sum)] = &entries[..] else { panic!("{entries:?}") };
        assert!(sum.is_of_one_tool && sum.n_calls == 3);
    }

    #[test]
    fn the_number_of_sums_is_bounded() {
        let mut summary = SuccessSummary { second: 1, n_single: usize::MAX, ..Default::default() };
        let mut entries = Vec::new();
        for number in 0..2 * defaults::CALL_SUMS_MAX {
            summary.add(&call(&number.to_string(), number % 2 == 0), 1000, &mut entries);
        }
        let mixed = mixed_sums(&mut summary);
        assert_eq!(mixed, [("claude-code".to_owned(), defaults::CALL_SUMS_MAX as u64)]);
    }

    #[test]
    fn clients_that_invent_a_name_for_each_call_have_one_sum_together() {
        let mut summary = SuccessSummary { second: 1, n_single: usize::MAX, ..Default::default() };
        let mut entries = Vec::new();
        for number in 0..2 * SUMS_MAX {
            let mut call = call("log", false);
            let client = Arc::new(named(&format!("client {number}")));
            (call.subject, call.caller.name) = (subject(None, Some("log"), &client), client);
            (0..2).for_each(|_| summary.add(&call, 1000, &mut entries));
        }
        let mixed = mixed_sums(&mut summary);
        assert_eq!(mixed.len(), defaults::CALL_CLIENT_SUMS_MAX + 1);
        let others: Vec<_> = mixed.iter().filter(|(client, _)| client == OTHER_CLIENTS).collect();
        assert_eq!(others, [&(OTHER_CLIENTS.to_owned(), 2 * SUMS_MAX as u64)]);
    }

    /// Returns the client and the number of calls of each sum that names no tool, after a second
    /// that had too many tools.
    fn mixed_sums(summary: &mut SuccessSummary) -> Vec<(String, u64)> {
        let mut entries = Vec::new();
        summary.flush(2000, &mut entries);
        let sums = entries.iter().map(|entry| match entry {
            CallEntry::Sum(sum) => sum,
            entry => panic!("{entry:?}"),
        });
        let (of_one, mixed): (Vec<_>, Vec<_>) = sums.partition(|sum| sum.is_of_one_tool);
        assert_eq!(of_one.len(), defaults::CALL_SUMS_MAX);
        mixed.iter().map(|sum| (sum.last.caller.name.name.clone(), sum.n_calls)).collect()
    }
}
