//! Tests of connections to servers that run inside the test.

use tokio::time;

use super::*;
use crate::{
    capacity_holder::Holder,
    protocol::{Message, jsonrpc::MessagePart},
};

pub(crate) mod in_process;

use in_process::{InProcessLauncher, ServerBehaviour, declared};

const LIMITS: ConnectionLimits =
    ConnectionLimits { silence: Duration::from_secs(60), total: Duration::from_secs(60) };

async fn dial(servers: &Arc<InProcessLauncher>) -> Result<Arc<Connection>, ConnectError> {
    dial_for(servers, ConnectionOwner::Shared).await
}

async fn dial_for(
    servers: &Arc<InProcessLauncher>,
    owner: ConnectionOwner,
) -> Result<Arc<Connection>, ConnectError> {
    let (dialer, _announced) = servers.dialer();
    let name = ServerName::new("test").expect("a name");
    let closing = CancellationToken::new();
    dialer.dial(&name, &declared("test"), 1, owner, closing, ReconnectWindow::none()).await
}

fn call(tool: &str) -> Message {
    Message::request("tools/call", Some(&format!(r#"{{"name":"{tool}","arguments":{{"a":1}}}}"#)))
}

#[tokio::test(start_paused = true)]
async fn an_in_process_server_is_connected_called_and_closed() {
    let servers = InProcessLauncher::new();
    let connection = dial(&servers).await.expect("connects");

    let answer = connection.ask(&call("echo"), LIMITS).await.expect("answers");
    assert!(answer.part(MessagePart::Result).is_some_and(|result| result.contains(r#"{\"a\":1}"#)));

    let server = servers.of("test");
    assert_eq!((server.n_launches(), server.n_living(), server.n_calls()), (1, 1, 1));
    assert!(connection.is_child());
    connection.close();
    connection.down().await;
    assert_eq!((server.n_living(), server.n_living_max()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_until_it_is_released_or_the_server_is_killed() {
    let servers = InProcessLauncher::new();
    let server = servers.of("test");
    let connection = dial(&servers).await.expect("connects");

    let waiting =
        connection.call(Holder::SERVICE, &call("wait"), LIMITS, None).await.expect("sent");
    server.release(1);
    waiting.finish().await.expect("answered");

    let waiting =
        connection.call(Holder::SERVICE, &call("wait"), LIMITS, None).await.expect("sent");
    while server.n_calls() < 2 {
        tokio::task::yield_now().await;
    }
    server.kill();
    let failure = waiting.finish().await.expect_err("killed");
    assert!(matches!(failure, RequestFailure::Exited { .. }), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_receives_no_client_notification_but_cancellations() {
    for (behaviour, expected) in [
        (
            ServerBehaviour::Good,
            &[
                "notifications/initialized",
                "notifications/roots/list_changed",
                "notifications/progress",
                "notifications/vendor",
                "notifications/cancelled",
            ][..],
        ),
        (ServerBehaviour::Modern, &["notifications/cancelled"]),
    ] {
        let servers = InProcessLauncher::new();
        let server = servers.of("test");
        server.set_behaviour(behaviour);
        let connection = dial(&servers).await.expect("connects");
        for (method, params) in [
            ("notifications/roots/list_changed", None),
            ("notifications/progress", Some(r#"{"progressToken":1,"progress":1}"#)),
            ("notifications/vendor", Some("{}")),
        ] {
            connection.notify(&Message::notification(method, params)).await;
        }
        // Both eras take cancellations, and this one comes after everything else.
        let waiting =
            connection.call(Holder::SERVICE, &call("wait"), LIMITS, None).await.expect("sent");
        while server.n_calls() == 0 {
            tokio::task::yield_now().await;
        }
        drop(waiting);
        connection.ask(&call("echo"), LIMITS).await.expect("answers");
        assert_eq!(server.notifications(), expected, "{behaviour:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_receives_every_cancellation_of_a_burst() {
    let n_calls = 2 * defaults::WRITE_QUEUE;
    let servers = InProcessLauncher::new();
    let server = servers.of("test");
    let connection = dial(&servers).await.expect("connects");
    let mut waiting = Vec::new();
    for _ in 0..n_calls {
        waiting.push(
            connection.call(Holder::SERVICE, &call("wait"), LIMITS, None).await.expect("sent"),
        );
    }
    while server.n_calls() < n_calls {
        tokio::task::yield_now().await;
    }

    // The link gets no turn meanwhile.
    drop(waiting);

    time::sleep(LIMITS.silence / 2).await;
    let received = server.notifications();
    let n_received = received.iter().filter(|method| *method == "notifications/cancelled").count();
    assert_eq!(n_received, n_calls);
}

#[tokio::test(start_paused = true)]
async fn a_client_may_answer_a_question_after_the_silence_timeout() {
    let servers = InProcessLauncher::new();
    let connection = dial_for(&servers, ConnectionOwner::Exclusive).await.expect("connects");
    let limits = ConnectionLimits { total: 2 * defaults::INPUT_TIMEOUT, ..LIMITS };
    let mut asking =
        connection.call(Holder::SERVICE, &call("ask"), limits, None).await.expect("sent");
    let Ok(CallEvent::Message(SideMessage::Question(question))) = asking.next().await else {
        panic!("the server asks");
    };

    let silence = time::timeout(2 * LIMITS.silence, asking.next()).await;
    assert!(silence.is_err(), "the request has not failed");
    drop(question);
    servers.of("test").release(1);
    asking.finish().await.expect("answered");
}

#[tokio::test(start_paused = true)]
async fn a_server_question_during_internal_requests_goes_to_the_waiting_client_call() {
    let servers = InProcessLauncher::new();
    let (dialer, mut announced) = servers.dialer();
    let (name, closing) = (ServerName::new("test").expect("a name"), CancellationToken::new());
    let owner = ConnectionOwner::Owned(SessionOwner::new(1, r#"{"roots":{}}"#));
    let declared = declared("test");
    let dialling = dialer.dial(&name, &declared, 1, owner, closing, ReconnectWindow::none());
    let connection = dialling.await.expect("connects");

    let internal =
        connection.call_internal(Holder::SERVICE, &call("ask"), LIMITS).await.expect("sent");
    let announcement = announced.recv().await.expect("announced: no client waits");
    assert!(matches!(announcement.message, SideMessage::Question(_)), "{:?}", announcement.message);

    // Many internal requests, so that none of them is mistaken for the client's by chance.
    let mut others = Vec::new();
    for _ in 0..16 {
        others.push(
            connection.call_internal(Holder::SERVICE, &call("wait"), LIMITS).await.expect("sent"),
        );
    }
    let mut asking =
        connection.call(Holder::SERVICE, &call("ask"), LIMITS, None).await.expect("sent");
    let Ok(CallEvent::Message(SideMessage::Question(_))) = asking.next().await else {
        panic!("the question belongs to the call of the client");
    };
    drop((internal, others));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_missing_crashes_or_hangs_cannot_be_connected() {
    let servers = InProcessLauncher::new();
    let server = servers.of("test");
    for (behaviour, code) in [
        (ServerBehaviour::Missing, "SERVER_NOT_STARTED"),
        (ServerBehaviour::Crashes, "SERVER_EXITED"),
        (ServerBehaviour::Hangs, "TIMEOUT"),
        (ServerBehaviour::HangsUp, "SERVER_HUNG_UP"),
    ] {
        server.set_behaviour(behaviour);
        assert_eq!(dial(&servers).await.expect_err("fails").code(), code);
    }
    assert_eq!((server.n_launches(), server.n_living()), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn a_server_may_use_its_whole_start_timeout() {
    let servers = InProcessLauncher::new();
    servers.of("test").set_behaviour(ServerBehaviour::Hangs);

    let begin = Instant::now();
    let error = dial(&servers).await.expect_err("no handshake");

    assert!(error.hint().contains("`start_timeout`"), "{}", error.hint());
    assert!(begin.elapsed() >= defaults::START_TIMEOUT);
    assert_eq!(servers.of("test").n_living(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_end_is_killed_after_the_grace_periods() {
    let servers = InProcessLauncher::new();
    servers.of("test").set_behaviour(ServerBehaviour::Clings);
    let connection = dial(&servers).await.expect("connects");

    let begin = Instant::now();
    connection.close();
    connection.down().await;

    assert_eq!(servers.of("test").n_living(), 0);
    assert!(begin.elapsed() >= Duration::from_millis(1550), "{:?}", begin.elapsed());
}
