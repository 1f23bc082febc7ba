//! Which request on the shared connection belongs to whom.
//!
//! Pure: a map and a counter. An id is never used twice on one connection, so an answer that
//! comes after its request was given up cannot reach anybody else.

use std::collections::HashMap;

/// The requests that wait for an answer, by the id that the server knows.
#[derive(Debug)]
pub(super) struct Mux<W> {
    next: u64,
    waiters: HashMap<u64, W>,
    in_flight_max: usize,
}

/// As many requests are in flight as the bound allows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Saturated;

impl<W> Mux<W> {
    /// Returns an empty map with a bound on requests in flight.
    pub(super) fn new(in_flight_max: usize) -> Self {
        Self { next: 1, waiters: HashMap::new(), in_flight_max }
    }

    /// Gives a request its id.
    pub(super) fn admit(&mut self, waiter: W) -> Result<u64, Saturated> {
        if self.waiters.len() >= self.in_flight_max {
            return Err(Saturated);
        }
        let id = self.next;
        self.next += 1;
        self.waiters.insert(id, waiter);
        Ok(id)
    }

    /// Returns who waits for `id`, which also is the progress token.
    pub(super) fn waiter(&self, id: u64) -> Option<&W> {
        self.waiters.get(&id)
    }

    /// Ends the wait for `id`; `None` when nobody waits: a late answer, or one given up.
    pub(super) fn remove(&mut self, id: u64) -> Option<W> {
        self.waiters.remove(&id)
    }

    /// Ends every wait.
    pub(super) fn drain(&mut self) -> Vec<W> {
        self.waiters.drain().map(|(_, waiter)| waiter).collect()
    }

    /// Returns how many requests wait.
    pub(super) fn in_flight(&self) -> usize {
        self.waiters.len()
    }

    /// Returns how many requests were given an id so far.
    pub(super) fn admitted(&self) -> u64 {
        self.next - 1
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_connection_takes_no_more_until_an_answer_comes() {
        let mut mux = Mux::new(2);
        let first = mux.admit("a").expect("room");
        mux.admit("b").expect("room");
        assert_eq!(mux.admit("c"), Err(Saturated));

        assert_eq!(mux.remove(first), Some("a"));
        assert!(mux.admit("c").is_ok());
    }

    #[derive(Clone, Debug)]
    enum Step {
        Admit,
        Answer(usize),
        GiveUp(usize),
    }

    proptest! {
        /// Every client owns one number; an answer must carry the number of the one who asked.
        #[test]
        fn no_interleaving_brings_an_answer_to_another_client(
            steps in prop::collection::vec(
                prop_oneof![
                    3 => Just(Step::Admit),
                    3 => any::<usize>().prop_map(Step::Answer),
                    1 => any::<usize>().prop_map(Step::GiveUp),
                ],
                0..200,
            ),
        ) {
            let mut mux = Mux::new(64);
            let mut asked: Vec<(u64, usize)> = Vec::new();
            let mut waiting: HashMap<u64, usize> = HashMap::new();
            for (client, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Admit => {
                        if let Ok(id) = mux.admit(client) {
                            prop_assert!(asked.iter().all(|(known, _)| *known != id));
                            asked.push((id, client));
                            waiting.insert(id, client);
                        }
                    }
                    // Any id that was ever used may be answered, more than once too.
                    Step::Answer(at) if !asked.is_empty() => {
                        let (id, owner) = asked[at % asked.len()];
                        let expected = waiting.remove(&id);
                        prop_assert_eq!(mux.remove(id), expected);
                        prop_assert!(expected.is_none_or(|client| client == owner));
                    }
                    Step::GiveUp(at) if !asked.is_empty() => {
                        let (id, _) = asked[at % asked.len()];
                        prop_assert_eq!(mux.remove(id), waiting.remove(&id));
                    }
                    Step::Answer(_) | Step::GiveUp(_) => {}
                }
                prop_assert_eq!(mux.in_flight(), waiting.len());
            }
        }
    }
}
