//! Streams that are opened and left alone.

use super::Bystanders;
use crate::harness::{daemon::Daemon, fake::Fakes, stream::End};

/// As many for the limit of this test as 4,096 are for a usual one.
const N_STREAMS: usize = 512;

#[tokio::test]
async fn streams_of_one_client_lock_out_no_other_and_the_oldest_end_cleanly() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).descriptors(64, 256).ready();
    let bystanders = Bystanders::start(&daemon, "/servers/fake").await;
    let client = daemon.client("/servers/fake").initialized().await;

    let mut streams = Vec::new();
    for number in 0..N_STREAMS {
        streams.push(client.listen().await);
        if number % 100 == 0 {
            bystanders.go_on().await;
        }
    }

    let (_, end) = streams.remove(0).rest().await;
    assert!(matches!(end, End::Whole), "{end:?}");
    // It may be opened again.
    drop(client.listen().await);
    bystanders.end().await;
}
