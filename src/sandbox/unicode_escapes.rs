//! Escapes of JSON that are no Unicode. Pure.

use std::borrow::Cow;

/// The escape of the replacement character.
const REPLACEMENT: &str = "\\ufffd";

/// The length of an escape, such as `\ud800`.
const ESCAPE_BYTES: usize = 6;

/// Returns a JSON text in which each half of a surrogate pair that stands alone has become the
/// replacement character. A JavaScript text may have such halves, and strict readers refuse them.
pub(super) fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    if !text.contains("\\ud") {
        return Cow::Borrowed(text);
    }
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at(at);
        whole.push_str(before);
        let n_bytes = match (surrogate(from), from.get(ESCAPE_BYTES..).and_then(surrogate)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 2 * ESCAPE_BYTES,
            (Some(_), _) => {
                whole.push_str(REPLACEMENT);
                rest = &from[ESCAPE_BYTES..];
                continue;
            }
            // A backslash and what it escapes, which has one byte at least.
            (None, _) => 2,
        };
        let (escaped, after) = from.split_at_checked(n_bytes).unwrap_or((from, ""));
        whole.push_str(escaped);
        rest = after;
    }
    whole.push_str(rest);
    Cow::Owned(whole)
}

/// Returns the half of a surrogate pair that `text` begins with the escape of.
fn surrogate(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let half = u32::from_str_radix(digits, 16).ok()?;
    (0xd800..=0xdfff).contains(&half).then_some(half)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn only_lone_halves_are_replaced() {
        for (text, whole) in [
            (r#""a\ud800b""#, r#""a\ufffdb""#),
            (r#""\udc00\ud800""#, r#""\ufffd\ufffd""#),
            (r#""\ud800\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud800""#, r#""\\ud800""#),
            (r#""\\\ud800é""#, r#""\\\ufffdé""#),
            (r#"{"\ud800":"\ud83d\ude00"}"#, r#"{"\ufffd":"\ud83d\ude00"}"#),
        ] {
            assert_eq!(without_lone_surrogates(text), whole);
        }
    }

    proptest! {
        #[test]
        fn every_text_becomes_json_that_a_strict_reader_takes(
            units in prop::collection::vec(prop_oneof![0xd7f0_u16..0xe010, any::<u16>()], 0..20),
        ) {
            // As JSON.stringify writes it.
            let pieces = char::decode_utf16(units.iter().copied()).map(|unit| match unit {
                Ok(character) => {
                    let text = Value::from(character.to_string()).to_string();
                    text[1..text.len() - 1].to_owned()
                }
                Err(lone) => format!("\\u{:04x}", lone.unpaired_surrogate()),
            });
            let text = format!("\"{}\"", pieces.collect::<String>());
            let read: String = serde_json::from_str(&without_lone_surrogates(&text)).expect("JSON");
            prop_assert_eq!(read, String::from_utf16_lossy(&units));
        }
    }
}
