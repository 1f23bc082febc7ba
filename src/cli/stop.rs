//! `metamcp stop`: the end of the service.

use tokio::time::{Instant, timeout_at};

use super::{Failed, UNAVAILABLE, output, service, service::Reader};
use crate::config::defaults;

/// Stop the service
///
/// Running requests are finished first. Where systemd holds its sockets, the next client starts it
/// again: to keep it down, stop those with `systemctl stop`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    reader: Reader,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let result = service::run(async {
        let mut service = args.reader.target.connect_running().await?;
        let asked = service.ask("daemon/stop", "{}", defaults::CONTROL_PATIENCE).await;
        let result = asked.map_err(service::failed)?;
        // It holds the connection as long as it lives, and a new one might start it again.
        let deadline = Instant::now() + defaults::STOP_PATIENCE;
        let is_gone = async { while service.next().await.is_ok() {} };
        timeout_at(deadline, is_gone).await.map_err(|_| {
            Failed::new(UNAVAILABLE, "the service was told to stop and has not ended yet")
                .hint("`metamcp logs` shows what it waits for.")
        })?;
        Ok(result)
    })?;
    args.reader.print(&result, |_| {
        output::print("Stopped.\n");
        Ok(())
    })
}
