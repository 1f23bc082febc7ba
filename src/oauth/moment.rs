//! A moment on both clocks.

use std::time::SystemTime;

use tokio::time::Instant;

/// A moment on both clocks. The monotonic one stands still while the host sleeps, and an operator
/// may set the wall clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) monotonic: Instant,
    pub(super) wall: SystemTime,
}

impl Moment {
    pub(super) fn now() -> Self {
        Self { monotonic: Instant::now(), wall: SystemTime::now() }
    }
}
