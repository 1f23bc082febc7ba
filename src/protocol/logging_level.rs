//! The levels of log messages that servers send.

use super::{Message, jsonrpc::MessagePart};

/// A level of `notifications/message`, in ascending severity. Source: RFC 5424; MCP, "Logging".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of syslog")]
pub enum LoggingLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LoggingLevel {
    /// Every level, in ascending severity.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Returns the level called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Returns the level of a log message; an unknown level counts as the most severe.
    pub fn of(message: &Message) -> Self {
        let named = message.string(MessagePart::Level);
        named.and_then(|name| Self::named(&name)).unwrap_or(Self::Emergency)
    }

    /// Returns the level's name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_levels_have_names_and_are_ordered_by_severity() {
        assert!(LoggingLevel::ALL.is_sorted());
        assert!(
            LoggingLevel::ALL
                .into_iter()
                .all(|level| LoggingLevel::named(level.name()) == Some(level))
        );
        assert_eq!(LoggingLevel::named("verbose"), None);
    }
}
