//! The main loop of the service, and its orderly end.

use std::time::Duration;

use tokio::{
    task,
    time::{self, Instant, MissedTickBehavior},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Daemon,
    drain::{close, drain},
    idle_exit::IdleTimer,
    signals::StopSignal,
};
use crate::{
    child::orphan_reaper,
    config::defaults,
    memory_budget,
    resident_memory::{self, ReturnSchedule},
    status::Activity,
    systemd::notify,
};

impl Daemon {
    /// Runs the main loop: signals, commands, status, watchdog. `shown` is the last status line.
    pub(super) async fn watch_over(&mut self, mut shown: String) {
        let mut heartbeat = time::interval(defaults::PULSE);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Half the timeout of the watchdog: the service must not be killed for one late beat.
        let watchdog = notify::watchdog().map(|patience| patience / 2);
        let mut fed = Instant::now();
        let mut idle = IdleTimer::new(fed);
        let mut returns = ReturnSchedule::new(fed);
        let pulse = self.liveness.pulse("main loop");
        loop {
            tokio::select! {
                signal = self.signals.next() => match signal {
                    StopSignal::Stop => return,
                    StopSignal::Reload => {
                        let _noted_in_the_status_line = self.reload(None);
                        shown = self.status_line();
                    }
                },
                order = self.orders.next() => {
                    if self.execute(order) {
                        return;
                    }
                    shown = self.status_line();
                }
                _ = heartbeat.tick() => orphan_reaper::reap(),
            }
            pulse.beat();
            if returns.is_due(Instant::now(), memory_budget::global().freed(), self.board.n_gone())
            {
                drop(task::spawn_blocking(resident_memory::return_memory));
            }
            let patience = self.idle_exit();
            if idle.observe(self.activity(), Instant::now(), patience) {
                tracing::info!(
                    patience = patience.map(tracing::field::debug),
                    "nobody has used the service for its idle_exit: it exits"
                );
                self.notice = Some("nobody used it: exits until it is needed".to_owned());
                notify::status(&self.status_line());
                return;
            }
            let line = self.status_line();
            if line != shown {
                notify::status(&line);
                shown = line;
            }
            if watchdog.is_some_and(|period| fed.elapsed() + defaults::PULSE >= period) {
                let stuck = self.board.stuck();
                if stuck.is_empty() {
                    notify::feed_watchdog();
                    fed = Instant::now();
                } else {
                    tracing::error!(?stuck, "a loop does not turn: the watchdog is not fed");
                }
            }
        }
    }

    /// Returns the time without use after which the service exits, if any.
    fn idle_exit(&self) -> Option<Duration> {
        let declared = self.views.config().service.idle_exit;
        declared.unwrap_or(self.is_launched.then_some(defaults::LAUNCHED_IDLE_EXIT))
    }

    /// Returns the activity of the service, background calls included: between two polls, the task
    /// of a server has no request under way.
    fn activity(&self) -> Activity {
        let activity = self.board.activity();
        Activity { n_now: activity.n_now + self.tasks.n_running(), ..activity }
    }

    pub(super) async fn shut_down(
        &mut self,
        stop: CancellationToken,
        hurry: CancellationToken,
        clients: TaskTracker,
    ) {
        let Self { signals, views, orders, board, pool, listeners, .. } = self;
        let patience = views.config().service.shutdown_timeout;
        notify::stopping(
            "finishing running requests",
            patience + defaults::HURRY + defaults::FAREWELL,
        );
        tracing::info!("stopping");
        orders.close();
        board.serving(false);
        stop.cancel();
        clients.close();
        let orderly = async {
            if time::timeout(patience, clients.wait()).await.is_err() {
                tracing::warn!(n_connections = clients.len(), "requests are cut off");
            }
            hurry.cancel();
            let _cut_off = time::timeout(defaults::HURRY, clients.wait()).await;
            close(pool).await;
        };
        drain(signals, listeners, orderly).await;
    }
}
