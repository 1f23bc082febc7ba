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
//! Pure: the supervisor reports the events.

use serde::Serialize;

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

/// A transition that the lifecycle does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a connection that is {from:?} cannot become {to:?}")]
pub(super) struct IllegalTransition {
    from: LifecycleState,
    to: LifecycleState,
}

/// One lifecycle, from the first need to the end.
#[derive(Debug)]
pub(super) struct ConnectionLifecycle {
    state: LifecycleState,
    /// Above zero if and only if active.
    n_leases: usize,
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
        Self { state: LifecycleState::Idle, n_leases: 0 }
    }
}

impl ConnectionLifecycle {
    /// Returns the state.
    pub(super) fn state(&self) -> LifecycleState {
        self.state
    }

    /// Returns the number of leases.
    pub(super) fn n_leases(&self) -> usize {
        self.n_leases
    }

    /// Begins an attempt to connect.
    pub(super) fn dial(&mut self) -> Result<(), IllegalTransition> {
        self.become_state(LifecycleState::Connecting)
    }

    /// Completes an attempt. The attempt itself holds the first lease.
    pub(super) fn connected(&mut self) -> Result<(), IllegalTransition> {
        if self.state != LifecycleState::Connecting {
            return Err(IllegalTransition { from: self.state, to: LifecycleState::Active });
        }
        self.become_state(LifecycleState::Active)?;
        self.n_leases = 1;
        Ok(())
    }

    /// Adds a lease.
    pub(super) fn lease(&mut self) -> Result<(), IllegalTransition> {
        match self.state {
            LifecycleState::Active => {}
            LifecycleState::Idle => self.become_state(LifecycleState::Active)?,
            from => return Err(IllegalTransition { from, to: LifecycleState::Active }),
        }
        self.n_leases += 1;
        Ok(())
    }

    /// Returns a lease. The result is `true` if it was the last one.
    pub(super) fn release(&mut self) -> Result<bool, IllegalTransition> {
        if self.state != LifecycleState::Active {
            return Err(IllegalTransition { from: self.state, to: LifecycleState::Idle });
        }
        self.n_leases -= 1;
        if self.n_leases == 0 {
            self.become_state(LifecycleState::Idle)?;
        }
        Ok(self.n_leases == 0)
    }

    /// Fails the attempt or the connection, which ends all leases.
    pub(super) fn fail(&mut self) -> Result<(), IllegalTransition> {
        self.become_state(LifecycleState::Failed)
    }

    /// Ends the lifecycle.
    pub(super) fn close(&mut self) -> Result<(), IllegalTransition> {
        self.become_state(LifecycleState::Closed)
    }

    fn become_state(&mut self, next: LifecycleState) -> Result<(), IllegalTransition> {
        if !self.state.may_become(next) {
            return Err(IllegalTransition { from: self.state, to: next });
        }
        self.state = next;
        if next != LifecycleState::Active {
            self.n_leases = 0;
        }
        Ok(())
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
        let mut life = ConnectionLifecycle::default();
        life.dial().and_then(|()| life.connected()).expect("legal");
        life.lease().expect("legal");
        assert_eq!(life.release(), Ok(false));
        assert_eq!((life.state(), life.n_leases()), (LifecycleState::Active, 1));
        assert_eq!(life.release(), Ok(true));
        assert_eq!(life.state(), LifecycleState::Idle);
    }

    #[test]
    fn a_refused_transition_leaves_the_state_unchanged_and_names_both_states() {
        let mut life = ConnectionLifecycle::default();
        let refused = life.fail().expect_err("nothing has failed yet");
        assert_eq!(
            refused,
            IllegalTransition { from: LifecycleState::Idle, to: LifecycleState::Failed }
        );
        assert_eq!(refused.to_string(), "a connection that is Idle cannot become Failed");
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
            let mut life = ConnectionLifecycle::default();
            let mut n_held = 0_usize;
            for event in events {
                let before = life.state();
                let is_accepted = match event {
                    Event::Dial => life.dial().is_ok(),
                    Event::Connected => life.connected().is_ok(),
                    Event::Lease => life.lease().is_ok(),
                    Event::Release => life.release().is_ok(),
                    Event::Fail => life.fail().is_ok(),
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
