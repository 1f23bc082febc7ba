//! The lifecycle of one connection: five states and the eleven transitions between them.
//!
//! ```text
//!            dial                 connected
//!   idle ───────────▶ connecting ───────────▶ active ──────────▶ idle
//!    │ ╲ lease ▲          │  │  ▲              │  │   last lease
//!    │  ╲──────┼──────────┼──┼──┼─▶ active     │  │   given back
//!    │         │     lost │  │  │ dial         │  │ lost
//!    │         │          ▼  │  └── failed ◀───┼──┘
//!    │ close   │             │ close   │       │ close
//!    ╰─────────┴─────────▶ closed ◀────┴───────╯
//! ```
//!
//! *Active* means that at least one lease exists. *Closed* is final: a supervisor that must connect
//! again starts a new lifecycle. An idle connection that ends is closed and not failed, because no
//! request failed.
//!
//! Each state carries its data. To the outside, *unused* is idle, and *closed idle* is closed.
//!
//! Pure: the supervisor reports the events.

use std::sync::Arc;

use serde::Serialize;
use tokio::time::Instant;

use crate::connection::ListRevisions;

/// The state of a supervised connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LifecycleState {
    /// Connected with no request in flight, or not needed so far.
    Idle,
    /// An attempt to connect is in progress.
    Connecting,
    /// At least one request is in flight.
    Active,
    /// The last attempt failed, or the connection ended under a request. A request reconnects.
    Failed,
    /// Closed by metamcp, or ended while idle.
    Closed,
}

impl LifecycleState {
    /// Returns the name of the state for operators.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Connecting => "connecting",
            Self::Active => "active",
            Self::Failed => "failed",
            Self::Closed => "closed",
        }
    }
}

/// A transition that the lifecycle does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a connection that is {from:?} cannot become {to:?}")]
pub(super) struct IllegalTransition {
    from: LifecycleState,
    to: LifecycleState,
}

/// One lifecycle, from the first need to the end, with the data of its state.
#[derive(Debug)]
pub(super) enum ConnectionLifecycle {
    /// No connection was needed in this lifecycle.
    Unused { outage: Option<Outage> },
    /// An attempt to connect is in progress.
    Connecting { outage: Outage },
    /// Requests hold `n_leases` of the connection, at least one.
    Active { generation: u64, n_leases: usize },
    /// The connection has had no lease since `since`.
    Idle { generation: u64, since: Instant },
    /// The last attempt failed, or the connection ended under a request.
    Failed { outage: Outage },
    /// metamcp closed the connection because it was idle. Its lists stay valid.
    ClosedIdle { lists: Arc<ListRevisions> },
    /// The connection ended while idle, or the server closes.
    Closed { outage: Option<Outage> },
}

/// A time without a connection, although one is wanted or was lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    /// The start.
    pub(super) since: Instant,
    /// An attempt failed, or a connection ended by itself.
    pub(super) has_failed: bool,
}

impl LifecycleState {
    /// Returns whether the state may change to `next`.
    pub(super) const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Idle => matches!(next, Self::Connecting | Self::Active | Self::Closed),
            Self::Connecting => matches!(next, Self::Active | Self::Failed | Self::Closed),
            Self::Active => matches!(next, Self::Idle | Self::Failed | Self::Closed),
            Self::Failed => matches!(next, Self::Connecting | Self::Closed),
            Self::Closed => false,
        }
    }
}

impl Default for ConnectionLifecycle {
    fn default() -> Self {
        Self::Unused { outage: None }
    }
}

impl ConnectionLifecycle {
    pub(super) fn state(&self) -> LifecycleState {
        match self {
            Self::Unused { .. } | Self::Idle { .. } => LifecycleState::Idle,
            Self::Connecting { .. } => LifecycleState::Connecting,
            Self::Active { .. } => LifecycleState::Active,
            Self::Failed { .. } => LifecycleState::Failed,
            Self::ClosedIdle { .. } | Self::Closed { .. } => LifecycleState::Closed,
        }
    }

    /// Returns the number of leases.
    pub(super) fn n_leases(&self) -> usize {
        if let Self::Active { n_leases, .. } = self { *n_leases } else { 0 }
    }

    /// Returns the outage, if there is one.
    pub(super) fn outage(&self) -> Option<Outage> {
        match self {
            Self::Connecting { outage } | Self::Failed { outage } => Some(*outage),
            Self::Unused { outage } | Self::Closed { outage } => *outage,
            Self::Active { .. } | Self::Idle { .. } | Self::ClosedIdle { .. } => None,
        }
    }

    /// Returns the lists of the connection, if that was closed because it was idle.
    pub(super) fn closed_idle_lists(&self) -> Option<&Arc<ListRevisions>> {
        if let Self::ClosedIdle { lists } = self { Some(lists) } else { None }
    }

    /// Starts a new lifecycle after a closed one.
    pub(super) fn renew(&mut self) {
        if self.state() == LifecycleState::Closed {
            *self = Self::Unused { outage: self.outage() };
        }
    }

    /// Begins an attempt to connect.
    pub(super) fn dial(&mut self, now: Instant) -> Result<(), IllegalTransition> {
        let outage = self.outage().unwrap_or(Outage { since: now, has_failed: false });
        self.become_state(Self::Connecting { outage })
    }

    /// Completes an attempt. The attempt itself holds the first lease.
    pub(super) fn connected(&mut self, generation: u64) -> Result<(), IllegalTransition> {
        match self {
            Self::Connecting { .. } => self.become_state(Self::Active { generation, n_leases: 1 }),
            _ => Err(self.illegal(LifecycleState::Active)),
        }
    }

    /// Adds a lease.
    pub(super) fn lease(&mut self) -> Result<(), IllegalTransition> {
        match self {
            Self::Active { n_leases, .. } => *n_leases += 1,
            Self::Idle { generation, .. } => {
                *self = Self::Active { generation: *generation, n_leases: 1 };
            }
            _ => return Err(self.illegal(LifecycleState::Active)),
        }
        Ok(())
    }

    /// Returns a lease. The result is `true` if it was the last one.
    pub(super) fn release(&mut self, now: Instant) -> Result<bool, IllegalTransition> {
        let Self::Active { generation, n_leases } = self else {
            return Err(self.illegal(LifecycleState::Idle));
        };
        *n_leases -= 1;
        let is_last = *n_leases == 0;
        if is_last {
            *self = Self::Idle { generation: *generation, since: now };
        }
        Ok(is_last)
    }

    /// Fails the attempt or the connection, which ends all leases.
    pub(super) fn fail(&mut self, now: Instant) -> Result<(), IllegalTransition> {
        let since = self.outage().map_or(now, |outage| outage.since);
        self.become_state(Self::Failed { outage: Outage { since, has_failed: true } })
    }

    /// Ends a connection that was lost. An idle one has failed only if that `is_fault`.
    pub(super) fn lose(&mut self, is_fault: bool, now: Instant) -> Result<(), IllegalTransition> {
        match self {
            Self::Idle { .. } if is_fault => self.lease().and_then(|()| self.fail(now)),
            Self::Idle { .. } => {
                let outage = Some(Outage { since: now, has_failed: true });
                self.become_state(Self::Closed { outage })
            }
            _ => self.fail(now),
        }
    }

    /// Ends the lifecycle of an idle connection that metamcp closes, with `lists`.
    pub(super) fn close_idle(
        &mut self,
        lists: Arc<ListRevisions>,
    ) -> Result<(), IllegalTransition> {
        self.become_state(Self::ClosedIdle { lists })
    }

    /// Ends the lifecycle.
    pub(super) fn close(&mut self) -> Result<(), IllegalTransition> {
        self.become_state(Self::Closed { outage: self.outage() })
    }

    fn become_state(&mut self, next: Self) -> Result<(), IllegalTransition> {
        if !self.state().may_become(next.state()) {
            return Err(self.illegal(next.state()));
        }
        *self = next;
        Ok(())
    }

    fn illegal(&self, to: LifecycleState) -> IllegalTransition {
        IllegalTransition { from: self.state(), to }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [LifecycleState; 5] = [
        LifecycleState::Idle,
        LifecycleState::Connecting,
        LifecycleState::Active,
        LifecycleState::Failed,
        LifecycleState::Closed,
    ];

    #[test]
    fn the_lifecycle_has_eleven_transitions_and_none_out_of_closed() {
        use LifecycleState::{Active, Closed, Connecting, Failed, Idle};
        let legal = [
            (Idle, Connecting),
            (Idle, Active),
            (Idle, Closed),
            (Connecting, Active),
            (Connecting, Failed),
            (Connecting, Closed),
            (Active, Idle),
            (Active, Failed),
            (Active, Closed),
            (Failed, Connecting),
            (Failed, Closed),
        ];
        for from in ALL {
            for to in ALL {
                assert_eq!(from.may_become(to), legal.contains(&(from, to)), "{from:?} to {to:?}");
            }
        }
    }

    #[test]
    fn a_connection_is_active_while_a_lease_exists() {
        let (mut life, now) = (ConnectionLifecycle::default(), Instant::now());
        life.dial(now).and_then(|()| life.connected(1)).expect("legal");
        life.lease().expect("legal");
        assert_eq!(life.release(now), Ok(false));
        assert_eq!((life.state(), life.n_leases()), (LifecycleState::Active, 1));
        assert_eq!(life.release(now), Ok(true));
        assert_eq!(life.state(), LifecycleState::Idle);
    }

    #[test]
    fn a_refused_transition_leaves_the_state_unchanged_and_names_both_states() {
        let (mut life, now) = (ConnectionLifecycle::default(), Instant::now());
        let refused = life.fail(now).expect_err("nothing has failed yet");
        assert_eq!(
            refused,
            IllegalTransition { from: LifecycleState::Idle, to: LifecycleState::Failed }
        );
        assert_eq!(refused.to_string(), "a connection that is Idle cannot become Failed");
        assert_eq!(life.state(), LifecycleState::Idle);
    }

    #[test]
    fn an_outage_lasts_from_its_first_moment_to_the_next_connection() {
        let (mut life, start) = (ConnectionLifecycle::default(), Instant::now());
        let later = start + std::time::Duration::from_secs(1);
        let outage = |life: &ConnectionLifecycle| {
            life.outage().map(|outage| (outage.since == start, outage.has_failed))
        };
        assert_eq!(outage(&life), None);
        life.dial(start).expect("legal");
        assert_eq!(outage(&life), Some((true, false)));
        life.fail(later).expect("legal");
        life.close().expect("legal");
        life.renew();
        life.dial(later).expect("legal");
        assert_eq!(outage(&life), Some((true, true)));
        life.connected(1).expect("legal");
        assert_eq!(outage(&life), None);

        life.release(start).expect("legal");
        life.lose(false, start).expect("legal");
        assert_eq!(outage(&life), Some((true, true)), "the connection ended by itself");
    }

    #[test]
    fn a_connection_closed_while_idle_leaves_its_lists_and_no_outage() {
        let (mut life, now) = (ConnectionLifecycle::default(), Instant::now());
        life.dial(now).and_then(|()| life.connected(1)).expect("legal");
        life.release(now).expect("legal");
        life.close_idle(Arc::default()).expect("legal");
        assert!(life.closed_idle_lists().is_some() && life.outage().is_none());
        life.renew();
        assert!(life.closed_idle_lists().is_none());
        assert_eq!(life.state(), LifecycleState::Idle);
    }

    #[derive(Clone, Copy, Debug)]
    enum Event {
        Dial,
        Connected,
        Lease,
        Release,
        Fail,
        Close,
    }

    proptest! {
        /// Any sequence of events makes only legal transitions, counts leases, and leaves *closed*
        /// final.
        #[test]
        fn no_order_of_events_leads_astray(
            events in proptest::collection::vec(
                prop_oneof![
                    Just(Event::Dial), Just(Event::Connected), Just(Event::Lease), Just(Event::Release),
                    Just(Event::Fail),
                    // Otherwise most sequences would end early.
                    prop_oneof![4 => Just(Event::Lease), 1 => Just(Event::Close)],
                ],
                0..60,
            )
        ) {
            let (mut life, now) = (ConnectionLifecycle::default(), Instant::now());
            let mut n_held = 0_usize;
            for event in events {
                let before = life.state();
                let is_accepted = match event {
                    Event::Dial => life.dial(now).is_ok(),
                    Event::Connected => life.connected(1).is_ok(),
                    Event::Lease => life.lease().is_ok(),
                    Event::Release => life.release(now).is_ok(),
                    Event::Fail => life.fail(now).is_ok(),
                    Event::Close => life.close().is_ok(),
                };
                let after = life.state();
                n_held = match event {
                    _ if !is_accepted => n_held,
                    Event::Connected => 1,
                    Event::Lease => n_held + 1,
                    Event::Release => n_held - 1,
                    Event::Dial | Event::Fail | Event::Close => 0,
                };
                prop_assert!(before == after || (is_accepted && before.may_become(after)));
                prop_assert!(before != LifecycleState::Closed || after == LifecycleState::Closed);
                prop_assert_eq!(life.n_leases(), n_held);
                prop_assert_eq!(after == LifecycleState::Active, n_held > 0);
            }
        }
    }
}
