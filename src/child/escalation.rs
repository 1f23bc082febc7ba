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

/// The steps, each with the short wait before it, for a caller that waits for the end, and the long
/// wait for all other cases.
const LADDER: [(EscalationStep, Duration, Duration); 2] = [
    (EscalationStep::Terminate, Duration::from_millis(750), Duration::from_secs(2)),
    (EscalationStep::Kill, Duration::from_millis(800), Duration::from_secs(3)),
];

/// The waits and steps for one child.
#[derive(Debug)]
pub struct Escalation {
    hurry: CancellationToken,
    rungs: std::slice::Iter<'static, (EscalationStep, Duration, Duration)>,
}

impl Escalation {
    /// Starts when the child's input is closed. The long waits apply until `hurry` is cancelled.
    pub fn new(hurry: CancellationToken) -> Self {
        Self { hurry, rungs: LADDER.iter() }
    }

    /// Waits for the next step and returns it; `None` after the last one. Not cancel safe: the step
    /// is skipped.
    pub async fn next(&mut self) -> Option<EscalationStep> {
        let (rung, quick, patient) = *self.rungs.next()?;
        tokio::select! {
            () = time::sleep(patient) => {}
            () = async {
                self.hurry.cancelled().await;
                time::sleep(quick).await;
            } => {}
        }
        Some(rung)
    }

    /// Waits until the time at which a child would be killed.
    ///
    /// # Cancel safety
    ///
    /// As [`Escalation::next`].
    pub async fn end(mut self) {
        while self.next().await.is_some() {}
    }
}

/// Returns a cancelled token, for a caller that waits for the end.
pub fn cancelled_token() -> CancellationToken {
    let hurry = CancellationToken::new();
    hurry.cancel();
    hurry
}

/// Returns the sum of the short waits: the time until a child is killed.
pub fn total_time() -> Duration {
    LADDER.iter().map(|(_, quick, _)| *quick).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn times(hurry: CancellationToken) -> Vec<(EscalationStep, u128)> {
        let (start, mut descent) = (time::Instant::now(), Escalation::new(hurry));
        let mut times = Vec::new();
        while let Some(rung) = descent.next().await {
            times.push((rung, start.elapsed().as_millis()));
        }
        times
    }

    #[tokio::test(start_paused = true)]
    async fn on_a_stop_a_child_is_asked_after_750_ms_and_killed_after_1550() {
        assert_eq!(
            times(cancelled_token()).await,
            [(EscalationStep::Terminate, 750), (EscalationStep::Kill, 1550)]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_of_an_idle_connection_is_asked_after_2_s_and_killed_after_5() {
        let never = CancellationToken::new();
        assert_eq!(
            times(never).await,
            [(EscalationStep::Terminate, 2000), (EscalationStep::Kill, 5000)]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_hurries_a_child_that_leaves_at_its_leisure() {
        for (ms, expected) in [(100, [850, 1650]), (1900, [2000, 2800]), (3000, [2000, 3800])] {
            let hurry = CancellationToken::new();
            let later = async {
                time::sleep(Duration::from_millis(ms)).await;
                hurry.cancel();
            };
            let (times, ()) = tokio::join!(times(hurry.clone()), later);
            assert_eq!(times.iter().map(|(_, at)| *at).collect::<Vec<_>>(), expected);
        }
    }
}
