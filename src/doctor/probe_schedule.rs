//! The schedule of probes: few children at a time, and an end for all servers together.

use std::time::Duration;

use tokio::{
    sync::Semaphore,
    time::{self, Instant},
};

use crate::config::defaults;

/// The schedule of the probes of all servers.
pub(super) struct ProbeSchedule {
    /// The permits for children in the first part of their time.
    children: Semaphore,
    /// The time that each probe may take.
    pub(super) timeout: Duration,
    /// The time after which no probe begins.
    last_begin: Instant,
}

impl ProbeSchedule {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            children: Semaphore::new(defaults::DOCTOR_CHILDREN_MAX),
            timeout,
            last_begin: Instant::now() + defaults::DOCTOR_BEGINS * timeout,
        }
    }

    /// Runs a probe when it has a permit, if it needs one. Returns `None` if it cannot begin in
    /// time. Not cancel safe if `probing` is not.
    pub(super) async fn run<T>(
        &self,
        is_child: bool,
        probing: impl Future<Output = T>,
    ) -> Option<T> {
        let permit = match is_child {
            true => Some(time::timeout_at(self.last_begin, self.children.acquire()).await.ok()?),
            false => None,
        };
        if Instant::now() >= self.last_begin {
            return None;
        }
        let mut probing = std::pin::pin!(probing);
        tokio::select! {
            done = &mut probing => return Some(done),
            // A server that is still silent mostly waits, and distorts no times of others.
            () = time::sleep(self.timeout / 4) => drop(permit),
        }
        Some(probing.await)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt as _, future, stream};

    use super::*;

    const TIMEOUT: Duration = defaults::DOCTOR_PROBE_TIMEOUT;

    #[tokio::test(start_paused = true)]
    async fn hanging_servers_delay_the_others_by_a_part_of_their_time_only() {
        let schedule = ProbeSchedule::new(TIMEOUT);
        let begin = Instant::now();
        let hangs = || schedule.run(true, async { time::sleep(TIMEOUT).await });
        let all = future::join_all((0..3 * defaults::DOCTOR_CHILDREN_MAX).map(|_| hangs()));
        assert!(all.await.iter().all(Option::is_some));
        assert_eq!(begin.elapsed().as_secs(), (TIMEOUT + TIMEOUT / 2).as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn the_probes_of_any_number_of_hanging_servers_end_within_a_bound() {
        let schedule = ProbeSchedule::new(TIMEOUT);
        let begin = Instant::now();
        let probes = stream::iter(0..1000).map(|index| {
            let schedule = &schedule;
            let probing = async { time::sleep(TIMEOUT).await };
            async move { schedule.run(index % 2 == 0, probing).await }
        });
        let ended: Vec<_> = probes.buffer_unordered(defaults::DOCTOR_PROBES_MAX).collect().await;
        let n_examined = ended.iter().flatten().count();
        assert!(ended.len() == 1000 && (100..900).contains(&n_examined), "{n_examined}");
        assert!(begin.elapsed() <= (defaults::DOCTOR_BEGINS + 1) * TIMEOUT);
    }
}
