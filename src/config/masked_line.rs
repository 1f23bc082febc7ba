//! A line of the configuration with its values masked, so that a diagnostic can show it.
//!
//! Pure. A mistake can be a missing quote, so nothing behind it is taken for a key.

/// The characters that end a word outside quotes.
const PUNCTUATION: [char; 9] = ['[', ']', '{', '}', '=', ',', '"', '\'', '#'];

/// Returns `line` with everything masked but its keys and punctuation. If it is no TOML at the byte
/// `mistake`, it has no key from there on, and none but the first before: a quote may be missing.
pub(super) fn masked_line(line: &str, mistake: Option<usize>) -> String {
    let is_toml = mistake.is_none();
    let mistake = mistake.unwrap_or(line.len());
    if let Some(end) = header_end(line) {
        return format!("{}{}", &line[..end], masked_words(&line[end..]));
    }
    let (mut masked, mut at) = (String::with_capacity(line.len()), 0);
    let mut is_key_next = true;
    // Inside these brackets, a comma precedes a value or a key.
    let mut open = Vec::new();
    while let Some(first) = line[at..].chars().next() {
        if at >= mistake {
            masked.push_str(&masked_words(&line[at..]));
            break;
        }
        let end = at + token_length(&line[at..], first);
        let token = &line[at..end];
        match first {
            '#' => masked.push_str(&masked_words(token)),
            _ if first.is_whitespace() => masked.push_str(token),
            // A value may be where a key in quotes would be.
            '"' | '\'' if !is_toml => masked.push_str(&masked_words(token)),
            _ if is_key_next && end <= mistake && is_key(token, &line[end..]) => {
                masked.push_str(token);
            }
            _ if ["true", "false"].contains(&token) => masked.push_str(token),
            _ => masked.push_str(&masked_words(token)),
        }
        match first {
            '[' | '{' => open.push(first),
            ']' | '}' => drop(open.pop()),
            _ => {}
        }
        if !first.is_whitespace() {
            let is_in_table = is_toml && open.last() == Some(&'{');
            let is_part_next = token.ends_with('.') && (is_toml || is_key_next);
            is_key_next = matches!(first, '{' | ',') && is_in_table || is_part_next;
        }
        at = end;
    }
    masked
}

/// Returns `text` with every word masked.
pub(super) fn masked_words(text: &str) -> String {
    let is_shown = |found: char| found.is_whitespace() || PUNCTUATION.contains(&found);
    text.chars().map(|found| if is_shown(found) { found } else { '*' }).collect()
}

/// Returns `message` with the values masked that it quotes.
pub(super) fn masked_message(message: &str) -> String {
    // Other messages have names between backquotes. A key that needs quotes may have its value in it.
    let is_odd = |key: &str| !key.chars().all(is_bare);
    let unknown = message.strip_prefix("unknown key `").and_then(|rest| rest.split('`').next());
    let has_value = message.starts_with("invalid ") || unknown.is_some_and(is_odd);
    let quotes: &[char] = if has_value { &['"', '`'] } else { &['"'] };
    let (mut masked, mut open) = (String::with_capacity(message.len()), None);
    let mut is_escaped = false;
    for found in message.chars() {
        match open {
            None if quotes.contains(&found) => open = Some(found),
            Some(quote) if quote == found && !is_escaped => open = None,
            Some(_) => {
                // Serde quotes a text as Rust does.
                is_escaped = found == '\\' && !is_escaped;
                masked.push('*');
                continue;
            }
            None => {}
        }
        masked.push(found);
    }
    masked
}

/// Returns whether a key without quotes may have this character, or a dot between keys.
fn is_bare(found: char) -> bool {
    found.is_ascii_alphanumeric() || "_-.".contains(found)
}

/// Returns the end of the name of a table, if the line declares one. It holds no value.
fn header_end(line: &str) -> Option<usize> {
    let start = line.find(|found: char| !found.is_whitespace() && found != '[')?;
    let name = &line[start..];
    let name = &name[..name.find(|found| !is_bare(found)).unwrap_or(name.len())];
    let end = start + name.len();
    let is_closed = line[end..].starts_with(']') || line[end..].trim().is_empty();
    (line[..start].contains('[') && is_closed && name.contains('.')).then_some(end)
}

/// Returns the length of the token that begins `rest` with `first`. An open string ends with the
/// line.
fn token_length(rest: &str, first: char) -> usize {
    let behind = |end: Option<usize>, width: usize| end.map_or(rest.len(), |end| end + width);
    match first {
        '#' => rest.len(),
        '"' | '\'' => behind(rest[1..].find(first).map(|end| end + 1), 1),
        _ if PUNCTUATION.contains(&first) => 1,
        _ if first.is_whitespace() => behind(rest.find(|found: char| !found.is_whitespace()), 0),
        _ => {
            let is_end = |found: char| found.is_whitespace() || PUNCTUATION.contains(&found);
            behind(rest.find(is_end), 0)
        }
    }
}

/// Returns whether a token is a key: an equals sign and a value follow, or another part of the key.
fn is_key(token: &str, after: &str) -> bool {
    let name = token.trim_matches(['"', '\'']);
    // A key with other characters may have its value in it, as in "API_KEY: VALUE".
    if name.is_empty() || !name.chars().all(is_bare) {
        return false;
    }
    let after = after.trim_start();
    after.starts_with('.')
        || token.ends_with('.')
        || after.strip_prefix('=').is_some_and(|value| {
            let value = value.trim_start();
            !value.is_empty() && !value.starts_with(['=', ',', ']', '}'])
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_line_has_its_keys_and_no_values() {
        for (line, mistake, expected) in [
            (
                "env = { A = \"b c\", \"D\" = 'e' } # f",
                None,
                "env = { A = \"* *\", \"D\" = '*' } # *",
            ),
            ("a.b.\"c-d\" = 12", None, "a.b.\"c-d\" = **"),
            ("\"A: s3cret\" = \"x\"", None, "\"** ******\" = \"*\""),
            ("token = 3fs3cret", Some(9), "token = ********"),
            ("env = { API_KEY = a, B = c }", Some(18), "env = { ******* = *, * = * }"),
            ("args = [\"-t\", s3cret==]", None, "args = [\"**\", ******==]"),
            ("enabled = true", None, "enabled = true"),
            ("[servers.git]", Some(9), "[servers.git]"),
            ("[servers.git", Some(12), "[servers.git"),
            ("[\"s3cret.x\"]", None, "[\"********\"]"),
            ("a = \"s3cret", Some(4), "a = \"******"),
            ("args = [\"-t\", \"s3cret\"=", None, "args = [\"**\", \"******\"="),
            ("args = [\"-t\", \"s3cret\"=x", None, "args = [\"**\", \"******\"=*"),
            ("\"s3cret\"=", None, "\"******\"="),
        ] {
            assert_eq!(masked_line(line, mistake), expected);
        }
    }
}
