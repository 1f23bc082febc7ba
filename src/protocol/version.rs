//! Protocol versions and their negotiation.

/// The versions with an `initialize` handshake, newest first.
///
/// Source: MCP, "Versioning".
pub const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The newest version of the legacy era, which metamcp requests from servers.
pub const LEGACY_LATEST: &str = LEGACY[0];

/// The version without a handshake, in which every request is self-contained.
///
/// Source: MCP, "Versioning".
pub const MODERN: &str = "2026-07-28";

/// All supported versions, newest first.
pub const SERVED: [&str; 5] = [MODERN, LEGACY[0], LEGACY[1], LEGACY[2], LEGACY[3]];

/// The two variants of the MCP protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// The versions with an `initialize` handshake, up to 2025-11-25.
    Legacy,
    /// The versions without a handshake, from 2026-07-28.
    Modern,
}

impl Era {
    /// Returns the era of a known version.
    pub fn of(version: &str) -> Option<Self> {
        if version == MODERN {
            return Some(Self::Modern);
        }
        is_legacy(version).then_some(Self::Legacy)
    }

    /// Returns the name for status output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// Returns whether `version` is a known version with an `initialize` handshake.
pub fn is_legacy(version: &str) -> bool {
    LEGACY.contains(&version)
}

/// Returns whether clients of this version accept an event without data at the start of a stream.
/// Source: MCP 2025-11-25, "Sending messages to the server".
pub fn has_priming(version: &str) -> bool {
    // Versions are dates, whose text order is their order in time.
    is_legacy(version) && version >= "2025-11-25"
}

/// The version of a client that names none. Source: MCP 2025-06-18, "Protocol version header".
pub const ASSUMED: &str = "2025-03-26";

/// Returns whether clients of this version may send batches; only one version has them. Source: MCP
/// 2025-06-18, "Key changes".
pub fn has_batches(version: &str) -> bool {
    version == "2025-03-26"
}

/// Returns whether this version has titles beside names. Source: MCP 2025-06-18, "Key changes".
pub fn has_titles(version: &str) -> bool {
    is_legacy(version) && version >= "2025-06-18"
}

/// Returns the version with which to answer a client's `initialize`.
///
/// It is the client's own version if known, otherwise the newest legacy version. Source: MCP
/// 2025-11-25, "Version negotiation".
pub fn negotiate(requested: Option<&str>) -> &'static str {
    requested
        .and_then(|requested| LEGACY.into_iter().find(|known| *known == requested))
        .unwrap_or(LEGACY_LATEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_version_is_echoed_and_an_unknown_one_is_not() {
        assert_eq!(negotiate(Some("2025-06-18")), "2025-06-18");
        assert_eq!(negotiate(Some("2027-01-01")), LEGACY_LATEST);
        assert_eq!(negotiate(None), LEGACY_LATEST);
    }

    #[test]
    fn every_version_that_is_served_has_an_era() {
        assert!(SERVED.iter().all(|version| Era::of(version).is_some()));
        assert_eq!(Era::of(MODERN), Some(Era::Modern));
        assert_eq!(Era::of("2027-01-01"), None);
    }

    #[test]
    fn each_legacy_version_has_its_own_set_of_features() {
        let table = LEGACY.map(|found| (has_priming(found), has_titles(found), has_batches(found)));
        assert_eq!(
            table,
            [
                (true, true, false),
                (false, true, false),
                (false, false, true),
                (false, false, false)
            ]
        );
        assert!(has_batches(ASSUMED));
    }
}
