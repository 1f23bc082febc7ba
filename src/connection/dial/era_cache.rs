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
    CostlyProbe,
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
        match self.known(server, version) {
            None => OpeningOrder::Probe,
            Some((Verdict::Modern, _)) => OpeningOrder::Discover,
            Some((Verdict::Legacy(LegacyEvidence::Refusal), since))
                if now.duration_since(since) >= defaults::LEGACY_ERA_TTL =>
            {
                OpeningOrder::Probe
            }
            Some((Verdict::Legacy(_) | Verdict::Suspected, _)) => OpeningOrder::Initialize,
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
        let verdict = match finding {
            EraFinding::Modern => Verdict::Modern,
            EraFinding::Legacy(evidence) => Verdict::Legacy(evidence),
            EraFinding::Nothing if self.is_suspected(server, &version) => {
                Verdict::Legacy(LegacyEvidence::CostlyProbe)
            }
            EraFinding::Nothing => return,
        };
        self.0.insert(server.clone(), (version, verdict, now));
    }

    /// Records that the server ended while it was probed.
    pub(super) fn ended(&mut self, server: &ServerName, version: ServerVersion, now: Instant) {
        self.0.insert(server.clone(), (version, Verdict::Suspected, now));
    }

    /// Records that an attempt has failed. If it `is_doubtful`, the assumed era may be the reason,
    /// and the server is probed again.
    pub(super) fn failed(
        &mut self,
        server: &ServerName,
        version: &ServerVersion,
        is_doubtful: bool,
    ) {
        if is_doubtful || self.is_suspected(server, version) {
            self.0.remove(server);
        }
    }

    fn is_suspected(&self, server: &ServerName, version: &ServerVersion) -> bool {
        matches!(self.known(server, version), Some((Verdict::Suspected, _)))
    }

    fn known(&self, server: &ServerName, version: &ServerVersion) -> Option<(Verdict, Instant)> {
        let known = self.0.get(server).filter(|(known, ..)| known == version);
        known.map(|(_, verdict, since)| (*verdict, *since))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::TransportConfig;

    const LONG: Duration = defaults::LEGACY_ERA_TTL;

    fn server() -> ServerName {
        ServerName::new("git").expect("a name")
    }

    fn version(url: &str) -> ServerVersion {
        let url = url.parse().expect("a URL");
        ServerVersion::of(&TransportConfig::Http(crate::config::HttpServerConfig::new(url)))
    }

    struct CacheAndStart(EraCache, Instant);

    impl CacheAndStart {
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
        let mut cache = CacheAndStart::new();
        cache.connected(EraFinding::Modern, Duration::ZERO);
        for (choice, opening) in [
            (EraChoice::Auto, OpeningOrder::Discover),
            (EraChoice::Legacy, OpeningOrder::Initialize),
            (EraChoice::Modern, OpeningOrder::DiscoverOnly),
        ] {
            assert_eq!(cache.0.opening(&server(), &version("http://a"), choice, cache.1), opening);
        }
    }

    #[test]
    fn a_server_is_probed_once_per_version() {
        let mut cache = CacheAndStart::new();
        assert_eq!(cache.opening(Duration::ZERO), OpeningOrder::Probe);
        cache.connected(EraFinding::Legacy(LegacyEvidence::CostlyProbe), Duration::ZERO);
        assert_eq!(cache.opening(LONG * 100), OpeningOrder::Initialize, "silence costs time");
        let other = version("http://b");
        let opening = cache.0.opening(&server(), &other, EraChoice::Auto, cache.1);
        assert_eq!(opening, OpeningOrder::Probe);
    }

    #[test]
    fn a_refused_probe_is_repeated_some_time_after_the_refusal() {
        let mut cache = CacheAndStart::new();
        cache.connected(EraFinding::Legacy(LegacyEvidence::Refusal), Duration::ZERO);
        cache.connected(EraFinding::Nothing, LONG / 2);
        assert_eq!(cache.opening(LONG / 2), OpeningOrder::Initialize);
        assert_eq!(cache.opening(LONG), OpeningOrder::Probe, "it was not probed in between");
        cache.connected(EraFinding::Legacy(LegacyEvidence::Refusal), LONG);
        assert_eq!(cache.opening(LONG + LONG / 2), OpeningOrder::Initialize);
    }

    #[test]
    fn a_server_that_ends_at_the_probe_is_not_probed_the_next_time() {
        let mut cache = CacheAndStart::new();
        cache.0.ended(&server(), version("http://a"), cache.1);
        assert_eq!(cache.opening(Duration::ZERO), OpeningOrder::Initialize);
        cache.connected(EraFinding::Nothing, Duration::ZERO);
        assert_eq!(cache.opening(LONG * 2), OpeningOrder::Initialize, "the probe was the reason");

        cache.0.ended(&server(), version("http://a"), cache.1);
        cache.0.failed(&server(), &version("http://a"), false);
        assert_eq!(
            cache.opening(Duration::ZERO),
            OpeningOrder::Probe,
            "the probe was not the reason"
        );
    }

    #[test]
    fn a_failure_that_may_be_due_to_the_era_causes_another_probe() {
        let mut cache = CacheAndStart::new();
        cache.connected(EraFinding::Modern, Duration::ZERO);
        cache.0.failed(&server(), &version("http://a"), false);
        assert_eq!(cache.opening(Duration::ZERO), OpeningOrder::Discover, "the server was absent");
        cache.0.failed(&server(), &version("http://a"), true);
        assert_eq!(cache.opening(Duration::ZERO), OpeningOrder::Probe);
    }
}
