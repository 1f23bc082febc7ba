//! The last events of one server: connections, ends, failures, and the breaker.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use crate::{config::defaults, redact};

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEventKind {
    /// The server is connected for the first time, or again after an end.
    Connected,
    /// An attempt to connect the server failed.
    ConnectFailed,
    /// A connection ended by itself.
    Ended,
    /// metamcp closed an idle connection.
    ClosedIdle,
    /// The breaker refuses requests.
    BreakerOpened,
    /// The breaker admits requests again.
    BreakerClosed,
    /// A list of the server has changed.
    ListChanged,
    /// A reload has changed the declaration of the server.
    Reloaded,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEvent {
    /// The time.
    pub at: SystemTime,
    /// The kind.
    pub kind: ServerEventKind,
    /// The details, of at most [`defaults::SERVER_EVENT_BYTES_MAX`] bytes; may be empty.
    pub details: String,
}

/// The last events of one server, oldest first: at most [`defaults::SERVER_EVENTS_KEPT`].
#[derive(Debug, Default)]
pub struct ServerEvents(Mutex<VecDeque<ServerEvent>>);

impl ServerEventKind {
    /// Returns the stable name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::ConnectFailed => "connect-failed",
            Self::Ended => "ended",
            Self::ClosedIdle => "closed-idle",
            Self::BreakerOpened => "breaker-opened",
            Self::BreakerClosed => "breaker-closed",
            Self::ListChanged => "list-changed",
            Self::Reloaded => "reloaded",
        }
    }
}

impl ServerEvents {
    /// Records an event that happens now. An event that repeats the last one replaces it.
    pub fn record(&self, kind: ServerEventKind, details: &str) {
        let details = redact::cut(details, defaults::SERVER_EVENT_BYTES_MAX).to_owned();
        let event = ServerEvent { at: SystemTime::now(), kind, details };
        let mut events = self.events();
        let is_repeated =
            events.back().is_some_and(|last| last.kind == kind && last.details == event.details);
        if is_repeated && kind == ServerEventKind::ListChanged {
            events.pop_back();
        }
        if events.len() >= defaults::SERVER_EVENTS_KEPT {
            events.pop_front();
        }
        events.push_back(event);
    }

    /// Returns the events, oldest first.
    pub fn all(&self) -> Vec<ServerEvent> {
        self.events().iter().cloned().collect()
    }

    fn events(&self) -> MutexGuard<'_, VecDeque<ServerEvent>> {
        // Held only for statements on plain data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_events_of_a_server_are_kept() {
        let events = ServerEvents::default();
        for number in 0..2 * defaults::SERVER_EVENTS_KEPT {
            events.record(ServerEventKind::Ended, &number.to_string());
        }
        let kept = events.all();
        assert_eq!(kept.len(), defaults::SERVER_EVENTS_KEPT);
        assert_eq!(kept[0].details, defaults::SERVER_EVENTS_KEPT.to_string());
    }

    #[test]
    fn a_burst_of_list_changes_does_not_drive_out_other_events() {
        let events = ServerEvents::default();
        events.record(ServerEventKind::Connected, "pid 7");
        for _ in 0..2 * defaults::SERVER_EVENTS_KEPT {
            events.record(ServerEventKind::ListChanged, "tools/list");
        }
        let kinds: Vec<_> = events.all().into_iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [ServerEventKind::Connected, ServerEventKind::ListChanged]);
    }

    #[test]
    fn the_details_of_an_event_are_bounded() {
        let events = ServerEvents::default();
        events.record(ServerEventKind::Ended, &"ä".repeat(10_000));
        assert!(events.all()[0].details.len() <= defaults::SERVER_EVENT_BYTES_MAX);
    }
}
