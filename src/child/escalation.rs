//! The steps that end a child: its input is closed, then SIGTERM, then SIGKILL.
//!
//! ```text
//!                    input closed    SIGTERM    SIGKILL
//!  on a stop              0 ms        750 ms    1550 ms
//!  an idle connection     0 s           2 s        5 s
//! ```
//!
//! Most servers exit some tenths of a second after their input ends. An earlier signal would
//! interrupt their last work.

use std::time::Duration;

use tokio::time;
use tokio_util::sync::CancellationToken;

/// A step against a child that still runs after a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EscalationStep {
    /// Send SIGTERM.
    Terminate,
    /// Send SIGKILL.
    Kill,
}

/// The steps, each with the waits before it: the short one if a caller waits for the end, else the
/// long one.
const STEPS: [(EscalationStep, Duration, Duration); 2] = [
    (EscalationStep::Terminate, Duration::from_millis(750), Duration::from_secs(2)),
    (EscalationStep::Kill, Duration::from_millis(800), Duration::from_secs(3)),
];

/// The waits and steps for one child.
#[derive(Debug)]
pub struct Escalation {
    skip_drain: CancellationToken,
    steps: std::slice::Iter<'static, (EscalationStep, Duration, Duration)>,
}

impl Escalation {
    /// Returns the steps after the end of the child's input. The long waits apply until
    /// `skip_drain` is cancelled.
    pub fn new(skip_drain: CancellationToken) -> Self {
        Self { skip_drain, steps: STEPS.iter() }
    }

    /// Waits for the next step and returns it; `None` after the last one. Not cancel safe: the step
    /// is skipped.
    pub async fn next(&mut self) -> Option<EscalationStep> {
        let (step, quick, patient) = *self.steps.next()?;
        tokio::select! {
            () = time::sleep(patient) => {}
            () = async {
                self.skip_drain.cancelled().await;
                time::sleep(quick).await;
            } => {}
        }
        Some(step)
    }

    /// Waits until the time at which a child would be killed. Not cancel safe, like
    /// [`Escalation::next`].
    pub async fn end(mut self) {
        while self.next().await.is_some() {}
    }
}

/// Returns a cancelled token, for a caller that waits for the end.
pub fn cancelled_token() -> CancellationToken {
    let skip_drain = CancellationToken::new();
    skip_drain.cancel();
    skip_drain
}

/// Returns the sum of the short waits: the time until a child is killed.
pub fn total_time() -> Duration {
    STEPS.iter().map(|(_, quick, _)| *quick).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn times(skip_drain: CancellationToken) -> Vec<(EscalationStep, u128)> {
        let (start, mut escalation) = (time::Instant::now(), Escalation::new(skip_drain));
        let mut times = Vec::new();
        while let Some(step) = escalation.next().await {
            times.push((step, start.elapsed().as_millis()));
        }
        times
    }

    #[tokio::test(start_paused = true)]
    async fn on_a_stop_a_child_gets_sigterm_after_750_ms_and_sigkill_after_1550() {
        assert_eq!(
            times(cancelled_token()).await,
            [(EscalationStep::Terminate, 750), (EscalationStep::Kill, 1550)]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_of_an_idle_connection_gets_sigterm_after_2_s_and_sigkill_after_5() {
        let never = CancellationToken::new();
        assert_eq!(
            times(never).await,
            [(EscalationStep::Terminate, 2000), (EscalationStep::Kill, 5000)]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_shortens_the_waits_for_an_idle_child() {
        for (ms, expected) in [(100, [850, 1650]), (1900, [2000, 2800]), (3000, [2000, 3800])] {
            let skip_drain = CancellationToken::new();
            let later = async {
                time::sleep(Duration::from_millis(ms)).await;
                skip_drain.cancel();
            };
            let (times, ()) = tokio::join!(times(skip_drain.clone()), later);
            assert_eq!(times.iter().map(|(_, at)| *at).collect::<Vec<_>>(), expected);
        }
    }
}
