//! What we tell the service manager: ready, status, reloading, stopping, alive.

use std::time::Duration;

use sd_notify::NotifyState;

/// Announces that clients are served.
pub fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(&one_line(status))]);
}

/// Announces that the configuration is being read again; [`ready`] ends it.
///
/// The time stamp goes in the same datagram: `Type=notify-reload` waits for both.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "no monotonic clock for the reload notice"),
    }
}

/// Announces that the service is going away, and within what time: the manager waits that long
/// whatever `TimeoutStopSec=` says.
pub fn stopping(status: &str, within: Duration) {
    send(&[
        NotifyState::Stopping,
        NotifyState::Status(&one_line(status)),
        NotifyState::Custom(&extension(within)),
    ]);
}

/// The library's own has no room for more than 71 minutes.
fn extension(within: Duration) -> String {
    format!("EXTEND_TIMEOUT_USEC={}", within.as_micros())
}

/// Replaces the line that `systemctl status` shows.
pub fn status(status: &str) {
    send(&[NotifyState::Status(&one_line(status))]);
}

/// Feeds the watchdog.
pub fn feed_watchdog() {
    send(&[NotifyState::Watchdog]);
}

/// Returns how long the watchdog waits, if the manager set one.
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

fn send(states: &[NotifyState<'_>]) {
    // Without a manager this does nothing. With one it cannot be reached only when the socket is
    // of a kind that the library does not know; serving goes on.
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "cannot notify the service manager");
    }
}

/// A newline would start another assignment on the wire.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    #[test]
    fn a_stop_may_take_as_long_as_requests_may() {
        let day = Duration::from_secs(24 * 60 * 60);
        assert_eq!(super::extension(day), "EXTEND_TIMEOUT_USEC=86400000000");
    }

    #[test]
    fn a_status_cannot_smuggle_another_assignment() {
        assert_eq!(super::one_line("up\nERRNO=5"), "up ERRNO=5");
    }
}
