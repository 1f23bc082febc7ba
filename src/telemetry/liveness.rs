//! The liveness of the loops of the service.
//!
//! Every loop that must never stop holds a [`LoopPulse`] and beats it in each iteration; an idle
//! loop wakes up for that every [`defaults::PULSE`]. The watchdog and `/healthz` check the oldest
//! pulse, so neither reports health while a loop is stuck.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use serde::Serialize;
use tokio::time::Instant;

use crate::config::defaults;

/// All pulses of the service.
#[derive(Debug)]
pub struct Liveness {
    epoch: Instant,
    pulses: Mutex<Vec<Arc<Mark>>>,
}

#[derive(Debug)]
struct Mark {
    name: String,
    /// The time of the last beat, in milliseconds since the epoch of the registry.
    beaten_ms: AtomicU64,
}

/// The pulse of one loop; dropping it ends the supervision of the loop.
#[derive(Debug)]
pub struct LoopPulse {
    registry: Arc<Liveness>,
    mark: Arc<Mark>,
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
        Arc::new(Self { epoch: Instant::now(), pulses: Mutex::default() })
    }

    /// Starts to supervise a loop.
    pub fn pulse(self: &Arc<Self>, name: impl Into<String>) -> LoopPulse {
        let mark = Arc::new(Mark { name: name.into(), beaten_ms: AtomicU64::new(self.now_ms()) });
        self.lock().push(Arc::clone(&mark));
        LoopPulse { registry: Arc::clone(self), mark }
    }

    /// Returns the loops without a beat for [`defaults::PULSE_AGE_MAX`].
    pub fn stuck(&self) -> Vec<StuckLoop> {
        let now_ms = self.now_ms();
        let limit_ms = u64::try_from(defaults::PULSE_AGE_MAX.as_millis()).unwrap_or(u64::MAX);
        self.lock()
            .iter()
            .map(|mark| StuckLoop {
                name: mark.name.clone(),
                silent_ms: now_ms.saturating_sub(mark.beaten_ms.load(Ordering::Relaxed)),
            })
            .filter(|stuck| stuck.silent_ms > limit_ms)
            .collect()
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Mark>>> {
        // Plain data: a panic elsewhere cannot leave it inconsistent.
        self.pulses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LoopPulse {
    /// Records that the loop is running.
    pub fn beat(&self) {
        self.mark.beaten_ms.store(self.registry.now_ms(), Ordering::Relaxed);
    }
}

impl Drop for LoopPulse {
    fn drop(&mut self) {
        self.registry.lock().retain(|mark| !Arc::ptr_eq(mark, &self.mark));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_stops_beating_is_named() {
        let liveness = Liveness::new();
        let accept = liveness.pulse("accept");
        let control = liveness.pulse("control");

        tokio::time::advance(defaults::PULSE_AGE_MAX + Duration::from_millis(1)).await;
        accept.beat();

        let stuck = liveness.stuck();
        assert_eq!(stuck.len(), 1);
        assert_eq!(stuck[0].name, "control");
        drop(control);
        assert_eq!(liveness.stuck(), []);
    }
}
