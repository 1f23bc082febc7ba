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
struct TestDialer {
    dialer: Dialer,
    server: Arc<InProcessServer>,
    name: ServerName,
}

impl TestDialer {
    fn to(behaviour: ServerBehaviour) -> Self {
        let servers = InProcessLauncher::new();
        let server = servers.of("test");
        server.set_behaviour(behaviour);
        let (dialer, _announced) = servers.dialer();
        Self { dialer, server, name: ServerName::new("test").expect("a name") }
    }

    async fn dial_as(&self, era: EraChoice) -> Result<Arc<Connection>, ConnectError> {
        let declared = crate::config::ServerConfig { era, ..declared("test") };
        let (owner, closing) = (ConnectionOwner::Shared, CancellationToken::new());
        self.dialer.dial(&self.name, &declared, 1, owner, closing, ReconnectWindow::none()).await
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
async fn an_unanswered_era_probe_costs_its_timeout_once() {
    let dialer = TestDialer::to(ServerBehaviour::Taciturn);
    let time = defaults::PROBE_TIMEOUT + defaults::PROBE_GRACE;
    assert_eq!(dialer.dial().await, (Era::Legacy, time));
    for _ in 0..3 {
        assert_eq!(dialer.dial().await, (Era::Legacy, Duration::ZERO));
    }
    time::advance(2 * defaults::LEGACY_ERA_TTL).await;
    assert_eq!(dialer.dial().await, (Era::Legacy, Duration::ZERO), "it would cost that again");
    assert_eq!((dialer.server.n_launches(), dialer.server.n_discoveries()), (5, 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refused_the_era_probe_is_probed_again_later() {
    let dialer = TestDialer::to(ServerBehaviour::Good);
    assert_eq!(dialer.dial().await, (Era::Legacy, Duration::ZERO));
    dialer.server.set_behaviour(ServerBehaviour::Modern);
    assert_eq!(dialer.dial().await.0, Era::Modern, "it has refused the handshake");
    assert_eq!(dialer.server.n_launches(), 3, "and was asked on another pipe");

    dialer.server.set_behaviour(ServerBehaviour::Good);
    assert_eq!(dialer.dial().await.0, Era::Legacy, "the server no longer knows `server/discover`");
    let n_discoveries = dialer.server.n_discoveries();
    dialer.server.set_behaviour(ServerBehaviour::SlowBoth);
    dialer.server.release(2);
    assert_eq!(dialer.dial().await.0, Era::Legacy);
    assert_eq!(dialer.server.n_discoveries(), n_discoveries, "it was believed");
    time::advance(defaults::LEGACY_ERA_TTL).await;
    assert_eq!(dialer.dial().await.0, Era::Modern);
}

#[tokio::test(start_paused = true)]
async fn a_slowly_starting_server_has_the_era_in_which_it_answers() {
    for (behaviour, n_launches) in [
        (ServerBehaviour::SlowModern, 1),
        // It has accepted both, so it is started again and probed alone.
        (ServerBehaviour::SlowBoth, 2),
    ] {
        let dialer = TestDialer::to(behaviour);
        let released = async {
            time::sleep(3 * defaults::PROBE_TIMEOUT).await;
            dialer.server.release(n_launches);
        };
        let ((era, _), ()) = tokio::join!(dialer.dial(), released);
        assert_eq!((era, dialer.server.n_launches()), (Era::Modern, n_launches), "{behaviour:?}");

        let released = async {
            time::sleep(3 * defaults::PROBE_TIMEOUT).await;
            dialer.server.release(1);
        };
        let ((era, took), ()) = tokio::join!(dialer.dial(), released);
        assert_eq!((era, took), (Era::Modern, 3 * defaults::PROBE_TIMEOUT), "{behaviour:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_with_a_declared_era_is_not_tried_in_the_other_era() {
    for (behaviour, era, code) in [
        (ServerBehaviour::Modern, EraChoice::Legacy, "HANDSHAKE_REFUSED"),
        (ServerBehaviour::Good, EraChoice::Modern, "HANDSHAKE_UNUSABLE"),
        (ServerBehaviour::Taciturn, EraChoice::Modern, "TIMEOUT"),
    ] {
        let dialer = TestDialer::to(behaviour);
        assert_eq!(dialer.dial_as(era).await.expect_err("fails").code(), code);
        assert_eq!((dialer.server.n_launches(), dialer.server.n_living()), (1, 0));
    }
}
