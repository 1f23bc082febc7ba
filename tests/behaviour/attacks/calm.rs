//! No attack at all: what bystanders do then.

use super::Bystanders;
use crate::harness::{daemon::Daemon, fake::Fakes};

#[tokio::test]
async fn bystanders_of_no_attack_are_answered_at_every_time() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();

    let bystanders = Bystanders::start(&daemon, "/servers/fake").await;
    bystanders.go_on().await;

    bystanders.end().await;
}
