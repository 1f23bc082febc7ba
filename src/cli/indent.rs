//! The indentation of JSON text, which is otherwise unchanged.

use std::fmt::Write as _;

use crate::redact;

/// Returns JSON text indented by two spaces per level; members keep their order and numbers their
/// spelling. Terminal control characters are escaped, which changes no value.
pub(super) fn indent(text: &str) -> String {
    let mut indented = String::with_capacity(text.len() * 2);
    let mut level = 0;
    let mut characters = text.chars().peekable();
    while let Some(found) = characters.next() {
        match found {
            '"' => {
                indented.push('"');
                string(&mut characters, &mut indented);
            }
            '{' | '[' => {
                indented.push(found);
                while characters.next_if(char::is_ascii_whitespace).is_some() {}
                match characters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => indented.push(end),
                    None => {
                        level += 1;
                        new_line(&mut indented, level);
                    }
                }
            }
            '}' | ']' => {
                level = level.saturating_sub(1);
                new_line(&mut indented, level);
                indented.push(found);
            }
            ',' => {
                indented.push(',');
                new_line(&mut indented, level);
            }
            ':' => indented.push_str(": "),
            found if found.is_ascii_whitespace() => {}
            found => indented.push(found),
        }
    }
    indented
}

/// Copies a string up to its closing quote.
fn string(characters: &mut impl Iterator<Item = char>, indented: &mut String) {
    let mut is_escaped = false;
    for found in characters {
        if redact::is_control(found) {
            let mut units = [0; 2];
            for unit in found.encode_utf16(&mut units) {
                // Writing to a string cannot fail.
                let _infallible = write!(indented, "\\u{unit:04x}");
            }
            continue;
        }
        indented.push(found);
        match found {
            '"' if !is_escaped => return,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
}

fn new_line(indented: &mut String, level: usize) {
    indented.push('\n');
    for _ in 0..level {
        indented.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn members_keep_their_order_and_numbers_their_spelling() {
        let text = r#"{"b":[1.0,1e400,-0],"a":{},"e":[ ],"s":"a\"}{\\","x": null}"#;
        insta::assert_snapshot!(indent(text), @r#"
        {
          "b": [
            1.0,
            1e400,
            -0
          ],
          "a": {},
          "e": [],
          "s": "a\"}{\\",
          "x": null
        }
        "#);
    }

    #[test]
    fn the_cli_escapes_characters_that_would_steer_a_terminal() {
        assert_eq!(indent("\"a\u{9b}2J\u{202e}\u{e0041}\""), r#""a\u009b2J\u202e\udb40\udc41""#);
    }

    proptest! {
        #[test]
        fn indenting_changes_no_value(key in any::<String>(), value in any::<String>(), number in any::<i64>()) {
            let value = serde_json::json!({ key: [value, number, { "a": {} }], "n": null });
            let read: Value = serde_json::from_str(&indent(&value.to_string())).unwrap();
            prop_assert_eq!(read, value);
        }
    }
}
