//! The messages of the TOML parser, reworded and with a suggestion.

use std::ops::Range;

use super::{diagnostic::ConfigProblem, keyword, lifecycle, proxy, refusal::Refusal, server_auth};
use crate::similar_names;

/// Serde's names for kinds of values, and the words that replace them.
const VALUE_WORDS: [(&str, &str); 5] = [
    ("sequence", "a list"),
    ("map", "a table"),
    ("floating point", "fraction"),
    ("unit value", "nothing"),
    ("unit variant", "a word"),
];

/// The help that shows how to write a duration.
const DURATION: &str = "write a number and a unit, as in \"250ms\", \"30s\" or \"5m\"";

/// The help that shows how to write an address.
const ADDRESS: &str = "write an address and a port, as in \"127.0.0.1:12011\"";

/// The help that shows how to write a table.
const TABLE: &str = "write a table: its name in brackets on a line of its own, then its keys";

/// Rewords an error about text that is no TOML. Any value on its line may be a secret.
pub(super) fn from_syntax(error: &toml::de::Error, text: &str) -> ConfigProblem {
    from_toml(error, text).of_syntax()
}

/// Rewords an error of the parser, and adds a suggestion.
pub(super) fn from_toml(error: &toml::de::Error, text: &str) -> ConfigProblem {
    let span = error.span().unwrap_or(0..0);
    if let Some(refusal) = Refusal::from_serde(error.message(), || key_before(text, span.start)) {
        return ConfigProblem::refused(first_line(text, span), refusal);
    }
    let message = error.message().trim_end().replace('\n', ", ");
    let (message, help) = if is_array_of_tables(text, span.start) {
        let message = "a table in double brackets".to_owned();
        (message, Some("write its name in single brackets: each name has one table".to_owned()))
    } else if message.starts_with("invalid type: sequence")
        && key_before(text, span.start) == "command"
    {
        ("`command` is a list".to_owned(), Some(command_help(text, &span)))
    } else if is_date(&message, text, span.start) {
        ("a date".to_owned(), Some("write it in quotes: no key takes a date".to_owned()))
    } else if message.starts_with("unknown ") {
        unknown(&message)
    } else if message.starts_with("invalid ")
        && let Some((found, expected)) = message.split_once(", expected ")
    {
        mistaken(found, expected)
    } else if message == "missing field `mode`" {
        ("`lifecycle` has no `mode`".to_owned(), Some(lifecycle::EXAMPLES.to_owned()))
    } else {
        let help = remedy(&message).map(str::to_owned);
        (message, help)
    };
    let is_unknown_key = message.starts_with("unknown key");
    let problem = ConfigProblem::at(first_line(text, span), message);
    let problem = if is_unknown_key { problem.hiding_values() } else { problem };
    match help {
        Some(help) => problem.help(help),
        None => problem,
    }
}

/// Returns the help for a command line that is one list. Only its first word is shown, because the
/// others may be secrets.
fn command_help(text: &str, span: &Range<usize>) -> String {
    let list = text.get(span.clone()).unwrap_or_default();
    let first = list.split(['"', '\'']).nth(1).filter(|word| !word.is_empty());
    format!(
        "write `command = \"{}\"`, and the other words as `args = [\"…\"]`",
        first.unwrap_or("PROGRAM")
    )
}

/// Returns the part of `span` on its first line. For a missing value, the parser marks the whole
/// table.
fn first_line(text: &str, span: Range<usize>) -> Range<usize> {
    let end = text[span.start.min(text.len())..]
        .find('\n')
        .map_or(span.end, |newline| span.end.min(span.start + newline));
    span.start..end.max(span.start)
}

/// Returns the name of the key whose value begins at `start`.
fn key_before(text: &str, start: usize) -> String {
    let before = text.get(..start).unwrap_or_default().trim_end();
    let key = before.strip_suffix('=').unwrap_or(before).trim_end().trim_end_matches(['"', '\'']);
    let is_part = |found: char| found.is_ascii_alphanumeric() || "_-".contains(found);
    key[key.trim_end_matches(is_part).len()..].to_owned()
}

/// Returns whether the line at `start` begins an array of tables; no key takes one.
fn is_array_of_tables(text: &str, start: usize) -> bool {
    let line = text.get(..start).map_or(0, |before| before.rfind('\n').map_or(0, |end| end + 1));
    text[line..].trim_start().starts_with("[[")
}

/// Returns whether the value at `start` is a date, which the parser reports as a table or in words
/// of its own.
fn is_date(message: &str, text: &str, start: usize) -> bool {
    message.ends_with(" a spanned value")
        || message.starts_with("invalid type: map")
            && text.as_bytes().get(start).is_some_and(u8::is_ascii_digit)
}

/// Rewords an error about an unknown key or word. Serde writes "unknown field `comand`, expected
/// one of `command`, `url`", and for two, "expected `command` or `url`".
fn unknown(message: &str) -> (String, Option<String>) {
    let mut quoted = message.split('`').skip(1).step_by(2).map(str::to_owned);
    let found = quoted.next().unwrap_or_default();
    let expected: Vec<String> = quoted.collect();
    let help = did_you_mean(&found, expected.iter().map(String::as_str))
        .unwrap_or_else(|| format!("known here: {}", expected.join(", ")));
    let kind = if message.starts_with("unknown field") { "key" } else { "value" };
    (format!("unknown {kind} `{found}`"), Some(help))
}

/// Rewords an error about a value of the wrong type or out of range.
fn mistaken(found: &str, expected: &str) -> (String, Option<String>) {
    // Serde reads a list as the values of a table, in order, until there are too few.
    let found = if found.starts_with("invalid length") { "invalid type: sequence" } else { found };
    let reworded = found.split_once(": ").and_then(|(fault, value)| {
        VALUE_WORDS.into_iter().find_map(|(theirs, ours)| {
            value.strip_prefix(theirs).map(|rest| format!("{fault}: {ours}{rest}"))
        })
    });
    let found = reworded.unwrap_or_else(|| found.to_owned());
    let (expected, help) = match expected {
        "u32" if found.starts_with("invalid value") && !found.contains("`-") => {
            ("a smaller number", Some("write a whole number below 4294967296"))
        }
        "usize" | "u64" | "u32" | "u16" | "i64" => {
            ("a whole number from 0", Some("write a number without quotes, as in 3"))
        }
        "f64" => ("a number", Some("write a number without quotes, as in 0.6")),
        "a string" => (expected, Some("write a text in quotes, as in \"text\"")),
        "path string" => ("a path", Some("write a path in quotes, as in \"/path\"")),
        "a sequence" => ("a list", Some("write a list, as in [\"one\", \"two\"]")),
        "a map" => ("a table", Some("write a table, as in { NAME = \"value\" }")),
        "a boolean" => (expected, Some("write true or false, without quotes")),
        "socket address" => ("an address", Some(ADDRESS)),
        lifecycle::EXPECTED => (expected, Some(lifecycle::EXAMPLES)),
        proxy::EXPECTED => (expected, Some(proxy::EXAMPLE)),
        server_auth::EXPECTED => (expected, Some(server_auth::EXAMPLES)),
        _ if expected.starts_with("struct ") => ("a table", Some(TABLE)),
        _ if expected.starts_with("a table such as ") => (expected, Some(TABLE)),
        _ if expected.starts_with("a duration ") => (expected, Some(DURATION)),
        _ if let Some(words) = expected.strip_prefix(keyword::EXPECTED) => {
            let words: Vec<_> = words.split('`').skip(1).step_by(2).collect();
            let help = format!("write one of these, in quotes: \"{}\"", words.join("\", \""));
            return (format!("{found}, expected a word"), Some(help));
        }
        _ => (expected, None),
    };
    (format!("{found}, expected {expected}"), help.map(str::to_owned))
}

/// Returns the help for a message that needs no rewording.
fn remedy(message: &str) -> Option<&'static str> {
    Some(match message {
        _ if message.contains("is not a duration") => DURATION,
        _ if message.contains("is out of range") => {
            "write another duration, or leave the key out for its default"
        }
        _ if message.contains("is not a view") => {
            "write \"direct\", \"meta\" or, for one server unchanged, \"passthrough:SERVER\""
        }
        _ if message.contains("duplicate key") => {
            "rename or remove one: a name can be declared only once"
        }
        _ if message.contains("invalid socket address") => ADDRESS,
        _ => return None,
    })
}

/// Returns a question with the known word closest to `found`, if one is close.
pub(super) fn did_you_mean<'a>(
    found: &str,
    known: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let near = similar_names::within(found, known, 1.max(found.len() / 3));
    near.first().map(|known| format!("did you mean `{known}`?"))
}
