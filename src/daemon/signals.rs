//! Signals as events.

use std::io;

use tokio::signal::unix::{self, SignalKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignalRequest {
    /// SIGTERM or SIGINT.
    Stop,
    /// SIGHUP.
    Reload,
}

/// The signals that are caught.
#[derive(Debug)]
pub(super) struct SignalStreams {
    terminate: unix::Signal,
    interrupt: unix::Signal,
    hang_up: unix::Signal,
}

impl SignalStreams {
    pub(super) fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
            hang_up: unix::signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal. Several of a kind that come close together count once. Cancel
    /// safe.
    pub(super) async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Stop,
            _ = self.interrupt.recv() => SignalRequest::Stop,
            _ = self.hang_up.recv() => SignalRequest::Reload,
        }
    }

    /// Waits for a signal that asks to stop. Cancel safe.
    pub(super) async fn stop(&mut self) {
        while self.next().await != SignalRequest::Stop {}
    }
}
