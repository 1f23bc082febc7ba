use std::{sync::Arc, time::Duration};

use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    connection::{
        ConnectionLimits,
        in_process::{InProcessLauncher, InProcessServer, ServerBehaviour, declared},
    },
    protocol::{Era, Message},
};

const LIMITS: ConnectionLimits =
    ConnectionLimits { silence: Duration::from_secs(60), total: Duration::from_secs(60) };

/// A dialer with one server.
struct Line {
    dialer: Dialer,
    server: Arc<InProcessServer>,
    name: ServerName,
}

impl Line {
    fn to(manner: ServerBehaviour) -> Self {
        let servers = InProcessLauncher::new();
        let server = servers.of("test");
        server.set_behaviour(manner);
        let (dialer, _announced) = servers.dialer();
        Self { dialer, server, name: ServerName::new("test").expect("a name") }
    }

    async fn dial_as(&self, era: EraChoice) -> Result<Arc<Connection>, ConnectError> {
        let declared = crate::config::ServerConfig { era, ..declared("test") };
        let (party, closing) = (ConnectionOwner::Shared, CancellationToken::new());
        self.dialer.dial(&self.name, &declared, 1, party, closing, ReconnectWindow::none()).await
    }

    /// Connects, and returns the era of the connection and the time that it took.
    async fn dial(&self) -> (Era, Duration) {
        let begin = Instant::now();
        let connection = self.dial_as(EraChoice::Auto).await.expect("connects");
        let took = begin.elapsed();
        connection.ask(&Message::request("tools/list", None), LIMITS).await.expect("answers");
        let era = connection.era();
        connection.close();
        connection.down().await;
        (era, took)
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_not_answered_costs_its_time_once() {
    let line = Line::to(ServerBehaviour::Taciturn);
    let time = defaults::PROBE_TIMEOUT + defaults::PROBE_GRACE;
    assert_eq!(line.dial().await, (Era::Legacy, time));
    for _ in 0..3 {
        assert_eq!(line.dial().await, (Era::Legacy, Duration::ZERO));
    }
    time::advance(2 * defaults::LEGACY_BELIEVED).await;
    assert_eq!(line.dial().await, (Era::Legacy, Duration::ZERO), "it would cost that again");
    assert_eq!((line.server.n_launches(), line.server.n_discoveries()), (5, 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refused_the_probe_is_asked_again_after_a_while() {
    let line = Line::to(ServerBehaviour::Good);
    assert_eq!(line.dial().await, (Era::Legacy, Duration::ZERO));
    line.server.set_behaviour(ServerBehaviour::Modern);
    assert_eq!(line.dial().await.0, Era::Modern, "it has refused the handshake");
    assert_eq!(line.server.n_launches(), 3, "and was asked on another pipe");

    line.server.set_behaviour(ServerBehaviour::Good);
    assert_eq!(line.dial().await.0, Era::Legacy, "it knows nothing of the question any more");
    let n_discoveries = line.server.n_discoveries();
    line.server.set_behaviour(ServerBehaviour::SlowBoth);
    line.server.release(2);
    assert_eq!(line.dial().await.0, Era::Legacy);
    assert_eq!(line.server.n_discoveries(), n_discoveries, "it was believed");
    time::advance(defaults::LEGACY_BELIEVED).await;
    assert_eq!(line.dial().await.0, Era::Modern);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_starts_slowly_is_of_the_era_that_it_answers_in() {
    for (manner, n_launches) in [
        (ServerBehaviour::SlowModern, 1),
        // It has accepted both, so it is started again and probed alone.
        (ServerBehaviour::SlowBoth, 2),
    ] {
        let line = Line::to(manner);
        let released = async {
            time::sleep(3 * defaults::PROBE_TIMEOUT).await;
            line.server.release(n_launches);
        };
        let ((era, _), ()) = tokio::join!(line.dial(), released);
        assert_eq!((era, line.server.n_launches()), (Era::Modern, n_launches), "{manner:?}");

        let released = async {
            time::sleep(3 * defaults::PROBE_TIMEOUT).await;
            line.server.release(1);
        };
        let ((era, took), ()) = tokio::join!(line.dial(), released);
        assert_eq!((era, took), (Era::Modern, 3 * defaults::PROBE_TIMEOUT), "{manner:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_with_a_declared_era_is_not_tried_in_the_other_era() {
    for (manner, era, code) in [
        (ServerBehaviour::Modern, EraChoice::Legacy, "HANDSHAKE_REFUSED"),
        (ServerBehaviour::Good, EraChoice::Modern, "HANDSHAKE_UNUSABLE"),
        (ServerBehaviour::Taciturn, EraChoice::Modern, "TIMEOUT"),
    ] {
        let line = Line::to(manner);
        assert_eq!(line.dial_as(era).await.expect_err("fails").code(), code);
        assert_eq!((line.server.n_launches(), line.server.n_living()), (1, 0));
    }
}
