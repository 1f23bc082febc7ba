//! Bytes in chunks, so that a small edit does not copy a large message.

use std::{ops::Range, vec};

use bytes::{Bytes, BytesMut};
use memchr::memmem;

/// The largest message, in bytes, that is copied into one chunk. Writing several chunks would be
/// slower.
pub(super) const COPIED_MAX: usize = 16 << 10;

/// A sequence of bytes in one or more chunks.
#[derive(Clone, Debug)]
pub enum ByteChunks {
    /// One contiguous chunk.
    One(Bytes),
    /// Several chunks, in order.
    Many(Vec<Bytes>),
}

impl From<Bytes> for ByteChunks {
    fn from(bytes: Bytes) -> Self {
        Self::One(bytes)
    }
}

impl ByteChunks {
    /// Replaces `edits`, non-overlapping ranges in ascending order, in `bytes`.
    pub fn splice<'a>(
        bytes: &Bytes,
        edits: impl Iterator<Item = (Range<usize>, &'a str)> + Clone,
    ) -> Self {
        if bytes.len() <= COPIED_MAX {
            return Self::One(splice(bytes, edits));
        }
        let mut pieces = Vec::new();
        let mut done = 0;
        for (range, text) in edits {
            pieces.push(bytes.slice(done..range.start));
            pieces.push(Bytes::copy_from_slice(text.as_bytes()));
            done = range.end;
        }
        pieces.push(bytes.slice(done..));
        pieces.retain(|piece| !piece.is_empty());
        Self::Many(pieces)
    }

    /// Returns the size in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::One(bytes) => bytes.len(),
            Self::Many(pieces) => pieces.iter().map(Bytes::len).sum(),
        }
    }

    /// Returns `true` if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes as one chunk, and copies them if there are several.
    pub fn join(self) -> Bytes {
        match self {
            Self::One(bytes) => bytes,
            Self::Many(pieces) => {
                let mut joined = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
                pieces.iter().for_each(|piece| joined.extend_from_slice(piece));
                joined.freeze()
            }
        }
    }

    /// Returns whether a chunk contains `text`. A text that spans two chunks is not found.
    pub fn has(&self, text: &[u8]) -> bool {
        match self {
            Self::One(bytes) => memmem::find(bytes, text).is_some(),
            Self::Many(pieces) => pieces.iter().any(|piece| memmem::find(piece, text).is_some()),
        }
    }
}

impl IntoIterator for ByteChunks {
    type Item = Bytes;
    type IntoIter = vec::IntoIter<Bytes>;

    fn into_iter(self) -> Self::IntoIter {
        match self {
            Self::One(bytes) => vec![bytes],
            Self::Many(pieces) => pieces,
        }
        .into_iter()
    }
}

/// Returns a copy of `bytes` with `edits`, non-overlapping ranges in ascending order, replaced.
pub fn splice<'a>(
    bytes: &[u8],
    edits: impl Iterator<Item = (Range<usize>, &'a str)> + Clone,
) -> Bytes {
    let n_bytes =
        edits.clone().fold(bytes.len(), |sum, (range, text)| sum - range.len() + text.len());
    // The exact size: `freeze` would reallocate unused capacity.
    let mut spliced = BytesMut::with_capacity(n_bytes);
    let mut done = 0;
    for (range, text) in edits {
        spliced.extend_from_slice(&bytes[done..range.start]);
        spliced.extend_from_slice(text.as_bytes());
        done = range.end;
    }
    spliced.extend_from_slice(&bytes[done..]);
    spliced.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_message_is_edited_without_a_copy_of_it() {
        for length in [10, COPIED_MAX, COPIED_MAX + 1, 100_000] {
            let bytes = Bytes::from(vec![b'x'; length]);
            let edits = [(0..1, "a"), (4..4, "bc"), (length - 1..length, "")];
            let pieces = ByteChunks::splice(&bytes, edits.clone().into_iter());
            let copied = splice(&bytes, edits.into_iter());
            assert_eq!(pieces.len(), copied.len());
            assert_eq!(pieces.clone().join(), copied, "{length}");
            if let ByteChunks::Many(pieces) = pieces {
                let whole = bytes.as_ptr_range();
                assert!(pieces.iter().any(|piece| whole.contains(&piece.as_ptr())));
            }
        }
    }
}
