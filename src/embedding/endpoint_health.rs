//! Whether the endpoint is of use just now, so that operators are told once and not at each search.
//! Pure.

/// Whether the endpoint is of use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum EndpointHealth {
    /// It is.
    #[default]
    None,
    /// It fails: any answer ends that.
    Failing,
    /// It answers too late for searches: only one in time ends that.
    Slow,
}

/// An answer that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndpointAnswer {
    /// In time for a search.
    InTime,
    /// Whenever it was.
    AtAll,
}

impl EndpointHealth {
    /// Notes that it failed, or was too slow; true if this is news.
    pub(super) fn note_failure(&mut self, kind: Self) -> bool {
        let is_news = *self == Self::None;
        if is_news {
            *self = kind;
        }
        is_news
    }

    /// Notes an answer; true if an outage is over with it.
    pub(super) fn ends(&mut self, came: EndpointAnswer) -> bool {
        let is_over = match (*self, came) {
            (Self::None, _) | (Self::Slow, EndpointAnswer::AtAll) => false,
            (Self::Failing, _) | (Self::Slow, EndpointAnswer::InTime) => true,
        };
        if is_over {
            *self = Self::None;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_begins_and_ends_once() {
        let mut outage = EndpointHealth::default();
        assert!(!outage.ends(EndpointAnswer::InTime));
        assert!(outage.note_failure(EndpointHealth::Failing));
        assert!(!outage.note_failure(EndpointHealth::Failing));
        assert!(!outage.note_failure(EndpointHealth::Slow));
        assert!(outage.ends(EndpointAnswer::AtAll));
        assert!(!outage.ends(EndpointAnswer::InTime));
    }

    #[test]
    fn what_is_slow_is_of_use_when_it_is_in_time() {
        let mut outage = EndpointHealth::default();
        assert!(outage.note_failure(EndpointHealth::Slow));
        assert!(!outage.ends(EndpointAnswer::AtAll));
        assert!(outage.ends(EndpointAnswer::InTime));
    }
}
