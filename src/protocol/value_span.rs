//! The position of a value in the text of a message.

use std::ops::Range;

/// An optional span in 8 bytes, of which each message stores one per part. An empty span means
/// none, since a JSON value is never empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Returns the span, if present.
    pub(super) fn get(self) -> Option<Range<u32>> {
        (self.start < self.end).then_some(self.start..self.end)
    }
}

impl From<Option<Range<u32>>> for Span {
    fn from(range: Option<Range<u32>>) -> Self {
        range.map_or(Self::default(), |Range { start, end }| Self { start, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_survives_its_compact_form() {
        for range in [None, Some(0..1), Some(7..9), Some(0..u32::MAX)] {
            assert_eq!(Span::from(range.clone()).get(), range);
        }
    }
}
