//! The known eras of the servers, from one attempt to connect to the next.
//!
//! Pure: the time is an argument. A finding holds for one [`ServerVersion`] of a server.
//!
//! ```text
//!            it answers the probe ──▶ modern ───────── it fails ──▶ unknown
//!  unknown ─ it answers with an error ──▶ legacy, for a while
//!            it does not answer ──▶ legacy
//!            it ends at the probe ──▶ suspected ─ `initialize` works ──▶ legacy
//!                                               ─ it does not ──▶ unknown
//! ```

use std::collections::HashMap;

use tokio::time::Instant;

use super::server_version::ServerVersion;
use crate::{
    config::{EraChoice, defaults},
    server_name::ServerName,
};

/// The requests that open a connection, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpeningOrder {
    /// `server/discover`, and `initialize` too if that gets no answer soon.
    Probe,
    /// `server/discover`, which may take its time; then `initialize` if it is refused.
    Discover,
    /// `server/discover` alone.
    DiscoverOnly,
    /// `initialize` alone.
    Initialize,
}

/// The finding of an attempt that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EraFinding {
    /// The server is of the modern era.
    Modern,
    /// The server is of the legacy era.
    Legacy(LegacyEvidence),
    /// No finding: the server was not probed.
    Nothing,
}

/// The evidence that a server is of the legacy era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LegacyEvidence {
    /// It refused the probe: another probe costs almost nothing.
    Refusal,
    /// It did not answer the probe, or failed after it, or creates a session for every request, as
    /// upstreams over HTTP may: another probe costs time, a process or a session.
    Harm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Modern,
    Legacy(LegacyEvidence),
    /// It ended when it was probed: perhaps because of the probe.
    Suspected,
}

/// The verdict on every server.
#[derive(Debug, Default)]
pub(super) struct EraCache(HashMap<ServerName, (ServerVersion, Verdict, Instant)>);

impl EraCache {
    /// Returns how to open a connection to `server`, which is declared with the era `choice`.
    pub(super) fn opening(
        &self,
        server: &ServerName,
        version: &ServerVersion,
        choice: EraChoice,
        now: Instant,
    ) -> OpeningOrder {
        match choice {
            EraChoice::Legacy => return OpeningOrder::Initialize,
            EraChoice::Modern => return OpeningOrder::DiscoverOnly,
            EraChoice::Auto => {}
        }
        let known = self.0.get(server).filter(|(known, ..)| known == version);
        match known {
            None => OpeningOrder::Probe,
            Some((_, Verdict::Modern, _)) => OpeningOrder::Discover,
            Some((_, Verdict::Legacy(LegacyEvidence::Refusal), since))
                if now.duration_since(*since) >= defaults::LEGACY_BELIEVED =>
            {
                OpeningOrder::Probe
            }
            Some((_, Verdict::Legacy(_) | Verdict::Suspected, _)) => OpeningOrder::Initialize,
        }
    }

    /// Records that a connection was made, with its finding.
    pub(super) fn connected(
        &mut self,
        server: &ServerName,
        version: ServerVersion,
        finding: EraFinding,
        now: Instant,
    ) {
        let was_suspected = self.knows(server, &version) == Some(Verdict::Suspected);
        let verdict = match finding {
            EraFinding::Modern => Verdict::Modern,
            EraFinding::Legacy(evidence) => Verdict::Legacy(evidence),
            EraFinding::Nothing if was_suspected => Verdict::Legacy(LegacyEvidence::Harm),
            EraFinding::Nothing => return,
        };
        self.0.insert(server.clone(), (version, verdict, now));
    }

    /// Records that the server ended while it was probed.
    pub(super) fn ended(&mut self, server: &ServerName, version: ServerVersion, now: Instant) {
        self.0.insert(server.clone(), (version, Verdict::Suspected, now));
    }

    /// Records that an attempt has failed. `is_doubtful` says that the assumed era may be the
    /// reason: then the server is probed again.
    pub(super) fn failed(
        &mut self,
        server: &ServerName,
        version: &ServerVersion,
        is_doubtful: bool,
    ) {
        if is_doubtful || self.knows(server, version) == Some(Verdict::Suspected) {
            self.0.remove(server);
        }
    }

    fn knows(&self, server: &ServerName, version: &ServerVersion) -> Option<Verdict> {
        let known = self.0.get(server).filter(|(known, ..)| known == version);
        known.map(|(_, verdict, _)| *verdict)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::TransportConfig;

    const LONG: Duration = defaults::LEGACY_BELIEVED;

    fn server() -> ServerName {
        ServerName::new("git").expect("a name")
    }

    fn version(url: &str) -> ServerVersion {
        let url = url.parse().expect("a URL");
        ServerVersion::of(&TransportConfig::Http { url, headers: Default::default() })
    }

    struct Book(EraCache, Instant);

    impl Book {
        fn new() -> Self {
            Self(EraCache::default(), Instant::now())
        }

        fn opening(&self, after: Duration) -> OpeningOrder {
            self.0.opening(&server(), &version("http://a"), EraChoice::Auto, self.1 + after)
        }

        fn connected(&mut self, finding: EraFinding, after: Duration) {
            self.0.connected(&server(), version("http://a"), finding, self.1 + after);
        }
    }

    #[test]
    fn a_declared_era_takes_precedence_over_the_cached_era() {
        let mut book = Book::new();
        book.connected(EraFinding::Modern, Duration::ZERO);
        for (choice, opening) in [
            (EraChoice::Auto, OpeningOrder::Discover),
            (EraChoice::Legacy, OpeningOrder::Initialize),
            (EraChoice::Modern, OpeningOrder::DiscoverOnly),
        ] {
            assert_eq!(book.0.opening(&server(), &version("http://a"), choice, book.1), opening);
        }
    }

    #[test]
    fn a_server_is_probed_once_per_version() {
        let mut book = Book::new();
        assert_eq!(book.opening(Duration::ZERO), OpeningOrder::Probe);
        book.connected(EraFinding::Legacy(LegacyEvidence::Harm), Duration::ZERO);
        assert_eq!(book.opening(LONG * 100), OpeningOrder::Initialize, "silence costs time");
        let other = version("http://b");
        let opening = book.0.opening(&server(), &other, EraChoice::Auto, book.1);
        assert_eq!(opening, OpeningOrder::Probe);
    }

    #[test]
    fn a_refusal_is_believed_for_a_while_from_when_it_came() {
        let mut book = Book::new();
        book.connected(EraFinding::Legacy(LegacyEvidence::Refusal), Duration::ZERO);
        book.connected(EraFinding::Nothing, LONG / 2);
        assert_eq!(book.opening(LONG / 2), OpeningOrder::Initialize);
        assert_eq!(book.opening(LONG), OpeningOrder::Probe, "it was not asked in between");
        book.connected(EraFinding::Legacy(LegacyEvidence::Refusal), LONG);
        assert_eq!(book.opening(LONG + LONG / 2), OpeningOrder::Initialize);
    }

    #[test]
    fn one_that_ends_at_the_probe_is_not_probed_the_next_time() {
        let mut book = Book::new();
        book.0.ended(&server(), version("http://a"), book.1);
        assert_eq!(book.opening(Duration::ZERO), OpeningOrder::Initialize);
        book.connected(EraFinding::Nothing, Duration::ZERO);
        assert_eq!(book.opening(LONG * 2), OpeningOrder::Initialize, "it was the probe");

        book.0.ended(&server(), version("http://a"), book.1);
        book.0.failed(&server(), &version("http://a"), false);
        assert_eq!(book.opening(Duration::ZERO), OpeningOrder::Probe, "it was not");
    }

    #[test]
    fn a_failure_that_has_to_do_with_it_makes_us_ask_again() {
        let mut book = Book::new();
        book.connected(EraFinding::Modern, Duration::ZERO);
        book.0.failed(&server(), &version("http://a"), false);
        assert_eq!(book.opening(Duration::ZERO), OpeningOrder::Discover, "it was not there");
        book.0.failed(&server(), &version("http://a"), true);
        assert_eq!(book.opening(Duration::ZERO), OpeningOrder::Probe);
    }
}
