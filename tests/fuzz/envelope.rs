//! Bodies and lines: whatever comes is a message, a batch or an error.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use metamcp::{
    config::defaults::BATCH_MESSAGES_MAX,
    protocol::{Batch, Message, Shape, jsonrpc::Part, mcp::Profile},
};
use serde_json::value::RawValue;

/// The parts that are read and rewritten on the way.
const PARTS: [Part; 12] = [
    Part::Id,
    Part::ProgressToken,
    Part::CancelledId,
    Part::Name,
    Part::Uri,
    Part::Cursor,
    Part::ProtocolVersion,
    Part::Capabilities,
    Part::Level,
    Part::Progress,
    Part::Result,
    Part::Error,
];

fuzz_target!(|data: &[u8]| {
    let bytes = Bytes::copy_from_slice(data);
    if let Ok(message) = Message::parse(bytes.clone()) {
        check(&message, data);
    }
    if Batch::is_one(&bytes)
        && let Ok(batch) = Batch::parse(&bytes, BATCH_MESSAGES_MAX)
    {
        let mut n_members = 0;
        for message in batch.into_members().flatten() {
            n_members += 1;
            check(&message, message.bytes());
        }
        assert!(n_members <= BATCH_MESSAGES_MAX);
    }
    if let Ok(text) = str::from_utf8(data) {
        Profile::read(text).ok();
    }
});

/// A message is what it was read from, each of its parts is JSON, and can be replaced.
fn check(message: &Message, data: &[u8]) {
    assert_eq!(message.bytes(), data);
    for part in PARTS {
        let Some(text) = message.part(part) else { continue };
        serde_json::from_str::<&RawValue>(text).expect("a part is JSON");
        message.string(part);
        message.integer(part);
        assert_eq!(message.edit([(part, text)]), data, "nothing is changed by itself");
        if part == Part::Id {
            let other = message.with(part, "\"another\"");
            let again = Message::parse(other.bytes().clone()).expect("it is a message still");
            assert_eq!(again.part(part), Some("\"another\""));
            assert_eq!(again.shape(), message.shape());
        }
    }
    assert_eq!(message.shape() == Shape::Response, message.method().is_none());
}
