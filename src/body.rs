//! HTTP bodies: messages that go out in pieces, and messages that are read whole.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time;

use crate::protocol::Pieces;

/// A message on its way out, of a length that is told beforehand.
#[derive(Debug)]
pub struct Outgoing {
    pieces: Pieces,
    /// How many pieces are gone.
    n_sent: usize,
    n_left: usize,
}

impl From<Pieces> for Outgoing {
    fn from(pieces: Pieces) -> Self {
        let n_left = pieces.len();
        Self { pieces, n_sent: 0, n_left }
    }
}

impl From<Bytes> for Outgoing {
    fn from(bytes: Bytes) -> Self {
        Pieces::from(bytes).into()
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let (n_sent, is_over) = (self.n_sent, self.n_left == 0);
        let next = match &mut self.pieces {
            _ if is_over => None,
            Pieces::One(bytes) => Some(std::mem::take(bytes)),
            Pieces::Many(pieces) => pieces.get_mut(n_sent).map(std::mem::take),
        };
        self.n_sent += 1;
        self.n_left -= next.as_ref().map(Bytes::len).unwrap_or_default();
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.n_left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.n_left as u64)
    }
}

/// Why a body could not be read whole.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadError<E> {
    /// It is longer than it may be.
    TooLong,
    /// It broke off.
    Broken(E),
}

/// Reads a whole body of at most `length_max` bytes. A body that comes at once is not copied.
///
/// # Errors
///
/// [`ReadError`]; the rest of the body can be read on then.
///
/// # Cancel safety
///
/// Dropped halfway, what was read is lost.
pub async fn whole<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
    length_max: usize,
) -> Result<Bytes, ReadError<B::Error>> {
    let length = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame.map_err(ReadError::Broken)?.into_data() else { continue };
        if first.len() + all.len() + chunk.len() > length_max {
            return Err(ReadError::TooLong);
        }
        if first.is_empty() && all.is_empty() {
            first = chunk;
            continue;
        }
        if all.is_empty() {
            // What the sender says of the length is taken at its word as far as it may be true.
            all.reserve(length.unwrap_or_default().max(2 * first.len()).min(length_max));
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&chunk);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// Reads a body of no use to its end, for at most `patience`, and tells whether it has come to that.
///
/// # Cancel safety
///
/// Safe.
pub async fn discard<B: Body + Unpin>(body: &mut B, patience: Duration) -> bool {
    let reading = async {
        loop {
            match body.frame().await {
                Some(Ok(_)) => {}
                Some(Err(_)) => return false,
                None => return true,
            }
        }
    };
    time::timeout(patience, reading).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;

    use super::*;

    fn incoming(chunks: &'static [&'static str]) -> impl Body<Data = Bytes, Error = ()> + Unpin {
        let frames = chunks.iter().map(|chunk| match *chunk {
            "!" => Err(()),
            chunk => Ok(Frame::data(Bytes::from_static(chunk.as_bytes()))),
        });
        StreamBody::new(stream::iter(frames))
    }

    #[tokio::test]
    async fn a_body_is_read_whole_or_refused() {
        assert_eq!(whole(&mut incoming(&["ab", "", "c", "de"]), 5).await, Ok("abcde".into()));
        assert_eq!(whole(&mut incoming(&["abcde"]), 5).await, Ok("abcde".into()));
        assert_eq!(whole(&mut incoming(&[]), 5).await, Ok(Bytes::new()));
        assert_eq!(whole(&mut incoming(&["abc", "def"]), 5).await, Err(ReadError::TooLong));
        assert_eq!(whole(&mut incoming(&["abc", "!"]), 5).await, Err(ReadError::Broken(())));
    }

    #[tokio::test]
    async fn a_body_of_no_use_is_read_to_its_end_or_not() {
        assert!(discard(&mut incoming(&["abc", "def"]), Duration::from_secs(1)).await);
        assert!(!discard(&mut incoming(&["abc", "!"]), Duration::from_secs(1)).await);
        let mut endless = StreamBody::new(stream::pending::<Result<Frame<Bytes>, ()>>());
        assert!(!discard(&mut endless, Duration::ZERO).await);
    }

    #[tokio::test]
    async fn pieces_go_out_in_their_order_and_the_length_is_known() {
        let pieces = Pieces::One("bc".into()).between(b"a", b"d");
        let mut body = Outgoing::from(pieces);
        assert_eq!(body.size_hint().exact(), Some(4));
        assert_eq!(whole(&mut body, 9).await, Ok("abcd".into()));
        assert!(body.is_end_stream());
    }
}
