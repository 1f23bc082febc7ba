//! The liveness of the loops of the service.
//!
//! Every loop that must never stop holds a [`LoopPulse`] and beats it in each iteration; an idle
//! loop wakes up for that every [`defaults::LIVENESS_INTERVAL`]. The watchdog and `/healthz` check the oldest
//! pulse, so neither reports health while a loop is stuck.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use serde::Serialize;
use tokio::time::Instant;

use crate::config::defaults;

/// All supervised loops of the service.
#[derive(Debug)]
pub struct Liveness {
    epoch: Instant,
    loops: Mutex<Vec<Arc<LoopState>>>,
}

#[derive(Debug)]
struct LoopState {
    name: String,
    /// The time of the last beat, in milliseconds since the epoch of the registry.
    last_beat_ms: AtomicU64,
}

/// The pulse of one loop; dropping it ends the supervision of the loop.
#[derive(Debug)]
pub struct LoopPulse {
    registry: Arc<Liveness>,
    state: Arc<LoopState>,
}

/// A loop without a beat for too long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StuckLoop {
    /// The loop.
    pub name: String,
    /// The time since its last beat, in milliseconds.
    pub silent_ms: u64,
}

impl Liveness {
    /// Returns an empty registry.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { epoch: Instant::now(), loops: Mutex::default() })
    }

    /// Starts to supervise a loop.
    pub fn pulse(self: &Arc<Self>, name: impl Into<String>) -> LoopPulse {
        let state =
            Arc::new(LoopState { name: name.into(), last_beat_ms: AtomicU64::new(self.now_ms()) });
        self.lock().push(Arc::clone(&state));
        LoopPulse { registry: Arc::clone(self), state }
    }

    /// Returns the loops without a beat for [`defaults::LIVENESS_AGE_MAX`].
    pub fn stuck(&self) -> Vec<StuckLoop> {
        let now_ms = self.now_ms();
        let limit_ms = u64::try_from(defaults::LIVENESS_AGE_MAX.as_millis()).unwrap_or(u64::MAX);
        self.lock()
            .iter()
            .map(|state| StuckLoop {
                name: state.name.clone(),
                silent_ms: now_ms.saturating_sub(state.last_beat_ms.load(Ordering::Relaxed)),
            })
            .filter(|stuck| stuck.silent_ms > limit_ms)
            .collect()
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<LoopState>>> {
        // Plain data: a panic elsewhere cannot leave it inconsistent.
        self.loops.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LoopPulse {
    /// Records that the loop is running.
    pub fn beat(&self) {
        self.state.last_beat_ms.store(self.registry.now_ms(), Ordering::Relaxed);
    }
}

impl Drop for LoopPulse {
    fn drop(&mut self) {
        self.registry.lock().retain(|state| !Arc::ptr_eq(state, &self.state));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_without_a_pulse_is_named() {
        let liveness = Liveness::new();
        let accept = liveness.pulse("accept");
        let control = liveness.pulse("control");

        tokio::time::advance(defaults::LIVENESS_AGE_MAX + Duration::from_millis(1)).await;
        accept.beat();

        let stuck = liveness.stuck();
        assert_eq!(stuck.len(), 1);
        assert_eq!(stuck[0].name, "control");
        drop(control);
        assert_eq!(liveness.stuck(), []);
    }
}
