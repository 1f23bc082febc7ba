//! The time that the merged list waits for one server. Pure: no clock.
//!
//! A list must not wait repeatedly for a server that did not answer in time. When such a server
//! connects, clients are notified to read the lists again.

use std::time::Duration;

/// The state of a server when a client asks for a list of all servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerReadiness {
    /// The server has no connection and is not connecting. The next attempt may succeed.
    Absent,
    /// The server has been connecting for this long, and may succeed.
    Dialled(Duration),
    /// The last attempt failed or took too long; another one may be under way.
    Failed,
    /// The server has a connection.
    Live {
        /// An earlier caller did not get the list in time.
        is_slow: bool,
    },
}

impl ServerReadiness {
    /// Returns the time to wait for a list, at most `most`.
    pub(super) fn list_timeout(self, most: Duration) -> Duration {
        match self {
            Self::Absent | Self::Live { is_slow: false } => most,
            // The wait counts from the first caller.
            Self::Dialled(age) => most.saturating_sub(age),
            Self::Failed | Self::Live { is_slow: true } => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(4);

    #[test]
    fn a_list_waits_only_for_a_server_that_may_still_answer_in_time() {
        let seconds = Duration::from_secs;
        for (readiness, timeout) in [
            (ServerReadiness::Absent, MOST),
            (ServerReadiness::Dialled(Duration::ZERO), MOST),
            (ServerReadiness::Dialled(seconds(1)), seconds(3)),
            (ServerReadiness::Dialled(MOST), Duration::ZERO),
            (ServerReadiness::Dialled(seconds(3600)), Duration::ZERO),
            (ServerReadiness::Failed, Duration::ZERO),
            (ServerReadiness::Live { is_slow: false }, MOST),
            (ServerReadiness::Live { is_slow: true }, Duration::ZERO),
        ] {
            assert_eq!(readiness.list_timeout(MOST), timeout, "{readiness:?}");
        }
    }
}
