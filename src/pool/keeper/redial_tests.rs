use super::*;
use crate::{
    config::Health,
    connection::in_process::{Manner, Servers, declared},
};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn a_server_that_failed_often_enough_is_left_alone_until_it_is_asked_for() {
    let servers = Servers::new();
    let server = servers.of("test");
    server.behave(Manner::Missing);
    let (dialer, _announced) = servers.dialer();
    let plain = declared("test");
    let health = Health { max_reconnects: Some(3), ..plain.health };
    let origin = Origin {
        name: ServerName::new("test").expect("a name"),
        declared: Arc::new(Server { start: Start::Eager, health, ..plain }),
        dialer,
        generation: Arc::default(),
        closing: CancellationToken::new(),
    };
    let keeper = Keeper::new(origin, Party::Shared);

    keeper.dial_soon();
    tokio::time::sleep(HOUR).await;
    assert_eq!(server.n_launches(), 4, "once, and three times again");

    keeper.connection().await.expect_err("it is missing still");
    tokio::time::sleep(HOUR).await;
    assert_eq!(server.n_launches(), 5, "only when it was asked for");

    server.behave(Manner::Good);
    keeper.connection().await.expect("it is there");
    server.behave(Manner::Missing);
    server.kill();
    tokio::time::sleep(HOUR).await;
    assert_eq!(server.n_launches(), 9, "it was there: three times again");
}
