//! The notifications to the service manager: ready, status, reloading, stopping, watchdog.

use std::time::Duration;

use sd_notify::NotifyState;

/// Reports that the service is ready for clients.
pub fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(&one_line(status))]);
}

/// Reports that the configuration is being reloaded; [`ready`] ends the reload.
///
/// The timestamp goes in the same datagram: `Type=notify-reload` requires both.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(error) => {
            tracing::warn!(%error, "cannot report the reload to systemd: no monotonic clock: {error}");
        }
    }
}

/// Reports that the service is stopping and how long that takes at most. The manager waits that
/// long, whatever `TimeoutStopSec=` says.
pub fn stopping(status: &str, within: Duration) {
    send(&[
        NotifyState::Stopping,
        NotifyState::Status(&one_line(status)),
        NotifyState::Custom(&extension(within)),
    ]);
}

/// Returns the assignment; that of the library is limited to 71 minutes.
fn extension(within: Duration) -> String {
    format!("EXTEND_TIMEOUT_USEC={}", within.as_micros())
}

/// Replaces the status line that `systemctl status` shows.
pub fn status(status: &str) {
    send(&[NotifyState::Status(&one_line(status))]);
}

/// Resets the watchdog timer.
pub fn feed_watchdog() {
    send(&[NotifyState::Watchdog]);
}

/// Returns the watchdog interval, if the manager set one.
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

fn send(states: &[NotifyState<'_>]) {
    // Without a manager this does nothing. An error means that the library does not know the kind
    // of the socket; the service continues.
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "cannot notify the service manager: {error}");
    }
}

/// Removes newlines, which would start another assignment in the datagram.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    #[test]
    fn a_stop_may_take_as_long_as_the_longest_request() {
        let day = Duration::from_secs(24 * 60 * 60);
        assert_eq!(super::extension(day), "EXTEND_TIMEOUT_USEC=86400000000");
    }

    #[test]
    fn a_status_text_cannot_add_an_assignment() {
        assert_eq!(super::one_line("up\nERRNO=5"), "up ERRNO=5");
    }
}
