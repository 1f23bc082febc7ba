//! What the TOML parser says, in our words and with a suggestion.

use super::diagnostic::Problem;

/// Turns the parser's message into ours, with a suggestion for a word it did not expect.
pub(super) fn from_toml(error: &toml::de::Error, text: &str) -> Problem {
    let span = error.span().unwrap_or(0..0);
    let message = error.message().trim_end().replace('\n', ", ");
    // serde's wording: "unknown field `comand`, expected one of `command`, `url`".
    let mut quoted = message.split('`').skip(1).step_by(2).map(str::to_owned);
    let help = if message.starts_with("unknown field") || message.starts_with("unknown variant") {
        let found = quoted.next().unwrap_or_default();
        let expected: Vec<String> = quoted.collect();
        did_you_mean(&found, expected.iter().map(String::as_str))
            .or_else(|| Some(format!("known here: {}", expected.join(", "))))
    } else if message.contains("expected a duration") {
        Some("write a number and a unit, as in \"250ms\", \"30s\" or \"5m\"".to_owned())
    } else if let Some((_, expected)) = message.split_once(", expected ")
        && message.starts_with("invalid type")
    {
        written_as(expected)
    } else if message.contains("is out of range") {
        Some("leave the key out for its default".to_owned())
    } else if message.contains("is not a view") {
        Some("write \"direct\" or, for one server as it is, \"passthrough:SERVER\"".to_owned())
    } else if message.contains("duplicate key") {
        Some("a name can be declared only once: rename or remove one".to_owned())
    } else if message.contains("invalid socket address") {
        Some("write an address and a port, as in \"127.0.0.1:12011\"".to_owned())
    } else {
        None
    };
    let message = match message.split_once(", expected one of") {
        Some((head, _)) if help.is_some() => {
            head.replace("unknown field", "unknown key").replace("unknown variant", "unknown value")
        }
        _ => message.replace("unknown field", "unknown key"),
    };
    // The parser marks a whole table where a value in it is missing: its first line is enough.
    let end = text[span.start.min(text.len())..]
        .find('\n')
        .map_or(span.end, |newline| span.end.min(span.start + newline));
    let problem = Problem::at(span.start..end.max(span.start), message);
    match help {
        Some(help) => problem.help(help),
        None => problem,
    }
}

/// Returns how a value of the expected type is written.
fn written_as(expected: &str) -> Option<String> {
    let example = match expected {
        "a string" => "put it in quotes, as in \"text\"",
        "a sequence" => "write a list, as in [\"one\", \"two\"]",
        "a map" => "write a table, as in { NAME = \"value\" }",
        "a boolean" => "write true or false",
        _ if expected.starts_with("struct") => {
            "write a table: its name in brackets on a line of its own"
        }
        _ if expected.contains("socket address") => {
            "write an address and a port, as in \"127.0.0.1:12011\""
        }
        _ => return None,
    };
    Some(example.to_owned())
}

/// Returns a question with the known word nearest to `found`, if one is near.
pub(super) fn did_you_mean<'a>(
    found: &str,
    known: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let nearest = known
        .map(|known| (strsim::damerau_levenshtein(found, known), known))
        .min_by_key(|(distance, _)| *distance)?;
    (nearest.0 <= 1.max(found.len() / 3)).then(|| format!("did you mean `{}`?", nearest.1))
}
