//! The names of servers, checked against a grammar on creation.
//!
//! This module is independent of configuration and transport.

use std::{borrow::Borrow, fmt, sync::Arc};

/// The separator between a server's name and a tool's name in the `direct` view.
///
/// Clients accept two underscores in a tool name (`^[a-zA-Z0-9_-]{1,64}$`), and [`ServerName`]
/// forbids them, so the first pair is always the separator.
pub const QUALIFIER: &str = "__";

/// The name of a declared server: `[servers.NAME]`.
///
/// 1 to [`ServerName::LENGTH_MAX`] letters, digits, `-` and `_`; it starts and ends with a letter
/// or digit and has no `__`. Such a name is safe as a path segment, as a file name, as a journal
/// field's value, and as the prefix of a tool name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(Arc<str>);

impl ServerName {
    /// The maximum length of a name, in characters.
    ///
    /// Clients limit a tool's whole name to 64 characters; 40 leave room for the tool.
    pub const LENGTH_MAX: usize = 40;

    /// Checks `text` against the grammar.
    ///
    /// # Errors
    ///
    /// [`NameError`] says which rule the text breaks.
    pub fn new(text: &str) -> Result<Self, NameError> {
        Self::check(text).map(|()| Self(text.into()))
    }

    /// Checks `text` as [`Self::new`] does.
    fn check(text: &str) -> Result<(), NameError> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric();
        let is_other = |byte: u8| !is_word(byte) && !matches!(byte, b'-' | b'_');
        let rule = if text.is_empty() {
            Rule::Empty
        } else if let Some(found) = text.bytes().position(is_other) {
            // The first byte of a character.
            Rule::Character(text[found..].chars().next().unwrap_or_default())
        } else if text.len() > Self::LENGTH_MAX {
            Rule::Length(text.len())
        } else if !text.bytes().next().is_some_and(is_word)
            || !text.bytes().last().is_some_and(is_word)
        {
            Rule::Edge
        } else if qualifier_at(text).is_some() {
            Rule::Qualifier
        } else {
            return Ok(());
        };
        Err(NameError { text: text.to_owned(), rule })
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of `item`, a tool or prompt of this server, in the `direct` view.
    pub fn qualify(&self, item: &str) -> String {
        format!("{self}{QUALIFIER}{item}")
    }
}

/// Returns the server and the tool of `SERVER/TOOL` or `SERVER__TOOL`.
pub fn split_tool(name: &str) -> Option<(&str, &str)> {
    name.split_once('/').or_else(|| split_at_qualifier(name))
}

/// Returns whether `name` is the name of `tool`, alone, as `SERVER/TOOL` or as `SERVER__TOOL`.
pub fn is_tool(name: &str, server: Option<&str>, tool: Option<&str>) -> bool {
    tool == Some(name)
        || split_tool(name).is_some_and(|(of, named)| server == Some(of) && tool == Some(named))
}

/// Splits a name of the `direct` view into server and item.
///
/// `None` if there is no separator, or if the text before it is not a server name.
pub fn split_qualified(qualified: &str) -> Option<(&str, &str)> {
    split_at_qualifier(qualified).filter(|(server, _)| ServerName::check(server).is_ok())
}

fn split_at_qualifier(name: &str) -> Option<(&str, &str)> {
    let at = qualifier_at(name)?;
    Some((&name[..at], &name[at + QUALIFIER.len()..]))
}

/// Returns the position of the first separator. A search that is made for long texts takes four times
/// as many instructions.
fn qualifier_at(text: &str) -> Option<usize> {
    text.as_bytes().windows(QUALIFIER.len()).position(|pair| pair == QUALIFIER.as_bytes())
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl Borrow<str> for ServerName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl serde::Serialize for ServerName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The reason why a text is not a server name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a server name: {rule}")]
pub struct NameError {
    text: String,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Empty,
    Character(char),
    Length(usize),
    Edge,
    Qualifier,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty"),
            Self::Character(found) => {
                write!(f, "`{}` is not a letter, digit, `-` or `_`", found.escape_default())
            }
            Self::Length(length) => {
                write!(f, "{length} characters are more than {}", ServerName::LENGTH_MAX)
            }
            Self::Edge => f.write_str("it must start and end with a letter or digit"),
            Self::Qualifier => f.write_str("`__` separates a server from its tools"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_letters_digits_dash_and_underscore() {
        for good in ["a", "gitea", "my-server_2", "9lives", &"x".repeat(40)] {
            assert_eq!(ServerName::new(good).expect(good).as_str(), good);
        }
    }

    #[test]
    fn the_error_of_an_invalid_name_states_the_broken_rule() {
        for (bad, rule) in [
            ("", "it is empty"),
            ("a.b", "`.` is not a letter"),
            ("../etc", "`.` is not a letter"),
            ("-a", "start and end with a letter or digit"),
            ("a_", "start and end with a letter or digit"),
            ("a__b", "`__` separates a server from its tools"),
            (&"x".repeat(41), "41 characters are more than 40"),
        ] {
            let error = ServerName::new(bad).expect_err(bad).to_string();
            assert!(error.contains(rule), "{bad}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_qualified_name_splits_where_it_was_joined(
            server in "[a-z0-9]([a-z0-9_-]{0,10}[a-z0-9])?", item in "[a-zA-Z0-9_.-]{1,20}",
        ) {
            proptest::prop_assume!(!server.contains("__"));
            let server = ServerName::new(&server).expect("generated from the grammar");
            let qualified = server.qualify(&item);

            proptest::prop_assert_eq!(split_qualified(&qualified), Some((server.as_str(), item.as_str())));
        }
    }
}
