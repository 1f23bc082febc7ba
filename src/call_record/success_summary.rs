//! The sums of successful calls in a second with very many of them.
//!
//! The journal drops entries of a service that writes too many. So the first successes of a second
//! have entries of their own; the others are summed by client and tool. Failures are never summed.
//! Pure.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{CallRecord, ClientName};
use crate::{config::defaults, server_name::ServerName};

/// An entry of the journal or the file.
#[derive(Clone, Debug)]
pub enum CallEntry {
    /// One call.
    Call(Arc<CallRecord>),
    /// The successful calls of one client to one tool in one second.
    Sum(Box<CallSum>),
    /// The number of records that were dropped, because the journal or the file was too slow.
    Dropped(u64),
}

/// The successful calls of one client in one second, beyond those with entries of their own. They are
/// of one tool, unless the second has too many tools.
#[derive(Clone, Debug)]
pub struct CallSum {
    /// The last of the calls, for what all of them have in common.
    pub last: Arc<CallRecord>,
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
    pub(super) fn empty(last: Arc<CallRecord>) -> Self {
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
    sums: BTreeMap<SumKey, CallSum>,
}

type SumKey = (Arc<ClientName>, Option<ServerName>, Option<Arc<str>>);

impl SuccessSummary {
    /// Adds the entries for a call that is read at `now_ms` to `entries`.
    pub(super) fn add(&mut self, call: Arc<CallRecord>, now_ms: u64, entries: &mut Vec<CallEntry>) {
        self.flush(now_ms, entries);
        if !call.outcome.is_ok() {
            return entries.push(CallEntry::Call(call));
        }
        if self.n_single < defaults::CALL_ENTRIES_PER_SECOND {
            self.n_single += 1;
            return entries.push(CallEntry::Call(call));
        }
        let mut key = (Arc::clone(&call.caller.name), call.server.clone(), call.item.clone());
        let is_of_one_tool =
            self.sums.len() < defaults::CALL_SUMS_MAX || self.sums.contains_key(&key);
        if !is_of_one_tool {
            // Too many tools for one second: by client only.
            (key.1, key.2) = (None, None);
        }
        let sum = self.sums.entry(key).or_insert_with(|| CallSum::empty(Arc::clone(&call)));
        sum.is_of_one_tool &= is_of_one_tool;
        sum.n_calls += 1;
        sum.total += call.duration;
        sum.longest = sum.longest.max(call.duration);
        sum.request_bytes += call.request_bytes;
        sum.answer_bytes += call.answer_bytes;
        sum.last = call;
    }

    /// Adds the sums to `entries`, if their second is over.
    pub(super) fn flush(&mut self, now_ms: u64, entries: &mut Vec<CallEntry>) {
        if now_ms / 1000 == self.second {
            return;
        }
        (self.second, self.n_single) = (now_ms / 1000, 0);
        let sums = std::mem::take(&mut self.sums);
        entries.extend(sums.into_values().map(|sum| CallEntry::Sum(Box::new(sum))));
    }

    /// Returns whether sums wait for the end of their second.
    pub(super) fn is_pending(&self) -> bool {
        !self.sums.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_record::{CallOutcome, record::tests::record};

    fn add(summary: &mut SuccessSummary, outcome: CallOutcome, now_ms: u64) -> Vec<CallEntry> {
        let mut entries = Vec::new();
        let call =
            CallRecord { outcome, duration: Duration::from_millis(3), ..record("git", "log") };
        summary.add(Arc::new(call), now_ms, &mut entries);
        entries
    }

    #[test]
    fn successes_beyond_the_bound_of_a_second_are_summed_and_failures_never() {
        let mut summary = SuccessSummary::default();
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
    fn the_number_of_sums_is_bounded() {
        let mut summary = SuccessSummary { second: 1, n_single: usize::MAX, ..Default::default() };
        let mut entries = Vec::new();
        for number in 0..2 * defaults::CALL_SUMS_MAX {
            let call = record("git", &number.to_string());
            summary.add(Arc::new(call), 1000, &mut entries);
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
