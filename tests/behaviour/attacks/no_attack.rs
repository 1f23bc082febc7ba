//! The bystanders without an attack, as a check of the harness.

use super::Bystanders;
use crate::harness::{daemon::Daemon, fake::Fakes};

#[tokio::test]
async fn bystanders_are_answered_in_time_without_an_attack() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();

    let bystanders = Bystanders::start(&daemon, "/servers/fake").await;
    bystanders.wait_progress().await;

    bystanders.end().await;
}
