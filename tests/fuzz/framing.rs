//! Lines of a pipe and events of a stream: the same, however the bytes are cut up on their way.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use metamcp::protocol::{
    ndjson::{Line, Lines},
    sse::{Events, Item},
};

fuzz_target!(|data: &[u8]| {
    let Some((sizes, data)) = data.split_first_chunk::<2>() else { return };
    let piece = usize::from(sizes[0]) + 1;
    // Nothing is too long.
    let (whole, in_pieces) = (data.len() + 1, data.len().min(piece).max(1));
    assert_eq!(lines(data, whole, whole), lines(data, in_pieces, whole));
    assert_eq!(events(data, whole, whole), events(data, in_pieces, whole));
    // Much is.
    let length_max = usize::from(sizes[1]);
    for line in lines(data, in_pieces, length_max) {
        match line {
            Line::Whole(line) => assert!(!line.is_empty() && line.len() <= length_max),
            Line::Oversized(oversized) => {
                oversized.response_id();
                assert!(oversized.length >= length_max);
            }
        }
    }
    for item in events(data, in_pieces, length_max) {
        match item {
            Item::Event(event) => assert!(event.data.len() <= length_max),
            Item::Oversized(oversized) => assert!(oversized.length >= length_max),
        }
    }
});

fn lines(data: &[u8], piece: usize, length_max: usize) -> Vec<Line> {
    let mut lines = Lines::new(length_max);
    let mut found = Vec::new();
    for piece in data.chunks(piece) {
        lines.buffer().extend_from_slice(piece);
        found.extend(std::iter::from_fn(|| lines.next_line()));
    }
    found.extend(lines.last_line());
    found
}

fn events(data: &[u8], piece: usize, length_max: usize) -> Vec<Item> {
    let mut events = Events::new(length_max);
    let mut found = Vec::new();
    for piece in data.chunks(piece) {
        events.push(Bytes::copy_from_slice(piece));
        found.extend(std::iter::from_fn(|| events.next_item()));
    }
    events.restart();
    found
}
