//! Waiting calls: held until released, or meeting until all have arrived.

use std::collections::BTreeMap;

use crate::{call::Call, fake::Fake, message};

/// The waiting calls.
#[derive(Debug, Default)]
pub(crate) struct WaitingCalls {
    meeting: Vec<(Call, String)>,
    held: BTreeMap<String, Vec<Call>>,
    n_dropped: usize,
}

impl WaitingCalls {
    /// Returns the number of held calls.
    pub(crate) fn n_held(&self) -> usize {
        self.held.values().map(Vec::len).sum()
    }

    /// Returns the number of `meet` calls that wait for others.
    pub(crate) fn n_meeting(&self) -> usize {
        self.meeting.len()
    }

    /// Returns the held calls, as the text of an object.
    pub(crate) fn held(&self) -> String {
        let keys: BTreeMap<&String, usize> =
            self.held.iter().map(|(key, calls)| (key, calls.len())).collect();
        let (held, dropped) = (self.n_held(), self.n_dropped);
        serde_json::json!({ "keys": keys, "held": held, "dropped": dropped }).to_string()
    }

    /// Takes the held calls that were cancelled and counts them.
    pub(crate) fn take_cancelled(&mut self) -> Vec<Call> {
        let mut taken = Vec::new();
        for calls in self.held.values_mut() {
            taken.extend(calls.extract_if(.., |call| call.cancelled.is_cancelled()));
        }
        self.held.retain(|_, calls| !calls.is_empty());
        self.n_dropped += taken.len();
        taken
    }
}

impl Fake {
    /// Keeps `call` until `n_calls` of them have met, then answers all, the last one first.
    pub(crate) async fn meet(&self, call: Call, n_calls: usize, value: String) {
        let (gone, met) = {
            let mut state = self.state();
            let gone: Vec<_> = state
                .waiting
                .meeting
                .extract_if(.., |(call, _)| call.cancelled.is_cancelled())
                .collect();
            state.waiting.meeting.push((call, value));
            let is_complete = state.waiting.meeting.len() >= n_calls;
            (
                gone,
                if is_complete { std::mem::take(&mut state.waiting.meeting) } else { Vec::new() },
            )
        };
        drop(gone);
        self.changed();
        for (call, value) in met.into_iter().rev() {
            call.result(&message::structured(&value, &format!(r#"{{"value":{value}}}"#))).await;
        }
    }

    /// Keeps `call` until its key is released.
    pub(crate) fn hold(&self, call: Call, key: String) {
        let dropped = {
            let mut state = self.state();
            state.waiting.held.entry(key).or_default().push(call);
            state.waiting.take_cancelled() // It may have been cancelled before it got here.
        };
        drop(dropped);
        self.log("held", "");
        self.changed();
    }

    /// Answers all calls held under `key`; returns their number.
    pub(crate) async fn release(&self, key: &str) -> usize {
        let released = self.state().waiting.held.remove(key).unwrap_or_default();
        let n_released = released.len();
        let data = format!(r#"{{"key":{}}}"#, message::quoted(key));
        for call in released {
            call.result(&message::data_result(&data)).await;
        }
        self.changed();
        n_released
    }
}
