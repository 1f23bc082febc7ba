//! The ids of messages in the journal, by which `journalctl -x` finds their explanation.

use sha2::{Digest as _, Sha256};

/// The id of the record of a call that did not fail with a code of metamcp.
pub const CALL: &str = "CALL";

/// The id of the sum of several calls.
pub const CALL_SUM: &str = "CALL_SUM";

/// The id of the record of records that were dropped.
pub const CALLS_DROPPED: &str = "CALLS_DROPPED";

/// Returns the id of messages about `code`: 128 bits in hexadecimal digits, the same in each
/// version. Source: systemd.journal-fields(7), `MESSAGE_ID=`.
pub fn message_id(code: &str) -> String {
    let digest = Sha256::digest(format!("metamcp message {code}"));
    let (id, _) = digest.split_at(16);
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_code_never_changes() {
        assert_eq!(message_id(CALL), "961304ada7770e006069d2cc7de964d3");
        assert_ne!(message_id("SERVER_TIMEOUT"), message_id(CALL));
    }
}
