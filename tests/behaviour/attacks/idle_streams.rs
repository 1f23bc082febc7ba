//! Large numbers of idle notification streams.

use super::Bystanders;
use crate::harness::{daemon::Daemon, fake::Fakes, stream::End};

/// The equivalent of 4,096 streams, scaled down to the descriptor limit of this test.
const N_STREAMS: usize = 512;

#[tokio::test]
async fn idle_streams_of_one_client_do_not_lock_out_other_clients_and_the_oldest_end_cleanly() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).descriptors(64, 256).ready();
    let bystanders = Bystanders::start(&daemon, "/servers/fake").await;
    let client = daemon.client("/servers/fake").initialized().await;

    let mut streams = Vec::new();
    for number in 0..N_STREAMS {
        streams.push(client.listen().await);
        if number % 100 == 0 {
            bystanders.wait_progress().await;
        }
    }

    let (_, end) = streams.remove(0).rest().await;
    assert!(matches!(end, End::Whole), "{end:?}");
    // The client may reopen its stream.
    drop(client.listen().await);
    bystanders.end().await;
}
