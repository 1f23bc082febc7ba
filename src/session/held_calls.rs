//! Calls that are held while their clients find the input that the server has asked for.
//!
//! A server of the legacy era asks its client in the middle of a call, and waits. A client of the
//! modern era gets the question as an answer, and sends another request. In between the call is
//! kept here under a random number. The client's `requestState` contains only that number, so that
//! a client cannot alter the state. It is valid for the same request at the same server, once, and
//! for [`defaults::INPUT_TIMEOUT`].
//!
//! Pure: the caller passes the time.

use std::collections::{HashMap, hash_map::Entry as HashEntry};

use tokio::time::Instant;
use uuid::Uuid;

use crate::{config::defaults, server_name::ServerName};

/// The digest that identifies a repeated request.
pub(super) type RequestDigest = [u8; 32];

/// The held calls, by their number.
#[derive(Debug)]
pub(super) struct HeldCalls<T> {
    /// The prefix of all states of this process. A server may be another metamcp.
    prefix: String,
    held: HashMap<Uuid, Entry<T>>,
}

#[derive(Debug)]
struct Entry<T> {
    server: ServerName,
    digest: RequestDigest,
    since: Instant,
    held: T,
}

/// The reason why no held call can continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldCallError {
    /// The call was never held, or is no longer held.
    Unknown,
    /// The state was issued for another request.
    OtherRequest,
}

impl<T> Default for HeldCalls<T> {
    fn default() -> Self {
        let prefix = format!("metamcp.held.{}.", Uuid::new_v4().simple());
        Self { prefix, held: HashMap::new() }
    }
}

impl<T> HeldCalls<T> {
    /// Returns whether this process issued `state`.
    pub(super) fn is_known_state(&self, state: &str) -> bool {
        state.starts_with(&self.prefix)
    }

    /// Returns whether a call is held under this state.
    pub(super) fn is_held(&self, state: &str, now: Instant) -> bool {
        self.number_of(state, now).is_some()
    }

    /// Returns the number of the call that is held under `state`.
    fn number_of(&self, state: &str, now: Instant) -> Option<Uuid> {
        let number = Uuid::try_parse(state.strip_prefix(&self.prefix)?).ok()?;
        self.held.get(&number).is_some_and(|entry| !entry.is_expired(now)).then_some(number)
    }

    /// Holds a call to `server`, and returns the state for its client. Returns the call as an error
    /// if there is no room. At `server_max` calls to the server, it removes and returns the oldest
    /// one, whose client will most likely never come back.
    pub(super) fn insert(
        &mut self,
        server: ServerName,
        server_max: usize,
        digest: RequestDigest,
        held: T,
        now: Instant,
    ) -> Result<(String, Option<T>), T> {
        let of_server = || self.held.iter().filter(|(_, entry)| entry.server == server);
        let oldest = of_server().min_by_key(|(_, entry)| entry.since).map(|(number, _)| *number);
        let oldest = oldest.filter(|_| of_server().count() >= server_max);
        let dropped = oldest.and_then(|oldest| self.held.remove(&oldest)).map(|entry| entry.held);
        if self.held.len() >= defaults::HELD_CALLS_MAX {
            return Err(held);
        }
        let number = Uuid::new_v4();
        self.held.insert(number, Entry { server, digest, since: now, held });
        Ok((format!("{}{}", self.prefix, number.simple()), dropped))
    }

    /// Removes the call that a request to `server` continues. Returns it and the time since it is
    /// held.
    pub(super) fn take(
        &mut self,
        state: &str,
        server: &ServerName,
        digest: &RequestDigest,
        now: Instant,
    ) -> Result<(T, Instant), HeldCallError> {
        let number = self.number_of(state, now).ok_or(HeldCallError::Unknown)?;
        match self.held.entry(number) {
            HashEntry::Vacant(_) => Err(HeldCallError::Unknown),
            HashEntry::Occupied(found)
                if found.get().server != *server || found.get().digest != *digest =>
            {
                Err(HeldCallError::OtherRequest)
            }
            HashEntry::Occupied(found) => {
                let Entry { held, since, .. } = found.remove();
                Ok((held, since))
            }
        }
    }

    /// Removes the expired calls.
    pub(super) fn expired(&mut self, now: Instant) -> Vec<T> {
        self.held
            .extract_if(|_, entry| entry.is_expired(now))
            .map(|(_, entry)| entry.held)
            .collect()
    }

    /// Removes the calls to `servers`.
    pub(super) fn take_by_server(&mut self, servers: &[ServerName]) -> Vec<T> {
        let taken = self.held.extract_if(|_, entry| servers.contains(&entry.server));
        taken.map(|(_, entry)| entry.held).collect()
    }

    /// Removes all calls.
    pub(super) fn clear(&mut self) -> Vec<T> {
        self.held.drain().map(|(_, entry)| entry.held).collect()
    }

    /// Returns the time when the next call expires.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.held.values().map(|entry| entry.since + defaults::INPUT_TIMEOUT).min()
    }
}

impl<T> Entry<T> {
    fn is_expired(&self, now: Instant) -> bool {
        now >= self.since + defaults::INPUT_TIMEOUT
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DIGEST: RequestDigest = [7; 32];

    fn server(name: &str) -> ServerName {
        ServerName::new(name).expect("a name")
    }

    #[test]
    fn removing_a_server_ends_all_its_held_calls() {
        let now = Instant::now();
        let mut calls = HeldCalls::default();
        for (name, held) in [("a", 1), ("b", 2), ("a", 3)] {
            calls.insert(server(name), 9, DIGEST, held, now).expect("room");
        }
        let mut taken = calls.take_by_server(&[server("a"), server("c")]);
        taken.sort_unstable();
        assert_eq!((taken, calls.clear()), (vec![1, 3], vec![2]));
    }

    #[test]
    fn a_held_call_continues_once_and_only_by_the_same_request() {
        let now = Instant::now();
        let mut calls = HeldCalls::default();
        let state = calls.insert(server("a"), 9, DIGEST, "held", now).expect("room").0;
        assert!(calls.is_known_state(&state) && !HeldCalls::<()>::default().is_known_state(&state));

        let mut take = |state: &str, name, digest| calls.take(state, &server(name), digest, now);
        assert_eq!(take(&state, "b", &DIGEST), Err(HeldCallError::OtherRequest), "another server");
        assert_eq!(
            take(&state, "a", &[8; 32]),
            Err(HeldCallError::OtherRequest),
            "another request"
        );
        assert_eq!(take(&state, "a", &DIGEST), Ok(("held", now)), "a wrong guess costs nothing");
        assert_eq!(take(&state, "a", &DIGEST), Err(HeldCallError::Unknown), "twice");
    }

    #[test]
    fn an_altered_request_state_is_unknown() {
        let now = Instant::now();
        let mut calls = HeldCalls::default();
        let state = calls.insert(server("a"), 9, DIGEST, "held", now).expect("room").0;
        for altered in ["", "x", &state[..state.len() - 1], &state[1..], &format!("{state}0")] {
            assert_eq!(
                calls.take(altered, &server("a"), &DIGEST, now),
                Err(HeldCallError::Unknown)
            );
        }
    }

    #[test]
    fn a_held_call_expires_after_the_input_timeout() {
        let now = Instant::now();
        let mut calls = HeldCalls::default();
        let state = calls.insert(server("a"), 9, DIGEST, "held", now).expect("room").0;
        let end = now + defaults::INPUT_TIMEOUT;
        assert_eq!(calls.next_expiry(), Some(end));
        assert!(calls.expired(now).is_empty());
        assert_eq!(calls.take(&state, &server("a"), &DIGEST, end), Err(HeldCallError::Unknown));
        assert_eq!(calls.expired(end), ["held"]);
        assert_eq!(calls.next_expiry(), None);
    }

    #[test]
    fn the_number_of_held_calls_is_bounded() {
        let now = Instant::now();
        let mut calls = HeldCalls::default();
        for _ in 0..defaults::HELD_CALLS_MAX {
            calls.insert(server("a"), usize::MAX, DIGEST, (), now).expect("room");
        }
        assert!(calls.insert(server("a"), usize::MAX, DIGEST, (), now).is_err());
        assert_eq!(calls.clear().len(), defaults::HELD_CALLS_MAX);
    }

    #[test]
    fn the_longest_held_call_of_a_server_makes_room_for_a_new_one() {
        let now = Instant::now();
        let mut calls = HeldCalls::default();
        let mut put = |name, held, age| {
            let since = now + Duration::from_secs(age);
            calls.insert(server(name), 2, DIGEST, held, since).expect("room").1
        };
        assert_eq!(put("a", "second", 2), None);
        assert_eq!(put("a", "first", 1), None);
        assert_eq!(put("b", "other", 0), None);
        assert_eq!(put("a", "third", 3), Some("first"));
        assert_eq!(put("b", "another", 4), None);
    }
}
