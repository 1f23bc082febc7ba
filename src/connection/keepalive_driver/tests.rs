use std::{convert::Infallible, future::Future};

use tokio::{task, time::Instant};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    config::LifecycleConfig,
    connection::{
        ConnectionLimits, ConnectionOwner, ReconnectWindow,
        in_process::{InProcessLauncher, InProcessServer, declared},
    },
    protocol::Message,
    server_name::ServerName,
};

const KEPT: LifecycleConfig = LifecycleConfig::KeepAlive { idle_timeout: None };
const HOUR: Duration = Duration::from_secs(3600);

/// Connects a test server with this lifecycle.
async fn connect(lifecycle: LifecycleConfig) -> (Arc<Connection>, Arc<InProcessServer>) {
    let servers = InProcessLauncher::new();
    let (dialer, _announced) = servers.dialer();
    let name = ServerName::new("test").expect("a name");
    let declared = crate::config::ServerConfig { lifecycle, ..declared("test") };
    let closing = CancellationToken::new();
    let dialled =
        dialer.dial(&name, &declared, 1, ConnectionOwner::Shared, closing, ReconnectWindow::none());
    (dialled.await.expect("connects"), servers.of("test"))
}

/// Calls a tool that never answers, with this time limit.
async fn call(connection: &Arc<Connection>, seconds: u64) -> Result<Message, RequestFailure> {
    let limit = Duration::from_secs(seconds);
    let params = r#"{"name":"wait","arguments":{}}"#;
    let request = Message::request("tools/call", Some(params));
    connection.ask(&request, ConnectionLimits { silence: limit, total: limit }).await
}

async fn seconds_of<T>(work: impl Future<Output = T>) -> (u64, T) {
    let begin = Instant::now();
    let done = work.await;
    (begin.elapsed().as_secs(), done)
}

#[tokio::test(start_paused = true)]
async fn a_kept_alive_child_that_hangs_is_closed_after_three_pings() {
    let (connection, server) = connect(KEPT).await;
    time::sleep(HOUR).await;
    assert!(connection.is_live() && server.n_pings() > 60, "a ping for each silence");

    server.set_mute(true);
    let before = server.n_pings();
    let (seconds, ()) = seconds_of(connection.down()).await;

    // A ping of 10 s and a pause of 30 s, both twice, then the last ping.
    assert!((90..=121).contains(&seconds), "{seconds} s");
    assert_eq!((server.n_pings() - before, server.n_living()), (3, 0));
    assert!(matches!(connection.reason(), Some(RequestFailure::Unresponsive)));
}

#[tokio::test(start_paused = true)]
async fn an_idle_pooled_child_is_never_pinged() {
    let (connection, server) = connect(LifecycleConfig::Pooled).await;
    server.set_mute(true);
    time::sleep(24 * HOUR).await;
    assert!(connection.is_live());
    assert_eq!(server.n_pings(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_busy_child_is_neither_pinged_nor_replaced() {
    let (connection, server) = connect(KEPT).await;
    let (work, calls) = (call(&connection, 3600), async {
        while server.n_calls() == 0 {
            task::yield_now().await;
        }
        // It does one thing at a time, and answers no pings meanwhile.
        server.set_mute(true);
        time::sleep(HOUR / 2).await;
        assert_eq!(server.n_pings(), 0);
        server.set_mute(false);
        server.release(1);
    });
    let (answer, ()) = tokio::join!(work, calls);
    answer.expect("an answer after half an hour");
    assert!(connection.is_live());
}

#[tokio::test(start_paused = true)]
async fn a_child_that_hangs_in_a_request_is_replaced_even_if_it_is_not_kept_alive() {
    for lifecycle in [LifecycleConfig::Pooled, KEPT] {
        let (connection, server) = connect(lifecycle).await;
        server.set_mute(true);
        let late = call(&connection, 3600);
        let timed_out = async {
            let failure = call(&connection, 60).await.expect_err("no answer");
            assert!(matches!(failure, RequestFailure::Timeout(_)), "{failure}");
        };
        let all = async { tokio::join!(late, timed_out) };
        let (seconds, (late, ())) = seconds_of(all).await;

        // The silence of a minute, then three pings without a pause.
        assert_eq!((seconds, server.n_pings()), (90, 3), "{lifecycle:?}");
        assert!(matches!(late, Err(RequestFailure::Unresponsive)), "a running request fails too");
        connection.down().await;
        assert_eq!(server.n_living(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_slow_and_answers_a_ping_is_kept() {
    let (connection, server) = connect(LifecycleConfig::Pooled).await;
    call(&connection, 60).await.expect_err("no answer");
    time::sleep(HOUR).await;
    assert!(connection.is_live());
    assert_eq!(server.n_pings(), 1, "suspected once, and cleared");
}

#[tokio::test(start_paused = true)]
async fn a_suspected_server_that_answers_after_two_missed_pings_is_kept() {
    let (connection, server) = connect(LifecycleConfig::Pooled).await;
    server.set_mute(true);
    call(&connection, 60).await.expect_err("no answer");
    while server.n_pings() < 2 {
        time::sleep(Duration::from_secs(1)).await;
    }
    time::sleep(Duration::from_secs(5)).await;
    let traffic = connection.traffic();
    assert_eq!(traffic.missed_pings, 1, "the second one may still be answered");
    let checked = traffic.last_check_ms.expect("there is a connection");
    assert!((5_000..=6_000).contains(&checked), "{checked} ms since the second ping was sent");

    server.set_mute(false);
    time::sleep(HOUR).await;

    assert!(connection.is_live());
    assert_eq!((server.n_pings(), connection.traffic().missed_pings), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_ping_does_not_count_as_use_of_the_connection() {
    let (connection, server) = connect(KEPT).await;
    server.set_mute(true);
    while server.n_pings() == 0 {
        time::sleep(Duration::from_secs(1)).await;
    }
    let traffic = connection.traffic();
    assert_eq!((traffic.in_flight, traffic.draining), (0, 0));
    assert!(connection.is_idle());
    time::sleep(Duration::from_secs(11)).await;
    let traffic = connection.traffic();
    assert_eq!((traffic.in_flight, traffic.draining, traffic.missed_pings), (0, 0, 1));
}

/// Gives up a call that is never answered, after `seconds`.
async fn give_up(connection: &Arc<Connection>, seconds: u64) {
    let given_up = time::timeout(Duration::from_secs(seconds), call(connection, 3600)).await;
    assert!(given_up.is_err(), "it is not answered");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_hangs_in_an_abandoned_request_is_replaced() {
    for lifecycle in [LifecycleConfig::Pooled, KEPT] {
        let (connection, server) = connect(lifecycle).await;
        server.set_mute(true);
        give_up(&connection, 5).await;

        let (seconds, next) = seconds_of(call(&connection, 3600)).await;

        assert!(matches!(next, Err(RequestFailure::Unresponsive)), "{next:?}");
        assert_eq!((seconds, server.n_pings()), (30, 3), "{lifecycle:?}");
        connection.down().await;
        assert_eq!(server.n_living(), 0);
    }
}

/// Makes the server send notifications without end.
async fn flood(connection: &Arc<Connection>) -> Infallible {
    let text =
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    loop {
        for _ in 0..100 {
            connection.receive(Message::parse(text.into()).expect("a message"), None);
        }
        time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_floods_and_answers_nothing_is_replaced() {
    let (connection, server) = connect(LifecycleConfig::Pooled).await;
    server.set_mute(true);
    let failing = async {
        give_up(&connection, 5).await;
        seconds_of(call(&connection, 3600)).await
    };
    let (seconds, next) = tokio::select! {
        never = flood(&connection) => match never {},
        failed = failing => failed,
    };
    assert!(matches!(next, Err(RequestFailure::Unresponsive)), "{next:?}");
    assert_eq!((seconds, server.n_pings()), (30, 3));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_answers_pings_keeps_its_running_requests_after_one_was_abandoned() {
    let (connection, server) = connect(LifecycleConfig::Pooled).await;
    for _ in 0..10 {
        give_up(&connection, 5).await;
    }
    let failure = call(&connection, 3600).await.expect_err("no answer");
    assert!(matches!(failure, RequestFailure::Timeout(_)), "{failure}");
    assert!(connection.is_live());
    assert!((1..=11).contains(&server.n_pings()), "{} pings", server.n_pings());
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_abandoned_requests_causes_one_ping_at_a_time() {
    let (connection, server) = connect(LifecycleConfig::Pooled).await;
    server.set_mute(true);
    let storm = (0..500).map(|_| give_up(&connection, 1));
    futures_util::future::join_all(storm).await;
    time::sleep(Duration::from_secs(8)).await;
    assert_eq!(server.n_pings(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_request_that_is_answered_causes_no_ping() {
    let (connection, server) = connect(LifecycleConfig::Pooled).await;
    give_up(&connection, 5).await;
    server.release(1);
    time::sleep(HOUR).await;
    assert_eq!((server.n_pings(), connection.traffic().late_answers), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_may_be_busy_with_an_older_request_is_not_pinged() {
    let (connection, server) = connect(LifecycleConfig::Pooled).await;
    let (older, ()) = tokio::join!(call(&connection, 3600), async {
        while server.n_calls() == 0 {
            task::yield_now().await;
        }
        // It does one thing at a time, and answers no pings meanwhile.
        server.set_mute(true);
        give_up(&connection, 5).await;
        time::sleep(HOUR / 2).await;
        assert_eq!(server.n_pings(), 0);
        server.set_mute(false);
        server.release(1);
    });
    older.expect("an answer after half an hour");
    assert!(connection.is_live());
}

#[tokio::test(start_paused = true)]
async fn a_child_that_floods_and_may_be_busy_with_an_older_request_is_not_pinged() {
    let (connection, server) = connect(LifecycleConfig::Pooled).await;
    let late = async {
        while server.n_calls() == 0 {
            task::yield_now().await;
        }
        server.set_mute(true);
        let late = call(&connection, 60).await;
        assert!(matches!(late, Err(RequestFailure::Timeout(_))), "{late:?}");
        time::sleep(Duration::from_secs(60)).await;
        assert_eq!(server.n_pings(), 0);
        server.set_mute(false);
        server.release(1);
    };
    let (older, ()) = tokio::select! {
        never = flood(&connection) => match never {},
        both = futures_util::future::join(call(&connection, 3600), late) => both,
    };
    older.expect("an answer after two minutes");
    assert!(connection.is_live());
}
