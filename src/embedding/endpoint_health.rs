//! The state of the endpoint, so that operators get one message per outage and not one per search.
//! Pure.

/// The state of the endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum EndpointHealth {
    /// There is no outage.
    #[default]
    None,
    /// The endpoint fails. Any answer ends this outage.
    Failing,
    /// The endpoint answers too late for searches. Only an answer in time ends this outage.
    Slow,
}

/// The time of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndpointAnswer {
    /// In time for a search.
    InTime,
    /// At any time.
    AtAll,
}

impl EndpointHealth {
    /// Records a failed or slow endpoint, and returns `true` if an outage begins.
    pub(super) fn note_failure(&mut self, kind: Self) -> bool {
        let is_news = *self == Self::None;
        if is_news {
            *self = kind;
        }
        is_news
    }

    /// Records an answer, and returns `true` if an outage ends.
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
    fn a_slow_endpoint_recovers_only_with_an_answer_in_time() {
        let mut outage = EndpointHealth::default();
        assert!(outage.note_failure(EndpointHealth::Slow));
        assert!(!outage.ends(EndpointAnswer::AtAll));
        assert!(outage.ends(EndpointAnswer::InTime));
    }
}
