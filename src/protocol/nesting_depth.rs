//! The nesting of JSON text.

use std::slice::Iter;

use memchr::memchr2;

/// The largest permitted depth of nested arrays and objects in a message, in levels. Recursive
/// parsers fail or crash beyond their own bounds: 128 in serde_json, about 1,000 in Python.
pub const DEPTH_MAX: usize = 128;

/// The number of bytes whose brackets are counted together. The count fits into one byte.
const CHUNK_BYTES: usize = 192;

/// The number of a string's bytes that are read one by one, before a search is faster.
const SHORT_STRING: usize = 16;

/// Returns whether arrays and objects in JSON text are nested deeper than [`DEPTH_MAX`].
pub fn is_too_deep(json: &[u8]) -> bool {
    is_too_deep_within(json, 0)
}

/// Returns whether they are nested too deep once there are `n_around` levels around the text.
pub fn is_too_deep_within(json: &[u8], n_around: usize) -> bool {
    // Each level takes two bytes. Nearly all longer messages have too few brackets to be nested too
    // deep.
    let n_max = DEPTH_MAX.saturating_sub(n_around);
    json.len() > 2 * n_max && has_many_brackets(json, n_max) && is_nested_too_deep(json, n_max)
}

/// Returns whether more than `n_max` brackets open, including those within strings.
fn has_many_brackets(json: &[u8], n_max: usize) -> bool {
    let mut n_brackets = 0;
    json.chunks(CHUNK_BYTES).any(|chunk| {
        // `[` and `{` differ in one bit. With sums in bytes, the compiler adds 16 or more at once.
        n_brackets +=
            usize::from(chunk.iter().map(|byte| u8::from(byte | 0x20 == b'{')).sum::<u8>());
        n_brackets > n_max
    })
}

fn is_nested_too_deep(json: &[u8], n_max: usize) -> bool {
    let (mut depth, mut bytes) = (0_usize, json.iter());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => leave_string(&mut bytes),
            // This matches `[` and `{`, the next arm `]` and `}`.
            _ if byte | 0x20 == b'{' => {
                depth += 1;
                if depth > n_max {
                    return true;
                }
            }
            _ if byte | 0x20 == b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Advances past the end of a string whose opening quotation mark has been read.
fn leave_string(bytes: &mut Iter<'_, u8>) {
    for _ in 0..SHORT_STRING {
        match bytes.next() {
            Some(b'"') | None => return,
            Some(b'\\') => drop(bytes.next()),
            Some(_) => {}
        }
    }
    let mut rest = bytes.as_slice();
    while let Some(at) = memchr2(b'"', b'\\', rest) {
        let is_end = rest[at] == b'"';
        rest = rest.get(at + if is_end { 1 } else { 2 }..).unwrap_or_default();
        if is_end {
            break;
        }
    }
    *bytes = rest.iter();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Returns `levels` nested arrays.
    fn nested(levels: usize) -> String {
        "[".repeat(levels) + &"]".repeat(levels)
    }

    #[test]
    fn the_deepest_permitted_nesting_passes_and_one_more_level_does_not() {
        assert!(!is_too_deep(nested(DEPTH_MAX).as_bytes()));
        assert!(is_too_deep(nested(DEPTH_MAX + 1).as_bytes()));
        let objects = r#"{"a":"#.repeat(DEPTH_MAX) + "1" + &"}".repeat(DEPTH_MAX);
        assert!(!is_too_deep(objects.as_bytes()));
        assert!(is_too_deep(format!("[{objects}]").as_bytes()));
    }

    #[test]
    fn brackets_side_by_side_and_in_strings_do_not_count() {
        let side_by_side = format!("[{}[]]", "[],{},".repeat(10_000));
        assert!(!is_too_deep(side_by_side.as_bytes()));
        let text = format!(r#"["\"\\{}","\\"]"#, "[{".repeat(10_000));
        assert!(!is_too_deep(text.as_bytes()));
        assert!(is_too_deep(format!(r#"["\"[",{}]"#, nested(DEPTH_MAX)).as_bytes()));
    }

    #[test]
    fn malformed_json_does_not_make_the_depth_check_panic() {
        for text in ["\"", "\"\\", "]]]]", "\\", ""] {
            let text = format!("{text}{}", "[\"".repeat(200));
            let _no_panic = is_too_deep(text.as_bytes());
        }
    }

    fn depth_of(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or_default(),
            Value::Object(members) => 1 + members.values().map(depth_of).max().unwrap_or_default(),
            _ => 0,
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), r#"[\[{"\\\]}]{0,300}"#.prop_map(Value::from)];
        leaf.prop_recursive(4, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::vec((r#"["\\\[]{0,4}"#, inner), 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_depth_check_agrees_with_the_depth_of_the_value(value in value(), n_around in 120_usize..132) {
            let text = "[".repeat(n_around) + &value.to_string() + &"]".repeat(n_around);
            prop_assert_eq!(is_too_deep(text.as_bytes()), n_around + depth_of(&value) > DEPTH_MAX);
            let n_around = n_around.min(DEPTH_MAX);
            let within = is_too_deep_within(value.to_string().as_bytes(), n_around);
            prop_assert_eq!(within, n_around + depth_of(&value) > DEPTH_MAX);
        }
    }
}
