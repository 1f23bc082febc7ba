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
    signals::SignalRequest,
};
use crate::{
    child::orphan_reaper,
    config::defaults,
    control::ControlCommand,
    memory_budget,
    resident_memory::{self, ReturnSchedule},
    status::Activity,
    systemd::notify,
};

impl Daemon {
    /// Runs the main loop: signals, commands, status, watchdog. `line` is the last status line.
    pub(super) async fn run_main_loop(&mut self, mut line: String) {
        let mut heartbeat = time::interval(defaults::LIVENESS_INTERVAL);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Half the timeout of the watchdog: the service must not be killed for one late beat.
        let watchdog = notify::watchdog().map(|timeout| timeout / 2);
        let mut fed = Instant::now();
        let mut idle = IdleTimer::new(fed);
        let mut returns = ReturnSchedule::new(fed);
        let pulse = self.liveness.pulse("main loop");
        loop {
            tokio::select! {
                signal = self.signals.next() => match signal {
                    SignalRequest::Stop => return,
                    SignalRequest::Reload => {
                        let _noted_in_the_status_line = self.reload(None);
                        line = self.status_line();
                    }
                },
                Some(command) = self.commands.recv() => {
                    if self.execute(command) {
                        return;
                    }
                    line = self.status_line();
                }
                _ = heartbeat.tick() => orphan_reaper::reap(),
            }
            pulse.beat();
            if returns.is_due(Instant::now(), memory_budget::global().freed(), self.board.n_gone())
            {
                drop(task::spawn_blocking(resident_memory::return_memory));
            }
            let timeout = self.idle_exit();
            if idle.observe(self.activity(), Instant::now(), timeout) {
                tracing::info!(
                    patience = timeout.map(tracing::field::debug),
                    "no client used the service for `service.idle_exit`: the service exits"
                );
                self.notice = Some("unused: exits until a client needs it".to_owned());
                notify::status(&self.status_line());
                return;
            }
            let new_line = self.status_line();
            if new_line != line {
                notify::status(&new_line);
                line = new_line;
            }
            if watchdog.is_some_and(|period| fed.elapsed() + defaults::LIVENESS_INTERVAL >= period)
            {
                let stuck = self.board.stuck();
                if stuck.is_empty() {
                    notify::feed_watchdog();
                    fed = Instant::now();
                } else {
                    tracing::error!(
                        ?stuck,
                        "event loops are stuck, so the watchdog is not fed: {stuck:?}"
                    );
                }
            }
        }
    }

    /// Executes a command, and returns whether it is the last one. Its sender may have gone.
    fn execute(&mut self, command: ControlCommand) -> bool {
        match command {
            ControlCommand::Reload { from, reply } => {
                let _gone = reply.send(self.reload(from));
                false
            }
            ControlCommand::Stop(reply) => {
                let _gone = reply.send(());
                true
            }
        }
    }

    /// Returns the time without use after which the service exits, if any.
    fn idle_exit(&self) -> Option<Duration> {
        let declared = self.forwarder.config().service.idle_exit;
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
        drain_deadline: CancellationToken,
        clients: TaskTracker,
    ) {
        let Self { signals, forwarder, commands, board, pool, logins, listeners, .. } = self;
        let timeout = forwarder.config().service.shutdown_timeout;
        notify::stopping(
            "finishing running requests",
            timeout + defaults::DRAIN_DEADLINE + defaults::SERVERS_END_TIMEOUT,
        );
        tracing::info!("stopping");
        // The senders of queued commands learn that these are not executed.
        commands.close();
        while commands.try_recv().is_ok() {}
        board.serving(false);
        stop.cancel();
        clients.close();
        let orderly = async {
            if time::timeout(timeout, clients.wait()).await.is_err() {
                let n_connections = clients.len();
                tracing::warn!(
                    n_connections,
                    "requests on {n_connections} connections are cut off: they took longer than {timeout:?}"
                );
            }
            drain_deadline.cancel();
            let _cut_off = time::timeout(defaults::DRAIN_DEADLINE, clients.wait()).await;
            // A refresh token is valid once: its successor must be stored.
            let stored = time::timeout(defaults::SERVERS_END_TIMEOUT, logins.close());
            let ((), _late) = tokio::join!(close(pool), stored);
        };
        drain(signals, listeners, orderly).await;
    }
}
