//! The form `SERVER/NAME` for an item of a server.

use super::{Failed, USAGE};

/// Splits `SERVER/NAME` into server and name; the name may contain further slashes.
///
/// # Errors
///
/// [`Failed`] with 64 when the server or the name is missing.
pub(super) fn split<'a>(text: &'a str, kind: &str) -> Result<(&'a str, &'a str), Failed> {
    text.split_once('/').filter(|(server, name)| !server.is_empty() && !name.is_empty()).ok_or_else(
        || {
            Failed::new(USAGE, format!("`{text}` is no {kind}"))
                .hint(format!("Write SERVER/NAME; `metamcp {kind}s` lists them."))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_ends_at_the_first_slash() {
        assert_eq!(split("a/b", "prompt").ok(), Some(("a", "b")));
        assert_eq!(split("a/file:///b", "resource").ok(), Some(("a", "file:///b")));
        for wrong in ["a", "a/", "/b", "", "/"] {
            assert_eq!(split(wrong, "prompt").map_err(|failed| failed.code), Err(USAGE), "{wrong}");
        }
    }
}
