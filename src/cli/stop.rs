//! `metamcp stop`: a stop of the service.

use std::os::fd::OwnedFd;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use serde_json::Value;
use tokio::{task, time};

use super::{Failed, UNAVAILABLE, output, service_target, service_target::OutputArgs};
use crate::{config::defaults, control::socket_client::ControlConnection};

/// Stop the service
///
/// Running requests finish first. If systemd holds the sockets, the next client starts the service
/// again: to prevent that, stop the sockets with `systemctl stop`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    reader: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let result = service_target::run(async {
        let mut service = args.reader.target.connect_running().await?;
        let status = service.ask("daemon/status", "{}", defaults::CONTROL_PATIENCE).await;
        // The process is opened before it stops, because its number may be reused afterwards.
        let process = process(&service_target::value(&status.map_err(service_target::failed)?)?);
        let asked = service.ask("daemon/stop", "{}", defaults::CONTROL_PATIENCE).await;
        let result = asked.map_err(service_target::failed)?;
        if ended(service, process).await {
            return Ok(result);
        }
        Err(Failed::new(UNAVAILABLE, "the service was told to stop and has not ended yet")
            .hint("`metamcp logs` shows what it waits for."))
    })?;
    args.reader.print(&result, |_| {
        output::print("Stopped.\n");
        Ok(())
    })
}

/// Opens the process of the service; `None` without a usable process ID, as in a container.
fn process(status: &Value) -> Option<OwnedFd> {
    let pid = Pid::from_raw(status["pid"].as_i64()?.try_into().ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Waits until the process of the service has ended; returns `false` on timeout. Without a known
/// process, waits until the service closes the connection.
async fn ended(mut service: ControlConnection, process: Option<OwnedFd>) -> bool {
    let Some(process) = process else {
        let is_gone = async { while service.next().await.is_ok() {} };
        return time::timeout(defaults::STOP_PATIENCE, is_gone).await.is_ok();
    };
    let waiting = task::spawn_blocking(move || {
        let patience = Timespec::try_from(defaults::STOP_PATIENCE).ok();
        poll(&mut [PollFd::new(&process, PollFlags::IN)], patience.as_ref())
    });
    matches!(waiting.await, Ok(Ok(1)))
}
