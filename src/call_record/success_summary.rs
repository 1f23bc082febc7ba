//! The sums of successful calls in a second with very many of them.
//!
//! The journal drops entries of a service that writes too many. So the first successes of a second
//! have entries of their own; the others are summed by client and tool. Failures are never summed.
//! Pure.

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
/// of one tool, unless the second has too many tools.
#[derive(Clone, Debug)]
pub struct CallSum {
    /// A record of what the calls have in common. Its number, time, method and view are those of
    /// the last one.
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

/// A client, a server and a tool; without the latter two for all tools that have no room.
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
        let has_room = self.by_subject.len() + self.by_names.len() < defaults::CALL_SUMS_MAX;
        let CallSubject { client, server, item, .. } = &*call.subject;
        let address = Arc::as_ptr(&call.subject).addr();
        let sum = if call.subject.is_listed()
            && (has_room || self.by_subject.contains_key(&address))
        {
            self.by_subject.entry(address).or_insert_with(|| CallSum::empty(call.clone()))
        } else {
            let mut names = (Arc::clone(client), server.clone(), item.clone());
            let is_of_one_tool = has_room || self.by_names.contains_key(&names);
            if !is_of_one_tool {
                (names.1, names.2) = (None, None);
            }
            let sum = self.by_names.entry(names).or_insert_with(|| CallSum::empty(call.clone()));
            sum.is_of_one_tool &= is_of_one_tool;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_record::{CallOutcome, record::tests::record};

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
        summary.flush(2000, &mut entries);
        assert_eq!(entries.len(), defaults::CALL_SUMS_MAX + 1);
        let sums: Vec<&CallSum> = entries
            .iter()
            .filter_map(|entry| if let CallEntry::Sum(sum) = entry { Some(&**sum) } else { None })
            .collect();
        let mixed: Vec<_> = sums.iter().filter(|sum| !sum.is_of_one_tool).collect();
        assert_eq!((sums.len(), mixed.len()), (defaults::CALL_SUMS_MAX + 1, 1));
        assert_eq!(mixed[0].n_calls, defaults::CALL_SUMS_MAX as u64);
    }
}
