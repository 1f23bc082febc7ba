//! Tests of the pool with in-process servers, in virtual time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use proptest::prelude::*;
use tokio::{
    sync::mpsc,
    task::{JoinHandle, yield_now},
    time::{self, Instant},
};

use super::*;
use crate::{
    capacity_holder::Holder,
    config::{self, LifecycleConfig, SharingMode},
    connection::{
        Announcement,
        in_process::{InProcessLauncher, InProcessServer, ServerBehaviour, declared},
    },
};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// A pool of in-process servers.
struct Rig {
    pool: Pool,
    servers: Arc<InProcessLauncher>,
    announced: mpsc::Receiver<Announcement>,
}

impl Rig {
    fn new(rules: config::PoolConfig, all: &[(&str, config::ServerConfig)]) -> Self {
        let servers = InProcessLauncher::new();
        let (dialer, announced) = servers.dialer();
        let config = config(rules, all);
        Self { pool: Pool::new(dialer, &config), servers, announced }
    }

    fn server(&self, name: &str) -> Arc<InProcessServer> {
        self.servers.of(name)
    }

    fn slot(&self, name: &str) -> Arc<ServerSlot> {
        self.pool.slot(name).expect("declared")
    }

    async fn lease(&self, name: &str) -> ConnectionLease {
        self.slot(name).lease(None, Instant::now() + MINUTE).await.expect("a connection")
    }

    /// Uses a connection for a moment.
    async fn touch(&self, name: &str) {
        drop(self.lease(name).await);
        time::sleep(MS).await;
    }

    /// Requests a connection in the background, for at most `timeout`.
    fn ask(&self, name: &str, timeout: Duration) -> JoinHandle<Result<ConnectionLease, SlotError>> {
        self.ask_as(None, name, timeout)
    }

    fn ask_as(
        &self,
        owner: Option<SessionOwner>,
        name: &str,
        timeout: Duration,
    ) -> JoinHandle<Result<ConnectionLease, SlotError>> {
        let slot = self.slot(name);
        #[expect(clippy::disallowed_methods, reason = "a test waits for it")]
        tokio::spawn(async move { slot.lease(owner.as_ref(), Instant::now() + timeout).await })
    }

    /// Applies a configuration, and returns the servers that it changes.
    fn apply(&self, config: &Config) -> ServerDiff {
        let _lock = self.pool.lock_servers();
        let diff = self.pool.compare(&config.servers);
        self.pool.apply(&config.servers, &diff, config, MINUTE);
        diff
    }

    fn state(&self, name: &str) -> LifecycleState {
        self.slot(name).status().state
    }

    fn living(&self, names: &[&str]) -> Vec<usize> {
        names.iter().map(|name| self.server(name).n_living()).collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        assert_eq!(self.pool.status().illegal_transitions, 0);
    }
}

fn config(rules: config::PoolConfig, all: &[(&str, config::ServerConfig)]) -> Config {
    let servers: BTreeMap<_, _> = all
        .iter()
        .map(|(name, server)| (ServerName::new(name).expect("a name"), Arc::new(server.clone())))
        .collect();
    Config { pool: rules, servers, ..Config::default() }
}

fn size(size: usize) -> config::PoolConfig {
    config::PoolConfig { size, ..config::PoolConfig::default() }
}

fn lazy(name: &str) -> (&str, config::ServerConfig) {
    (name, declared(name))
}

fn with(
    name: &str,
    change: impl FnOnce(&mut config::ServerConfig),
) -> (&str, config::ServerConfig) {
    let mut server = declared(name);
    change(&mut server);
    (name, server)
}

fn kept(name: &str) -> (&str, config::ServerConfig) {
    with(name, |server| {
        server.start = StartPolicy::Eager;
        server.lifecycle = LifecycleConfig::KeepAlive { idle_timeout: None };
    })
}

/// Requests a missing server until its breaker trips.
async fn trip(slot: &ServerSlot) {
    for _ in 0..defaults::FAILURE_THRESHOLD {
        let permit = slot.gate().admit(Holder::SERVICE).expect("it has not tripped");
        let Err(error) = slot.lease(None, Instant::now()).await else { panic!("it is missing") };
        permit.failed(error.fault(), None, &error, None);
    }
}

/// Returns the result of `work`, and its duration.
async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let begin = Instant::now();
    let done = work.await;
    (done, begin.elapsed())
}

/// Lets all tasks run that need no time.
async fn run_ready_tasks() {
    for _ in 0..200 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_unused_connection_is_closed_at_its_idle_timeout_and_not_before() {
    let rig = Rig::new(size(5), &[lazy("a")]);
    assert_eq!(rig.state("a"), LifecycleState::Idle);
    let lease = rig.lease("a").await;
    assert_eq!(rig.state("a"), LifecycleState::Active);
    time::sleep(10 * MINUTE).await;
    assert_eq!(rig.state("a"), LifecycleState::Active, "a connection in use has no idle timeout");
    drop(lease);
    let released = Instant::now();
    assert_eq!(rig.state("a"), LifecycleState::Idle);

    time::sleep_until(released + 5 * MINUTE - MS).await;
    assert_eq!((rig.state("a"), rig.living(&["a"])), (LifecycleState::Idle, vec![1]));
    time::sleep_until(released + 5 * MINUTE + MS).await;
    assert_eq!((rig.state("a"), rig.living(&["a"])), (LifecycleState::Closed, vec![0]));
    assert_eq!(rig.pool.status().swept, 1);
    assert_eq!(rig.pool.status().connections, 0);
}

#[tokio::test(start_paused = true)]
async fn each_use_restarts_the_idle_timeout() {
    let rig = Rig::new(size(5), &[lazy("a")]);
    for _ in 0..10 {
        rig.touch("a").await;
        time::sleep(5 * MINUTE - 2 * MS).await;
        assert_eq!(rig.living(&["a"]), [1]);
    }
    assert_eq!(rig.server("a").n_launches(), 1);
    time::sleep(3 * MS).await;
    assert_eq!(rig.living(&["a"]), [0]);
}

#[tokio::test(start_paused = true)]
async fn the_next_request_reconnects_a_server_that_was_closed_while_idle() {
    let mut rig = Rig::new(size(5), &[lazy("a")]);
    let lists = Arc::clone(rig.lease("a").await.connection.lists());
    time::sleep(6 * MINUTE).await;
    assert!(rig.slot("a").has(&lists, None), "the known lists stay valid");
    while rig.announced.try_recv().is_ok() {}

    rig.touch("a").await;
    assert_eq!((rig.state("a"), rig.server("a").n_launches()), (LifecycleState::Idle, 2));
    assert!(!rig.slot("a").has(&lists, None));
    assert!(rig.announced.try_recv().is_err(), "nothing has changed");
    assert_eq!(rig.slot("a").status().last_error, None);
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_that_survives_the_end_of_its_input_is_killed_at_once_if_a_client_waits() {
    let rig = Rig::new(size(1), &[lazy("a"), lazy("b")]);
    rig.server("a").set_behaviour(ServerBehaviour::Clings);
    // It is closed at its idle timeout, and used again meanwhile.
    rig.touch("a").await;
    time::sleep(5 * MINUTE).await;
    let (again, waited) = timed(rig.lease("a")).await;
    assert!(waited < 2 * SECOND, "{waited:?}");
    drop(again);

    // It is evicted for another server.
    let (_other, waited) = timed(rig.lease("b")).await;
    assert!(waited < 2 * SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ended_by_itself_announces_its_lists_after_the_restart() {
    let mut rig = Rig::new(size(5), &[lazy("a")]);
    let lists = Arc::clone(rig.lease("a").await.connection.lists());
    rig.server("a").kill();
    run_ready_tasks().await;
    assert_eq!(rig.state("a"), LifecycleState::Closed, "nothing has failed");
    assert!(rig.slot("a").status().last_error.is_some());
    assert!(!rig.slot("a").has(&lists, None));
    while rig.announced.try_recv().is_ok() {}

    rig.touch("a").await;
    let announced = rig.announced.try_recv().expect("a notice that the lists changed");
    assert_eq!(announced.message.message().method(), Some("notifications/tools/list_changed"));
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_server_is_closed_within_100_ms_of_its_last_answer() {
    let ephemeral = with("a", |server| server.lifecycle = LifecycleConfig::Ephemeral);
    let rules = config::PoolConfig { min_size: 3, ..size(5) };
    let rig = Rig::new(rules, &[ephemeral]);
    for n_launches in 1..4 {
        let (first, second) = (rig.lease("a").await, rig.lease("a").await);
        drop(first);
        time::sleep(MINUTE).await;
        assert_eq!(rig.living(&["a"]), [1], "a lease is left");
        drop(second);
        time::sleep(99 * MS).await;
        assert_eq!((rig.living(&["a"]), rig.server("a").n_launches()), (vec![0], n_launches));
    }
}

#[tokio::test(start_paused = true)]
async fn a_keep_alive_server_stays_connected_until_its_own_idle_timeout() {
    let own = |server: &mut config::ServerConfig| {
        server.lifecycle = LifecycleConfig::KeepAlive { idle_timeout: Some(30 * MINUTE) };
    };
    let rig = Rig::new(size(5), &[kept("kept"), with("own", own)]);
    rig.touch("kept").await;
    rig.touch("own").await;
    time::sleep(29 * MINUTE).await;
    assert_eq!(rig.living(&["kept", "own"]), [1, 1]);
    time::sleep(MINUTE).await;
    assert_eq!(rig.living(&["kept", "own"]), [1, 0]);
    time::sleep(1000 * MINUTE).await;
    assert_eq!(rig.living(&["kept"]), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_watched_connection_stays_open_and_its_idle_timeout_starts_when_the_watch_ends() {
    let rig = Rig::new(size(5), &[lazy("a")]);
    let slot = rig.slot("a");
    slot.set_demand(None, || ClientDemand {
        uris: ["x".to_owned()].into(),
        ..ClientDemand::default()
    })
    .await;
    rig.touch("a").await;
    time::sleep(60 * MINUTE).await;
    assert_eq!(rig.living(&["a"]), [1]);

    slot.set_demand(None, ClientDemand::default).await;
    time::sleep(5 * MINUTE - SECOND).await;
    assert_eq!(rig.living(&["a"]), [1]);
    time::sleep(2 * SECOND).await;
    assert_eq!(rig.living(&["a"]), [0]);
}

#[tokio::test(start_paused = true)]
async fn the_idle_sweep_keeps_the_minimum_of_connections() {
    let rules = config::PoolConfig { min_size: 1, ..size(5) };
    let rig = Rig::new(rules, &[lazy("a"), lazy("b")]);
    rig.touch("a").await;
    rig.touch("b").await;
    time::sleep(60 * MINUTE).await;
    assert_eq!(rig.living(&["a", "b"]), [0, 1], "the most recently used one stays");
    rig.touch("a").await;
    time::sleep(MS).await;
    assert_eq!(rig.living(&["a", "b"]), [1, 0], "and it is closed when another one is used");
}

#[tokio::test(start_paused = true)]
async fn the_pool_evicts_the_least_recently_used_connection() {
    let rig = Rig::new(size(2), &[lazy("a"), lazy("b"), lazy("c")]);
    rig.touch("a").await;
    rig.touch("b").await;
    rig.touch("a").await;
    rig.touch("c").await;
    assert_eq!(rig.living(&["a", "b", "c"]), [1, 0, 1]);
    assert_eq!((rig.pool.status().evicted, rig.state("b")), (1, LifecycleState::Closed));
}

#[tokio::test(start_paused = true)]
async fn the_pool_does_not_evict_a_keep_alive_server() {
    let rig = Rig::new(size(2), &[kept("kept"), lazy("b"), lazy("c")]);
    rig.touch("kept").await;
    rig.touch("b").await;
    rig.touch("c").await;
    assert_eq!(rig.living(&["kept", "b", "c"]), [1, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn there_are_never_more_processes_than_pool_permits() {
    let rig = Rig::new(size(1), &[lazy("a"), lazy("b")]);
    rig.server("a").set_behaviour(ServerBehaviour::Clings);
    rig.touch("a").await;
    let asked = Instant::now();
    rig.touch("b").await;
    assert!(asked.elapsed() >= Duration::from_millis(1550), "the old process ended first");
    assert_eq!(rig.living(&["a", "b"]), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn requests_wait_in_order_while_all_permits_are_in_use() {
    let rig = Rig::new(size(1), &[lazy("a"), lazy("b"), lazy("c")]);
    let lease = rig.lease("a").await;
    let b = rig.ask("b", MINUTE);
    run_ready_tasks().await;
    let c = rig.ask("c", MINUTE);
    run_ready_tasks().await;
    assert_eq!(rig.pool.status().waiting, 2);
    assert_eq!(rig.slot("b").status().waiting, 1);
    assert_eq!(rig.living(&["b", "c"]), [0, 0]);

    drop(lease);
    let b = b.await.expect("no panic").expect("a connection");
    run_ready_tasks().await;
    assert_eq!(rig.living(&["a", "b", "c"]), [0, 1, 0]);
    drop(b);
    c.await.expect("no panic").expect("a connection");
    assert_eq!(rig.living(&["a", "b", "c"]), [0, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn by_default_20_connections_exist_at_a_time_and_the_21st_request_waits() {
    let names: Vec<String> = (1..=21).map(|number| format!("s{number}")).collect();
    let all: Vec<_> = names.iter().map(|name| lazy(name)).collect();
    let rig = Rig::new(config::PoolConfig::default(), &all);
    let mut leases = Vec::new();
    for name in &names[..20] {
        leases.push(rig.lease(name).await);
    }
    let last = rig.ask("s21", MINUTE);
    run_ready_tasks().await;
    assert_eq!((rig.pool.status().waiting, rig.server("s21").n_launches()), (1, 0));

    leases.pop();
    let _last = last.await.expect("no panic").expect("a connection");
    let living = names.iter().map(|name| rig.server(name).n_living()).sum::<usize>();
    assert_eq!(living, 20);
}

#[tokio::test(start_paused = true)]
async fn an_aborted_request_gets_no_permit() {
    let rig = Rig::new(size(1), &[lazy("a"), lazy("b"), lazy("c")]);
    let lease = rig.lease("a").await;
    let b = rig.ask("b", MINUTE);
    run_ready_tasks().await;
    let c = rig.ask("c", MINUTE);
    run_ready_tasks().await;
    b.abort();
    run_ready_tasks().await;
    assert_eq!(rig.pool.status().waiting, 1);

    drop(lease);
    c.await.expect("no panic").expect("a connection");
    assert_eq!(rig.server("b").n_launches(), 0);

    // A new request for it is served.
    rig.touch("b").await;
    assert_eq!(rig.server("b").n_launches(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_reserve_is_for_requests_that_have_waited() {
    let rules = config::PoolConfig { reserve_size: 1, ..size(1) };
    let rig = Rig::new(rules, &[lazy("a"), lazy("b"), lazy("c")]);
    let _a = rig.lease("a").await;
    let asked = Instant::now();
    let _b = rig.lease("b").await;
    assert_eq!(asked.elapsed(), 5 * SECOND);
    let error = rig.slot("c").lease(None, Instant::now() + 20 * SECOND).await;
    assert!(matches!(error, Err(SlotError::Exhausted { .. })), "the reserve is used up");
}

#[tokio::test(start_paused = true)]
async fn a_changed_reserve_timeout_applies_to_waiting_requests() {
    let all = [lazy("a"), lazy("b"), lazy("c")];
    let hour = 60 * MINUTE;
    let reserve = |after| config::PoolConfig { reserve_size: 1, reserve_timeout: after, ..size(1) };
    let rig = Rig::new(reserve(hour), &all);
    let _held = rig.lease("a").await;
    let waiting = rig.ask("b", hour);
    time::sleep(SECOND).await;
    rig.apply(&config(reserve(3 * SECOND), &all));
    time::sleep(SECOND).await;
    assert!(!waiting.is_finished());
    time::sleep(SECOND + MS).await;
    assert!(waiting.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_request_during_the_exit_of_an_evicted_process_reports_pool_exhaustion() {
    let rig = Rig::new(size(1), &[lazy("a"), lazy("b")]);
    rig.touch("a").await;
    rig.server("a").set_behaviour(ServerBehaviour::Clings);
    let asked = Instant::now();
    let other = rig.ask("b", MINUTE);
    run_ready_tasks().await;
    // Its attempt begins with the end of the last process, which takes longer than this may wait.
    let refused = rig.ask("a", SECOND).await.expect("no panic").expect_err("there is no room");
    assert!(matches!(refused, SlotError::Exhausted { .. }), "{refused}");
    assert!(asked.elapsed() < 2 * SECOND, "{:?}", asked.elapsed());
    let _held = other.await.expect("no panic").expect("a connection");
}

#[tokio::test(start_paused = true)]
async fn the_error_of_an_exhausted_pool_names_the_servers_that_hold_connections() {
    let rig = Rig::new(size(2), &[lazy("a"), kept("kept"), lazy("b")]);
    rig.touch("kept").await;
    let _leases = [rig.lease("a").await, rig.lease("a").await];
    let asked = Instant::now();
    let error = rig.slot("b").lease(None, asked + 20 * SECOND).await.expect_err("no room");
    assert_eq!(asked.elapsed(), 20 * SECOND);
    insta::assert_snapshot!(error, @"server `b` got no connection: all 2 connections of the pool are taken (a: 1 in use by 2 requests; kept: 1 idle)");
    run_ready_tasks().await;
    assert_eq!(rig.pool.status().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_waiting_requests_cause_one_connection_attempt() {
    let rig = Rig::new(size(1), &[lazy("a"), lazy("b")]);
    let lease = rig.lease("a").await;
    let asking: Vec<_> = (0..100).map(|_| rig.ask("b", MINUTE)).collect();
    run_ready_tasks().await;
    assert_eq!(rig.pool.status().waiting, 1);
    drop(lease);
    for asked in asking {
        asked.await.expect("no panic").expect("a connection");
    }
    assert_eq!(rig.server("b").n_launches(), 1);
}

#[tokio::test(start_paused = true)]
async fn changed_pool_limits_take_effect_at_once() {
    let all = [lazy("a"), lazy("b"), lazy("c")];
    let rig = Rig::new(size(3), &all);
    for name in ["a", "b", "c"] {
        rig.touch(name).await;
    }
    let apply = |rules| rig.apply(&config(rules, &all));
    apply(size(1));
    run_ready_tasks().await;
    assert_eq!(rig.living(&["a", "b", "c"]), [0, 0, 1]);

    let _held = rig.lease("c").await;
    let waiting = rig.ask("a", MINUTE);
    run_ready_tasks().await;
    assert!(!waiting.is_finished());
    apply(config::PoolConfig { idle_timeout: Some(SECOND), ..size(2) });
    drop(waiting.await.expect("no panic").expect("a connection"));
    time::sleep(SECOND + MS).await;
    assert_eq!(rig.living(&["a", "c"]), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn the_difference_to_other_servers_names_what_is_added_removed_and_changed() {
    let names = |all: &[&str]| -> Vec<_> {
        all.iter().map(|name| ServerName::new(name).expect("a name")).collect()
    };
    let (there, a) = (lazy("there"), lazy("a"));
    let other = || with("a", |server| server.start_timeout = 7 * SECOND);
    for (what, after, expected) in [
        ("the same", vec![there.clone(), a.clone()], ServerDiff::default()),
        (
            "another declaration",
            vec![there.clone(), other()],
            ServerDiff { changed: names(&["a"]), ..ServerDiff::default() },
        ),
        (
            "no longer declared",
            vec![there.clone()],
            ServerDiff { removed: names(&["a"]), ..ServerDiff::default() },
        ),
        (
            "one more",
            vec![there.clone(), a.clone(), lazy("b")],
            ServerDiff { added: names(&["b"]), ..ServerDiff::default() },
        ),
        (
            "all at once",
            vec![lazy("c"), other(), lazy("b")],
            ServerDiff {
                added: names(&["b", "c"]),
                removed: names(&["there"]),
                changed: names(&["a"]),
            },
        ),
    ] {
        let rig = Rig::new(size(3), &[there.clone(), a.clone()]);
        let after = config(size(3), &after);
        assert_eq!(rig.apply(&after), expected, "{what}");
        assert_eq!(rig.apply(&after), ServerDiff::default(), "{what}: the pool has them now");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_above_a_reduced_pool_size_is_closed_when_its_last_lease_ends() {
    let all = [lazy("a"), lazy("b")];
    let rig = Rig::new(size(2), &all);
    let (first, _second) = (rig.lease("a").await, rig.lease("b").await);
    rig.apply(&config(size(1), &all));
    run_ready_tasks().await;
    assert_eq!(rig.living(&["a", "b"]), [1, 1], "permits in use stay valid");
    drop(first);
    run_ready_tasks().await;
    assert_eq!(rig.living(&["a", "b"]), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn the_most_recently_used_of_several_connections_is_reused_and_the_others_are_closed() {
    let exclusive =
        with("a", |server| server.sharing = SharingMode::Exclusive { max_connections: 3 });
    let rig = Rig::new(size(5), &[exclusive]);
    let leases = [rig.lease("a").await, rig.lease("a").await, rig.lease("a").await];
    let last = leases[2].connection.generation();
    for lease in leases {
        drop(lease);
        time::sleep(MS).await;
    }
    for _ in 0..10 {
        let foreseen = rig.slot("a").live(None).map(|connection| connection.generation());
        assert_eq!(foreseen, Some(last), "its lists are current");
        let lease = rig.lease("a").await;
        assert_eq!(lease.connection.generation(), last);
        drop(lease);
        time::sleep(MINUTE).await;
    }
    assert_eq!((rig.living(&["a"]), rig.server("a").n_launches()), (vec![1], 3));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_room_takes_a_returned_connection_of_its_own_server() {
    let exclusive =
        with("a", |server| server.sharing = SharingMode::Exclusive { max_connections: 3 });
    let rig = Rig::new(size(1), &[exclusive]);
    let lease = rig.lease("a").await;
    let second = rig.ask("a", MINUTE);
    run_ready_tasks().await;
    assert!(!second.is_finished());
    drop(lease);
    second.await.expect("no panic").expect("a connection");
    assert_eq!(rig.server("a").n_launches(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_inherits_a_connection_does_not_raise_the_connection_count_above_its_limit()
{
    let exclusive =
        with("a", |server| server.sharing = SharingMode::Exclusive { max_connections: 2 });
    let rig = Rig::new(size(5), &[exclusive]);
    let lease = rig.lease("a").await;
    rig.server("a").set_behaviour(ServerBehaviour::Hangs);
    // It begins to connect, and gets the returned connection.
    let waiter = rig.ask("a", MINUTE);
    run_ready_tasks().await;
    drop(lease);
    // This request comes before the other one has seen its connection.
    let slot = rig.slot("a");
    let next = slot.lease(None, Instant::now() + MINUTE);
    assert!(time::timeout(SECOND, next).await.is_err());
    let _held = waiter.await.expect("no panic").expect("a connection");
    assert_eq!(rig.server("a").n_living(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_returned_connection_waits_behind_an_earlier_request_for_another_server() {
    let exclusive =
        with("a", |server| server.sharing = SharingMode::Exclusive { max_connections: 3 });
    let rig = Rig::new(size(1), &[exclusive, lazy("b")]);
    let lease = rig.lease("a").await;
    let other = rig.ask("b", MINUTE);
    run_ready_tasks().await;
    let waiters = [rig.ask("a", MINUTE), rig.ask("a", MINUTE)];
    run_ready_tasks().await;
    drop(lease);
    let other = other.await.expect("no panic").expect("a connection");
    assert!(!waiters[0].is_finished() && !waiters[1].is_finished());
    drop(other);
    for waiter in waiters {
        drop(waiter.await.expect("no panic").expect("a connection"));
    }
    assert_eq!(rig.server("a").n_launches(), 2, "the second waiter gets the returned connection");
}

#[tokio::test(start_paused = true)]
async fn the_pool_retries_a_keep_alive_server_after_its_first_connection_attempt_failed() {
    let rig = Rig::new(size(5), &[kept("a")]);
    rig.server("a").set_behaviour(ServerBehaviour::Missing);
    rig.pool.warm_up().await;
    run_ready_tasks().await;
    assert_eq!((rig.state("a"), rig.server("a").n_launches()), (LifecycleState::Failed, 1));
    assert!(rig.slot("a").status().is_missing);

    // Pauses of 1 + 2 + 4 + … s: between 1 and 2 minutes after the start, then one a minute.
    time::sleep(4 * MINUTE).await;
    let n_launches = rig.server("a").n_launches();
    assert!((8..=14).contains(&n_launches), "{n_launches}");
    rig.server("a").set_behaviour(ServerBehaviour::Good);
    time::sleep(MINUTE + SECOND).await;
    assert_eq!((rig.state("a"), rig.living(&["a"])), (LifecycleState::Idle, vec![1]));

    // It was connected long enough for the pauses to start over.
    let n_launches = rig.server("a").n_launches();
    time::sleep(defaults::STABLE_AFTER).await;
    rig.server("a").kill();
    time::sleep(SECOND + MS).await;
    assert_eq!(
        (rig.state("a"), rig.server("a").n_launches()),
        (LifecycleState::Idle, n_launches + 1)
    );
}

#[tokio::test(start_paused = true)]
async fn the_pool_reconnects_an_eager_server_until_its_idle_timeout_has_closed_it() {
    let hour = 60 * MINUTE;
    let eager = with("a", |server| {
        server.start = StartPolicy::Eager;
        server.lifecycle = LifecycleConfig::KeepAlive { idle_timeout: Some(hour) };
    });
    let rig = Rig::new(size(5), &[eager]);
    let (server, slot) = (rig.server("a"), rig.slot("a"));
    server.set_behaviour(ServerBehaviour::Missing);
    rig.pool.warm_up().await;
    time::sleep(MINUTE).await;
    assert!(slot.status().is_missing);
    server.set_behaviour(ServerBehaviour::Good);
    time::sleep(2 * MINUTE).await;
    assert_eq!((rig.living(&["a"]), slot.status().is_missing), (vec![1], false));

    let n_launches = server.n_launches();
    time::sleep(24 * hour).await;
    assert_eq!((rig.living(&["a"]), server.n_launches()), (vec![0], n_launches));
    assert!(!slot.status().is_missing, "no client has used it");
}

#[tokio::test(start_paused = true)]
async fn a_server_stays_disconnected_after_max_reconnects_until_a_request_needs_it() {
    let hour = 60 * MINUTE;
    let (name, mut server) = kept("a");
    server.health.max_reconnects = Some(3);
    let rig = Rig::new(size(5), &[(name, server)]);
    let server = rig.server("a");
    server.set_behaviour(ServerBehaviour::Missing);
    rig.pool.warm_up().await;
    time::sleep(hour).await;
    assert_eq!(server.n_launches(), 4, "one attempt and three reconnects");

    rig.ask("a", MINUTE).await.expect("no panic").expect_err("it is missing still");
    time::sleep(hour).await;
    assert_eq!(server.n_launches(), 5, "only for the request");

    server.set_behaviour(ServerBehaviour::Good);
    rig.touch("a").await;
    server.set_behaviour(ServerBehaviour::Missing);
    server.kill();
    time::sleep(hour).await;
    assert_eq!(server.n_launches(), 9, "it was connected: three reconnects again");
}

#[tokio::test(start_paused = true)]
async fn a_background_reconnect_is_the_probe_of_the_breaker() {
    let rig = Rig::new(size(5), &[kept("a")]);
    let (server, slot) = (rig.server("a"), rig.slot("a"));
    server.set_behaviour(ServerBehaviour::Missing);
    trip(&slot).await;
    assert!(slot.gate().admit(Holder::SERVICE).is_err(), "it has tripped");
    let n_launches = server.n_launches();
    time::sleep(29 * SECOND).await;
    assert_eq!(server.n_launches(), n_launches, "no attempt before the cooldown is over");

    server.set_behaviour(ServerBehaviour::Good);
    time::sleep(2 * SECOND).await;
    assert_eq!((server.n_launches(), rig.state("a")), (n_launches + 1, LifecycleState::Idle));
    assert!(
        slot.gate().admit(Holder::SERVICE).is_ok_and(|permit| !permit.is_probe()),
        "normal again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_a_request_made_does_not_complete_the_probe() {
    let rig = Rig::new(size(5), &[kept("a")]);
    let (server, slot) = (rig.server("a"), rig.slot("a"));
    server.set_behaviour(ServerBehaviour::Missing);
    trip(&slot).await;
    // The background attempt waits for the end of the cooldown.
    time::sleep(10 * SECOND).await;
    server.set_behaviour(ServerBehaviour::Good);
    rig.touch("a").await;
    time::sleep(MINUTE).await;
    assert!(
        slot.gate().admit(Holder::SERVICE).is_ok_and(|permit| permit.is_probe()),
        "no request has reached it yet"
    );
}

#[tokio::test(start_paused = true)]
async fn the_pool_reconnects_a_lazy_server_as_long_as_a_client_watches_it() {
    let rig = Rig::new(size(5), &[lazy("a")]);
    let (server, slot) = (rig.server("a"), rig.slot("a"));
    slot.set_demand(None, || ClientDemand {
        uris: ["x".to_owned()].into(),
        ..ClientDemand::default()
    })
    .await;
    rig.touch("a").await;
    server.set_behaviour(ServerBehaviour::Missing);
    server.kill();
    time::sleep(5 * MINUTE).await;
    let n_launches = server.n_launches();
    assert!(n_launches > 5, "{n_launches}");

    slot.set_demand(None, ClientDemand::default).await;
    time::sleep(60 * MINUTE).await;
    assert_eq!(server.n_launches(), n_launches);
}

#[tokio::test(start_paused = true)]
async fn a_keep_alive_server_restarts_by_itself_and_a_lazy_one_on_demand() {
    let rig = Rig::new(size(5), &[kept("kept"), lazy("lazy")]);
    rig.touch("kept").await;
    rig.touch("lazy").await;
    for name in ["kept", "lazy"] {
        rig.server(name).kill();
    }
    time::sleep(10 * SECOND).await;
    assert_eq!(rig.living(&["kept", "lazy"]), [1, 0]);
    rig.touch("lazy").await;
    assert_eq!(rig.living(&["kept", "lazy"]), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_under_a_request_fails_and_its_lease_is_void() {
    let rig = Rig::new(size(5), &[lazy("a")]);
    let lease = rig.lease("a").await;
    rig.server("a").kill();
    run_ready_tasks().await;
    assert_eq!(rig.state("a"), LifecycleState::Failed);
    let next = rig.lease("a").await;
    assert_eq!(rig.state("a"), LifecycleState::Active);
    drop(lease);
    assert_eq!(rig.state("a"), LifecycleState::Active, "it was a lease of the old connection");
    drop(next);
    assert_eq!(rig.state("a"), LifecycleState::Idle);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_connects_and_closes_leak_no_task() {
    let ephemeral = with("a", |server| server.lifecycle = LifecycleConfig::Ephemeral);
    let rig = Rig::new(size(5), &[ephemeral]);
    let mut n_tasks = Vec::new();
    for n_cycles in 1..=1000 {
        rig.touch("a").await;
        time::sleep(100 * MS).await;
        assert_eq!(rig.living(&["a"]), [0], "cycle {n_cycles}");
        n_tasks.push(rig.pool.dialer.tasks().len());
    }
    assert_eq!(rig.server("a").n_launches(), 1000);
    assert_eq!(n_tasks.first(), n_tasks.last(), "{n_tasks:?}");
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_has_no_process_and_takes_no_request() {
    let rig = Rig::new(size(5), &[kept("kept"), lazy("lazy"), lazy("hangs")]);
    rig.server("hangs").set_behaviour(ServerBehaviour::Hangs);
    rig.pool.warm_up().await;
    let dialling = rig.ask("hangs", MINUTE);
    let lease = rig.lease("lazy").await;
    run_ready_tasks().await;
    rig.pool.close().await;
    assert_eq!(rig.living(&["kept", "lazy", "hangs"]), [0, 0, 0]);
    assert!(dialling.await.expect("no panic").is_err());
    drop(lease);
    let late = rig.slot("kept").lease(None, Instant::now() + MINUTE).await;
    assert!(matches!(late, Err(SlotError::Closing(_))));
    assert_eq!(rig.state("kept"), LifecycleState::Closed);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Ask(usize),
    Release(usize),
    Kill(usize),
    Behave(usize, ServerBehaviour),
    Reload { n_permits: usize, min: usize },
    Watch(bool),
    Leave(u64),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let behaviour = prop_oneof![
        6 => Just(ServerBehaviour::Good), 1 => Just(ServerBehaviour::Missing), 1 => Just(ServerBehaviour::Crashes),
        1 => Just(ServerBehaviour::Clings), 1 => Just(ServerBehaviour::Hangs),
    ];
    let step = prop_oneof![
        4 => (0_usize..8).prop_map(Step::Ask),
        4 => (0_usize..10).prop_map(Step::Release),
        1 => (0_usize..6).prop_map(Step::Kill),
        1 => (2_usize..5, 0_usize..2).prop_map(|(n_permits, min)| Step::Reload { n_permits, min }),
        1 => any::<bool>().prop_map(Step::Watch),
        1 => (0_u64..3).prop_map(Step::Leave),
        2 => ((0_usize..6), behaviour).prop_map(|(server, behaviour)| Step::Behave(server, behaviour)),
        4 => prop_oneof![Just(0), 1_u64..100, 1000_u64..400_000].prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any sequence of requests, releases, failures and reloads refuses no transition and exceeds
    /// no limit. No request waits forever, and nothing is left in the end.
    #[test]
    fn the_pool_keeps_its_limits_in_any_sequence_of_events(steps in steps(), n_permits in 2_usize..5) {
        // Longer than 60 lines: one property, with a setup and one `match` over all steps.
        // The last name stands three times: it has three clients.
        const NAMES: [&str; 8] =
            ["lazy", "other", "ephemeral", "exclusive", "kept", "session", "session", "session"];
        const SERVERS: &[&str] = NAMES.split_at(6).0;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let outcome: Result<(), TestCaseError> = runtime.block_on(async {
            let rules = |n_permits, min_size| {
                config::PoolConfig { reserve_size: 1, min_size, ..size(n_permits) }
            };
            let all = [
                lazy("lazy"),
                lazy("other"),
                with("ephemeral", |server| server.lifecycle = LifecycleConfig::Ephemeral),
                with("exclusive", |server| server.sharing = SharingMode::Exclusive { max_connections: 2 }),
                kept("kept"),
                with("session", |server| server.sharing = SharingMode::Session { max_connections: 2 }),
            ];
            let rig = Rig::new(rules(n_permits, 0), &all);
            let mut clients = [0, 1, 2].map(|key| SessionOwner::new(key, "{}"));
            let (mut room, mut asked) = (n_permits, Vec::new());
            for step in steps {
                match step {
                    Step::Ask(server) => {
                        let owner = server.checked_sub(5).map(|client| clients[client].clone());
                        asked.push(rig.ask_as(owner, NAMES[server], MINUTE));
                    }
                    Step::Release(n) if n < asked.len() => asked.remove(n).abort_or_drop().await,
                    Step::Release(_) => {}
                    Step::Kill(server) => rig.server(NAMES[server]).kill(),
                    Step::Behave(server, behaviour) => rig.server(NAMES[server]).set_behaviour(behaviour),
                    Step::Reload { n_permits, min } => {
                        // Permits that are in use stay valid.
                        room = rig.pool.status().connections.max(n_permits + 1) - 1;
                        rig.apply(&config(rules(n_permits, min), &all));
                    }
                    Step::Watch(is_watched) => {
                        let uris = is_watched.then(|| "x".to_owned()).into_iter().collect();
                        let demand = ClientDemand { uris, ..ClientDemand::default() };
                        rig.slot("lazy").set_demand_in_background(None, || demand);
                    }
                    Step::Leave(key) => {
                        let client = &mut clients[usize::try_from(key).expect("small")];
                        client.close();
                        rig.pool.release(client);
                        *client = SessionOwner::new(client.key + 3, "{}");
                    }
                    Step::Wait(ms) => time::sleep(Duration::from_millis(ms)).await,
                }
                run_ready_tasks().await;
                let n_living: usize = rig.living(SERVERS).iter().sum();
                prop_assert!(n_living <= room + 1, "{} processes", n_living);
                prop_assert!(rig.living(&["exclusive"])[0] <= 2);
                prop_assert!(rig.living(&["session"])[0] <= 2);
                prop_assert!(rig.pool.status().connections <= room + 1);
            }
            // Every request ends, with a connection or an error.
            for one in asked {
                let answered = time::timeout(10 * MINUTE, one).await;
                prop_assert!(answered.is_ok(), "a request waits forever");
            }
            rig.pool.close().await;
            prop_assert_eq!(rig.living(SERVERS).iter().sum::<usize>(), 0);
            prop_assert_eq!(rig.pool.status().connections, 0);
            prop_assert_eq!(rig.pool.status().illegal_transitions, 0);
            Ok(())
        });
        outcome?;
    }
}

/// A request that a test can end: it returns the lease, or cancels the wait.
trait AbortOrDrop {
    async fn abort_or_drop(self);
}

impl AbortOrDrop for JoinHandle<Result<ConnectionLease, SlotError>> {
    async fn abort_or_drop(self) {
        if self.is_finished() {
            drop(self.await);
        } else {
            self.abort();
        }
    }
}
