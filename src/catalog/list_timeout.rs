//! How long the merged list waits for one server. Pure: no clock.
//!
//! A list must not wait for a server again and again that has let it wait in vain. Clients are told
//! to read the lists again when such a server comes.

use std::time::Duration;

/// What is known of a server when somebody asks for a list of all servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerReadiness {
    /// There is no connection, and none is being made. Nothing speaks against the next one.
    Absent,
    /// The connection has been in the making for so long. Nothing speaks against it.
    Dialled(Duration),
    /// The last attempt to connect failed or took too long, whether another one is under way or not.
    Failed,
    /// There is a connection.
    Live {
        /// The list was waited for there already, and did not come in time.
        is_slow: bool,
    },
}

impl ServerReadiness {
    /// Returns how long a list is worth waiting for, of `most` at the most.
    pub(super) fn patience(self, most: Duration) -> Duration {
        match self {
            Self::Absent | Self::Live { is_slow: false } => most,
            // Whoever asked first has begun to wait for all.
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
    fn only_a_server_that_nothing_speaks_against_is_waited_for() {
        let seconds = Duration::from_secs;
        for (standing, patience) in [
            (ServerReadiness::Absent, MOST),
            (ServerReadiness::Dialled(Duration::ZERO), MOST),
            (ServerReadiness::Dialled(seconds(1)), seconds(3)),
            (ServerReadiness::Dialled(MOST), Duration::ZERO),
            (ServerReadiness::Dialled(seconds(3600)), Duration::ZERO),
            (ServerReadiness::Failed, Duration::ZERO),
            (ServerReadiness::Live { is_slow: false }, MOST),
            (ServerReadiness::Live { is_slow: true }, Duration::ZERO),
        ] {
            assert_eq!(standing.patience(MOST), patience, "{standing:?}");
        }
    }
}
