//! The names of tools and prompts in the merged view.
//!
//! A name is `SERVER__ITEM` if clients accept that: one name that a client rejects costs it the
//! whole list. A name that is too long or has other characters is replaced by an alias: its
//! beginning and a hash of the whole name. An item has the same alias in every version and on every
//! host.
//!
//! Pure.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::{
    config::defaults::EXPOSED_NAME_MAX,
    server_name::{QUALIFIER, ServerName},
};

/// The number of bytes of the hash in an alias, each as two hexadecimal digits. Two items with the
/// same beginning collide once in about four billion.
const MARK_BYTES: usize = 4;

/// Returns the name of `item` of `server` in the merged view.
pub fn exposed(server: &ServerName, item: &str) -> String {
    let whole = server.qualify(item);
    if whole.len() <= EXPOSED_NAME_MAX && whole.bytes().all(is_plain) {
        return whole;
    }
    let mut mark = String::new();
    for byte in &Sha256::digest(&whole)[..MARK_BYTES] {
        // Writing to a string does not fail.
        let _written = write!(mark, "{byte:02x}");
    }
    let taken = server.as_str().len() + QUALIFIER.len() + "_".len() + mark.len();
    let plain = item.chars().map(|found| if is_plain_char(found) { found } else { '_' });
    let beginning: String = plain.take(EXPOSED_NAME_MAX.saturating_sub(taken)).collect();
    match beginning.is_empty() {
        true => server.qualify(&mark),
        false => server.qualify(&format!("{beginning}_{mark}")),
    }
}

/// Returns whether a name of an item looks like an alias.
pub(super) fn may_be_alias(item: &str) -> bool {
    let mark = item.rsplit_once('_').map_or(item, |(_, mark)| mark);
    mark.len() == 2 * MARK_BYTES
        && mark.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_plain_char(found: char) -> bool {
    u8::try_from(found).is_ok_and(is_plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> ServerName {
        ServerName::new(text).expect("a name")
    }

    #[test]
    fn a_name_that_clients_accept_stays_unchanged() {
        assert_eq!(exposed(&name("git"), "log"), "git__log");
        let longest = "x".repeat(EXPOSED_NAME_MAX - "git__".len());
        assert_eq!(exposed(&name("git"), &longest), format!("git__{longest}"));
    }

    #[test]
    fn an_alias_keeps_the_beginning_of_the_name_and_never_changes() {
        for (server, item, expected) in [
            ("browser", "page.click", "browser__page_click_1272026d"),
            (
                "github",
                &"create_pull_request_".repeat(4),
                "github__create_pull_request_create_pull_r_62653123",
            ),
            ("git", "größe", "git__gr__e_220034d7"),
            (
                &"s".repeat(40),
                "a_longer_tool",
                "ssssssssssssssssssssssssssssssssssssssss__1b14a0d4",
            ),
        ] {
            assert_eq!(exposed(&name(server), item), expected);
        }
    }

    proptest! {
        #[test]
        fn clients_accept_the_exposed_name_of_any_item_and_metamcp_recognises_it(
            server in "[a-z0-9]{1,40}", item in ".{1,100}"
        ) {
            let server = name(&server);
            let exposed = exposed(&server, &item);
            prop_assert!(exposed.len() <= EXPOSED_NAME_MAX, "{}", exposed);
            prop_assert!(exposed.bytes().all(is_plain), "{}", exposed);
            let (found, rest) = crate::server_name::split_qualified(&exposed).expect("both");
            prop_assert_eq!(found, server.as_str());
            prop_assert!(rest == item || may_be_alias(rest), "{}", exposed);
        }
    }
}
