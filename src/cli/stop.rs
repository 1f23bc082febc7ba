//! `metamcp stop`: a stop of the service.

use std::os::fd::OwnedFd;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use serde_json::{Value, json};
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
    common: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let result = service_target::run(async {
        let mut service = args.common.target.connect_running().await?;
        let status = service_target::request(&mut service, "daemon/status", &json!({})).await?;
        // The process is opened before it stops, because its number may be reused afterwards.
        let process = process(&service_target::value(&status)?);
        let result = service_target::request(&mut service, "daemon/stop", &json!({})).await?;
        if ended(service, process).await {
            return Ok(result);
        }
        Err(Failed::new(UNAVAILABLE, "the service is stopping, but has not ended yet")
            .hint("Run `metamcp logs` to see why."))
    })?;
    args.common.print(&result, |_| output::print("Stopped.\n"))
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
        return time::timeout(defaults::STOP_TIMEOUT, is_gone).await.is_ok();
    };
    let waiting = task::spawn_blocking(move || {
        let timeout = Timespec::try_from(defaults::STOP_TIMEOUT).ok();
        poll(&mut [PollFd::new(&process, PollFlags::IN)], timeout.as_ref())
    });
    matches!(waiting.await, Ok(Ok(1)))
}
