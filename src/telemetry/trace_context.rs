//! The trace that a request belongs to.
//!
//! Source: W3C, "Trace Context", `traceparent`; MCP, SEP-414, its place in `_meta`.

use std::fmt;

/// The member of `_meta`, and the header, that names the trace.
pub const TRACEPARENT: &str = "traceparent";

/// The flag of a trace that is recorded.
const SAMPLED: u8 = 1;

/// The length of a `traceparent` of the known version.
const LENGTH: usize = 55;

/// A position in a trace: the trace, and the span that caused the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The id of the trace.
    pub trace_id: u128,
    /// The id of the span.
    pub span_id: u64,
    flags: u8,
}

impl TraceParent {
    /// Returns the position of a span.
    pub fn new(trace_id: u128, span_id: u64, is_sampled: bool) -> Self {
        Self { trace_id, span_id, flags: if is_sampled { SAMPLED } else { 0 } }
    }

    /// Returns whether the caller may have recorded its span.
    pub fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Reads a `traceparent`. Of a later version, reads the part that this version has.
    pub fn parse(text: &str) -> Option<Self> {
        let (known, rest) = text.split_at_checked(LENGTH)?;
        let mut parts = known.split('-');
        let mut part = |length: usize| parts.next().filter(|part| is_hex(part, length));
        let (version, trace_id, span_id, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        let is_well_formed = match version {
            "00" => rest.is_empty(),
            "ff" => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        let parsed = Self {
            trace_id: u128::from_str_radix(trace_id, 16).ok()?,
            span_id: u64::from_str_radix(span_id, 16).ok()?,
            flags: u8::from_str_radix(flags, 16).ok()?,
        };
        (is_well_formed && parsed.trace_id != 0 && parsed.span_id != 0).then_some(parsed)
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == length && text.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_and_written_alike() {
        let parsed = TraceParent::parse(EXAMPLE).expect("valid");
        assert_eq!((parsed.span_id, parsed.flags), (0x00f0_67aa_0ba9_02b7, 1));
        assert_eq!(parsed.to_string(), EXAMPLE);
        let later = format!("cc{}-more", &EXAMPLE[2..]);
        assert_eq!(TraceParent::parse(&later), Some(parsed));
    }

    #[test]
    fn an_invalid_traceparent_is_ignored() {
        for invalid in [
            "",
            "00",
            &EXAMPLE[..54],
            &format!("{EXAMPLE}-more"),
            &format!("ff{}", &EXAMPLE[2..]),
            &EXAMPLE.to_uppercase(),
            &EXAMPLE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &EXAMPLE.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &EXAMPLE.replace('4', "é"),
        ] {
            assert_eq!(TraceParent::parse(invalid), None, "{invalid}");
        }
    }
}
