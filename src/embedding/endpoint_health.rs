//! The state of the endpoint, so that operators get one message per outage and not one per search.
//! Pure.

/// The state of the endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum EndpointHealth {
    /// There is no outage.
    #[default]
    Healthy,
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
    AnyTime,
}

impl EndpointHealth {
    /// Records a failed or slow endpoint, and returns `true` if an outage begins.
    pub(super) fn note_failure(&mut self, kind: Self) -> bool {
        let is_first = *self == Self::Healthy;
        if is_first {
            *self = kind;
        }
        is_first
    }

    /// Records an answer, and returns `true` if an outage ends.
    pub(super) fn note_answer(&mut self, answer: EndpointAnswer) -> bool {
        let is_over = match (*self, answer) {
            (Self::Healthy, _) | (Self::Slow, EndpointAnswer::AnyTime) => false,
            (Self::Failing, _) | (Self::Slow, EndpointAnswer::InTime) => true,
        };
        if is_over {
            *self = Self::Healthy;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_begins_and_ends_once() {
        let mut health = EndpointHealth::default();
        assert!(!health.note_answer(EndpointAnswer::InTime));
        assert!(health.note_failure(EndpointHealth::Failing));
        assert!(!health.note_failure(EndpointHealth::Failing));
        assert!(!health.note_failure(EndpointHealth::Slow));
        assert!(health.note_answer(EndpointAnswer::AnyTime));
        assert!(!health.note_answer(EndpointAnswer::InTime));
    }

    #[test]
    fn a_slow_endpoint_recovers_only_with_an_answer_in_time() {
        let mut health = EndpointHealth::default();
        assert!(health.note_failure(EndpointHealth::Slow));
        assert!(!health.note_answer(EndpointAnswer::AnyTime));
        assert!(health.note_answer(EndpointAnswer::InTime));
    }
}
