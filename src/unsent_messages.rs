//! Lines that wait to be written to a possibly slow reader.
//!
//! The users limit the size: each adds nothing while it is not empty, or checks
//! [`UnsentMessages::n_bytes`].

use std::{collections::VecDeque, io};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::protocol::{ByteChunks, ndjson::on_one_line};

/// Messages in order, each on its own line.
#[derive(Debug, Default)]
pub struct UnsentMessages {
    pieces: VecDeque<Bytes>,
    n_bytes: usize,
    /// The writer may still buffer bytes that were written.
    is_buffered: bool,
}

impl UnsentMessages {
    /// Adds a message.
    pub fn push(&mut self, message: impl Into<ByteChunks>) {
        for piece in message.into() {
            self.add(on_one_line(piece));
        }
        self.add(Bytes::from_static(b"\n"));
    }

    fn add(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.n_bytes += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// Returns `true` if everything is written.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty() && !self.is_buffered
    }

    /// Returns the number of waiting bytes.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Discards the waiting messages: their reader is gone.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Writes everything. Cancel safe: the next call continues at the same byte.
    ///
    /// # Errors
    ///
    /// The error of the writer; bytes written before it are no longer queued.
    pub async fn write(&mut self, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        while let Some(piece) = self.pieces.front_mut() {
            let n_written = writer.write(piece).await?;
            if n_written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.is_buffered = true;
            self.n_bytes -= n_written;
            piece.advance(n_written);
            if piece.is_empty() {
                self.pieces.pop_front();
            }
        }
        writer.flush().await?;
        self.is_buffered = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn a_cancelled_write_continues_at_the_same_byte() {
        let (mut ours, mut theirs) = tokio::io::duplex(4);
        let mut unsent = UnsentMessages::default();
        unsent.push(Bytes::from_static(b"{\n\"a\":1}"));
        unsent.push(ByteChunks::Many(vec![Bytes::from_static(b"[2"), Bytes::from_static(b"]")]));
        assert_eq!(unsent.n_bytes(), 13);

        let mut read = Vec::new();
        while !unsent.is_empty() {
            tokio::select! {
                biased;
                written = unsent.write(&mut ours) => written.expect("the reader is open"),
                n_read = theirs.read_buf(&mut read) => assert!(n_read.expect("readable") > 0),
            }
        }
        drop(ours);
        theirs.read_to_end(&mut read).await.expect("readable");

        assert_eq!(read, b"{ \"a\":1}\n[2]\n");
        assert_eq!(unsent.n_bytes(), 0);
    }
}
