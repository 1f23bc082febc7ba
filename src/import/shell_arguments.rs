//! The shell command for arguments that contain secrets or variables.
//!
//! Pure. Arguments cannot contain references, and every user of the host can read them while a
//! program runs. So a secret becomes a variable of the child, with a reference as its value.

use super::{
    secret_detection::{is_secret, is_secret_name, looks_secret},
    variable_syntax::{ForeignText, TextPiece},
};

/// The prefix for the name of an unnamed argument, followed by its position from 1.
pub(super) const NAMELESS: &str = "ARGUMENT_";

/// A part of an argument.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ArgumentPart {
    /// Literal text.
    Text(String),
    /// A value for a variable, named after its key.
    Value {
        /// The name of the value, as the arguments indicate it.
        key: String,
        /// The value.
        value: ForeignText,
    },
}

/// Returns the parts of an argument; `flag` is the argument before it.
pub(super) fn parts(flag: Option<&str>, argument: &ForeignText, index: usize) -> Vec<ArgumentPart> {
    let is_flag = argument.as_plain().is_some_and(|text| text.starts_with('-'));
    let key = flag.filter(|flag| !is_flag && flag.starts_with('-') && !flag.contains('='));
    let (prefix, key, rest) = match named(argument) {
        // The word after `--token` is its value in any case.
        Some((prefix, name, rest)) if is_secret_name(&name) || !key.is_some_and(is_secret_name) => {
            (prefix, Some(name), rest)
        }
        _ => (String::new(), key.map(str::to_owned), argument.clone()),
    };
    let fallback = format!("{NAMELESS}{index}");
    let whole = |rest: ForeignText| ArgumentPart::Value {
        key: key.clone().unwrap_or(fallback.clone()),
        value: rest,
    };
    let is_secret = match rest.as_plain() {
        Some(text) => match &key {
            Some(key) => is_secret(key, text) || line_has_secret(text),
            None => looks_secret(text) || line_has_secret(text),
        },
        // In a composite value, literal text next to a secret variable may be part of the secret.
        None => {
            let has_text = rest.0.iter().any(|piece| matches!(piece, TextPiece::Text(_)));
            let is_named = key.as_deref().is_some_and(is_secret_name);
            let looks = |piece: &TextPiece| matches!(piece, TextPiece::Text(text) if looks_secret(text) || line_has_secret(text));
            has_text && is_named || rest.0.iter().any(looks)
        }
    };
    let mut parts = vec![ArgumentPart::Text(prefix)];
    if is_secret {
        parts.push(whole(rest));
    } else {
        for piece in rest.0 {
            parts.push(match piece {
                TextPiece::Text(text) => ArgumentPart::Text(text),
                TextPiece::Variable { ref name, .. } | TextPiece::Input(ref name) => {
                    ArgumentPart::Value { key: name.clone(), value: ForeignText(vec![piece]) }
                }
                TextPiece::File(_) | TextPiece::Foreign(_) => whole(ForeignText(vec![piece])),
            });
        }
    }
    parts.retain(|part| *part != ArgumentPart::Text(String::new()));
    parts
}

/// Splits `--name=value`, `NAME=value`, and `Name: value` if the name indicates a secret, into the
/// text before the value, the name and the value.
fn named(argument: &ForeignText) -> Option<(String, String, ForeignText)> {
    let (TextPiece::Text(first), others) = argument.0.split_first()? else { return None };
    let end = first.find(['=', ':'])?;
    let name = &first[..end];
    let is_word = |found: char| found.is_ascii_alphanumeric() || matches!(found, '-' | '_' | '.');
    // `https://…` is not a name with a value.
    if name.is_empty() || !name.chars().all(is_word) || first[end..].starts_with("://") {
        return None;
    }
    if first[end..].starts_with(':') && !is_secret_name(name) {
        return None;
    }
    let value = first[end + 1..].trim_start_matches(' ');
    let prefix = &first[..first.len() - value.len()];
    let mut rest = ForeignText::plain(value);
    others.iter().for_each(|piece| rest.push(piece.clone()));
    Some((prefix.to_owned(), name.to_owned(), rest))
}

/// Returns `true` if a text of several words, such as a shell script, contains a secret.
pub(super) fn line_has_secret(text: &str) -> bool {
    let mut words = text.split_whitespace().peekable();
    let mut n_words = 0;
    while let Some(word) = words.next() {
        n_words += 1;
        if let Some((name, value)) = word.split_once(['=', ':'])
            && is_secret_name(name)
            && is_secret(name, value.trim_matches(['"', '\'']))
        {
            return true;
        }
        let is_flag = word.starts_with('-') || word.ends_with(':');
        if is_flag && is_secret_name(word) && words.peek().is_some_and(|next| is_secret(word, next))
        {
            return true;
        }
    }
    // The caller has already checked a single word.
    n_words > 1 && text.split_whitespace().any(looks_secret)
}

/// Returns `text` quoted as one shell word.
pub(super) fn quoted(text: &str) -> String {
    let is_safe = |found: char| found.is_ascii_alphanumeric() || "_@%+=:,./-".contains(found);
    match text.chars().all(is_safe) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Returns a variable name derived from `key`.
pub(super) fn variable(key: &str) -> String {
    let upper = |found: char| match found.is_ascii_alphanumeric() {
        true => found.to_ascii_uppercase(),
        false => '_',
    };
    let name: String = key.trim_start_matches('-').chars().take(60).map(upper).collect();
    match name.starts_with(|found: char| found.is_ascii_digit()) || name.is_empty() {
        true => format!("_{name}"),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(flag: Option<&str>, argument: &str) -> Vec<ArgumentPart> {
        parts(flag, &ForeignText::plain(argument), 3)
    }

    fn value(key: &str, value: &str) -> ArgumentPart {
        ArgumentPart::Value { key: key.to_owned(), value: ForeignText::plain(value) }
    }

    fn text(text: &str) -> ArgumentPart {
        ArgumentPart::Text(text.to_owned())
    }

    #[test]
    fn a_secret_in_an_argument_becomes_a_variable() {
        assert_eq!(of(Some("--token"), "abc"), [value("--token", "abc")]);
        assert_eq!(of(None, "--api-key=abc"), [text("--api-key="), value("--api-key", "abc")]);
        assert_eq!(
            of(Some("-e"), "DB_PASSWORD=abc"),
            [text("DB_PASSWORD="), value("DB_PASSWORD", "abc")]
        );
        assert_eq!(
            of(Some("--header"), "Authorization: Bearer abc"),
            [text("Authorization: "), value("Authorization", "Bearer abc")]
        );
        assert_eq!(of(None, "postgres://a:b@db/x"), [value("ARGUMENT_3", "postgres://a:b@db/x")]);
        let line = "API_KEY=abc exec server";
        assert_eq!(of(Some("-c"), line)[1], value("API_KEY", "abc exec server"));
        let line = "exec server --token abc";
        assert_eq!(of(Some("-c"), line), [value("-c", line)]);
    }

    #[test]
    fn an_argument_without_a_secret_is_unchanged() {
        for plain in ["-y", "--port=80", "https://host/mcp", "a:b", "--token", "GITHUB_TOKEN"] {
            assert_eq!(of(Some("-e"), plain).len(), if plain == "--port=80" { 2 } else { 1 });
            assert!(
                !of(Some("-e"), plain)
                    .iter()
                    .any(|part| matches!(part, ArgumentPart::Value { .. }))
            );
        }
    }

    #[test]
    fn shell_words_are_quoted() {
        assert_eq!(quoted("a/b@1.0"), "a/b@1.0");
        assert_eq!(quoted(""), "");
        assert_eq!(quoted("it's $X"), "'it'\\''s $X'");
        assert_eq!(variable("--api-key"), "API_KEY");
        assert_eq!(variable("1password"), "_1PASSWORD");
    }
}
