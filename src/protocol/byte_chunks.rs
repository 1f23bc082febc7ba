//! Bytes in pieces, so that a large message is not copied because a few bytes of it change.

use std::{ops::Range, vec};

use bytes::{Bytes, BytesMut};
use memchr::memmem;

/// Up to this size a message is copied into one piece, in bytes: that is quicker than to write
/// several pieces.
pub(super) const COPIED_MAX: usize = 16 << 10;

/// Bytes that belong together, in their order.
#[derive(Clone, Debug)]
pub enum ByteChunks {
    /// They lie together.
    One(Bytes),
    /// They lie in several places.
    Many(Vec<Bytes>),
}

impl From<Bytes> for ByteChunks {
    fn from(bytes: Bytes) -> Self {
        Self::One(bytes)
    }
}

impl ByteChunks {
    /// Replaces ranges of `bytes`, which come in ascending order and do not overlap.
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

    /// Puts something before them and after them.
    #[must_use]
    pub fn wrapped_in(self, before: &'static [u8], after: &'static [u8]) -> Self {
        let (before, after) = (Bytes::from_static(before), Bytes::from_static(after));
        let mut pieces = vec![before];
        pieces.extend(self);
        pieces.push(after);
        Self::Many(pieces)
    }

    /// Returns their size in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::One(bytes) => bytes.len(),
            Self::Many(pieces) => pieces.iter().map(Bytes::len).sum(),
        }
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns them in one piece, copied where there are several.
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

    /// Tells whether any of them has this text. One that begins in a piece and ends in the next is not
    /// found.
    pub fn has(&self, text: &[u8]) -> bool {
        match self {
            Self::One(bytes) => memmem::find(bytes, text).is_some(),
            Self::Many(pieces) => pieces.iter().any(|piece| memmem::find(piece, text).is_some()),
        }
    }

    /// Tells whether any of them has this byte.
    pub fn contains(&self, byte: u8) -> bool {
        match self {
            Self::One(bytes) => memchr::memchr(byte, bytes).is_some(),
            Self::Many(pieces) => pieces.iter().any(|piece| memchr::memchr(byte, piece).is_some()),
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

/// Replaces ranges of `bytes`, which come in ascending order and do not overlap, in a copy.
pub fn splice<'a>(
    bytes: &[u8],
    edits: impl Iterator<Item = (Range<usize>, &'a str)> + Clone,
) -> Bytes {
    let n_bytes =
        edits.clone().fold(bytes.len(), |sum, (range, text)| sum - range.len() + text.len());
    // What is left over would cost another allocation.
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
