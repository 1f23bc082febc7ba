//! HTTP bodies: outgoing messages in chunks, and incoming messages read whole.

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

use crate::{
    capacity_holder::Account,
    config::defaults,
    memory_budget::{MemoryExhausted, MemoryReservation},
    protocol::{
        ByteChunks,
        sse::{DATA_BYTES_MIN, on_one_line},
    },
};

/// The largest chunk of a message that hyper gets at a time, in bytes. It limits the copy that
/// hyper makes where it copies, as for TLS.
const FRAME_BYTES_MAX: usize = 128 << 10;

/// An outgoing message of a known length.
#[derive(Debug)]
pub struct OutgoingBody {
    pieces: ByteChunks,
    /// The number of chunks sent.
    n_sent: usize,
    n_left: usize,
    /// The message is an event with its data on one line.
    is_event: bool,
    /// The current chunk is data.
    is_data: bool,
}

impl OutgoingBody {
    /// Returns the body of an encoded event. Line breaks in large data become spaces on sending.
    pub fn event(pieces: ByteChunks) -> Self {
        Self { is_event: true, ..Self::from(pieces) }
    }
}

impl From<ByteChunks> for OutgoingBody {
    fn from(pieces: ByteChunks) -> Self {
        let n_left = pieces.len();
        Self { pieces, n_sent: 0, n_left, is_event: false, is_data: false }
    }
}

impl From<Bytes> for OutgoingBody {
    fn from(bytes: Bytes) -> Self {
        ByteChunks::from(bytes).into()
    }
}

impl Iterator for OutgoingBody {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let piece = match &mut self.pieces {
            _ if self.n_left == 0 => return None,
            ByteChunks::One(bytes) => bytes,
            ByteChunks::Many(pieces) => pieces.get_mut(self.n_sent)?,
        };
        self.is_data |= self.is_event && piece.len() > DATA_BYTES_MIN;
        let is_last = piece.len() <= FRAME_BYTES_MAX;
        let mut next = piece.split_to(piece.len().min(FRAME_BYTES_MAX));
        self.n_left -= next.len();
        if self.is_data {
            next = on_one_line(next);
        }
        if is_last {
            self.n_sent += 1;
            self.is_data = false;
        }
        Some(next)
    }
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.next().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.n_left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.n_left as u64)
    }
}

/// The reason why a body could not be read whole.
#[derive(Debug, PartialEq, Eq)]
pub enum BodyReadError<E> {
    /// The body is too long.
    TooLong,
    /// The body ended early.
    Broken(E),
    /// There is no memory for the body.
    NoMemory(MemoryExhausted),
}

/// The behaviour of a reader without memory. The body counts for the account, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryPressurePolicy {
    /// The reader gives up at once.
    Refuse(Option<Account>),
    /// The reader leaves the rest of the body unread for a while, so that the sender waits.
    Wait {
        /// The account that the body counts for.
        account: Option<Account>,
        /// The bytes that the reader holds besides the body.
        holds: usize,
    },
}

impl MemoryPressurePolicy {
    fn account(self) -> Option<Account> {
        match self {
            Self::Refuse(account) | Self::Wait { account, .. } => account,
        }
    }

    /// Reserves `n_bytes` bytes for a body that has arrived in part.
    async fn reserve(
        self,
        held: &mut MemoryReservation,
        n_bytes: usize,
    ) -> Result<(), MemoryExhausted> {
        match self {
            // A client may stall on thousands of connections, each with data read ahead.
            Self::Refuse(_) => held.grow_to(n_bytes + defaults::HTTP_BUFFER_BYTES_MAX),
            Self::Wait { .. } if n_bytes < defaults::MEMORY_COUNTED_MIN => Ok(()),
            Self::Wait { holds, .. } => held.wait_for(n_bytes, holds).await,
        }
    }
}

/// Reads a whole body of at most `length_max` bytes, which count against the memory budget. A body
/// in a single frame is not copied. A client's body in several frames counts from the first. Not
/// cancel safe: the bytes read so far are lost.
///
/// # Errors
///
/// [`BodyReadError`]; the rest of the body can still be read.
pub async fn read_whole<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
    length_max: usize,
    pressure: MemoryPressurePolicy,
) -> Result<Bytes, BodyReadError<B::Error>> {
    let declared = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let (mut all, mut held) = (BytesMut::new(), MemoryReservation::of(pressure.account()));
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame.map_err(BodyReadError::Broken)?.into_data() else { continue };
        let length = all.len() + chunk.len();
        if length > length_max {
            return Err(BodyReadError::TooLong);
        }
        if all.is_empty() && body.is_end_stream() {
            return held.count(chunk).map_err(BodyReadError::NoMemory);
        }
        if length > all.capacity() {
            let doubled = (2 * length).min(declared.unwrap_or(length_max));
            let wanted = match (pressure, declared) {
                // Growing step by step, several readers could each hold a half and wait for the
                // other. The account of the request pays for the declared length.
                (MemoryPressurePolicy::Wait { account: Some(_), .. }, Some(declared)) => declared,
                // Other senders are not trusted: they could reserve bytes that they never send.
                (MemoryPressurePolicy::Wait { .. } | MemoryPressurePolicy::Refuse(_), _) => doubled,
            };
            let wanted = wanted.min(length_max).max(length);
            pressure.reserve(&mut held, wanted).await.map_err(BodyReadError::NoMemory)?;
            all.reserve(wanted - all.len());
        }
        all.extend_from_slice(&chunk);
    }
    held.count(all.freeze()).map_err(BodyReadError::NoMemory)
}

/// Reads and discards a body for at most `timeout`. Returns whether it was read to its end. Cancel
/// safe.
pub async fn discard<B: Body + Unpin>(body: &mut B, timeout: Duration) -> bool {
    let reading = async {
        while let Some(frame) = body.frame().await {
            if frame.is_err() {
                return false;
            }
        }
        true
    };
    time::timeout(timeout, reading).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;

    use super::*;
    use crate::{memory_budget::global, protocol::sse};

    fn incoming(chunks: &'static [&'static str]) -> impl Body<Data = Bytes, Error = ()> + Unpin {
        let frames = chunks.iter().map(|chunk| match *chunk {
            "!" => Err(()),
            chunk => Ok(Frame::data(Bytes::from_static(chunk.as_bytes()))),
        });
        StreamBody::new(stream::iter(frames))
    }

    #[tokio::test]
    async fn a_body_is_read_whole_or_refused() {
        let read = async |chunks| {
            read_whole(&mut incoming(chunks), 5, MemoryPressurePolicy::Refuse(None)).await
        };
        assert_eq!(read(&["ab", "", "c", "de"]).await, Ok("abcde".into()));
        assert_eq!(read(&["abcde"]).await, Ok("abcde".into()));
        assert_eq!(read(&[]).await, Ok(Bytes::new()));
        assert_eq!(read(&["abc", "def"]).await, Err(BodyReadError::TooLong));
        assert_eq!(read(&["abc", "!"]).await, Err(BodyReadError::Broken(())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_body_counts_until_its_message_is_dropped() {
        let chunks = || {
            let chunk = Bytes::from(vec![b'x'; 100_000]);
            let frames = std::iter::repeat_n(chunk, 3).map(|chunk| Ok::<_, ()>(Frame::data(chunk)));
            StreamBody::new(stream::iter(frames))
        };
        let body = read_whole(&mut chunks(), 1 << 20, MemoryPressurePolicy::Refuse(None))
            .await
            .expect("read");
        assert_eq!(global().usage().used_bytes, 300_000);
        let held = global().try_reserve(defaults::MEMORY_MAX - 300_000).expect("room");
        let waits = MemoryPressurePolicy::Wait { account: None, holds: 0 };
        for pressure in [MemoryPressurePolicy::Refuse(None), waits] {
            let refused = read_whole(&mut chunks(), 1 << 20, pressure).await;
            assert!(matches!(refused, Err(BodyReadError::NoMemory(_))), "{refused:?}");
        }
        let mut again = chunks();
        let waiting = read_whole(&mut again, 1 << 20, waits);
        tokio::pin!(waiting);
        assert!(time::timeout(Duration::from_secs(1), waiting.as_mut()).await.is_err());
        drop((body, held));
        assert_eq!(waiting.await.map(|body| body.len()), Ok(300_000));
        assert_eq!(global().usage().used_bytes, 0);
    }

    #[test]
    fn a_large_message_is_sent_in_frames_of_limited_size() {
        let message = Bytes::from(vec![b'x'; 3 * FRAME_BYTES_MAX + 1]);
        let lengths: Vec<usize> = OutgoingBody::from(message).map(|piece| piece.len()).collect();
        assert_eq!(lengths, [FRAME_BYTES_MAX, FRAME_BYTES_MAX, FRAME_BYTES_MAX, 1]);

        let broken = Bytes::from("x\n".repeat(FRAME_BYTES_MAX));
        let event = OutgoingBody::event(sse::encode_pieces(broken.clone().into()));
        let written = String::from_utf8(Iterator::collect::<Vec<_>>(event).concat()).expect("text");
        let data = "x ".repeat(FRAME_BYTES_MAX);
        assert!(written == format!("event: message\ndata: {data}\n\n"));
    }

    #[tokio::test]
    async fn discarding_a_body_reports_whether_its_end_was_reached() {
        assert!(discard(&mut incoming(&["abc", "def"]), Duration::from_secs(1)).await);
        assert!(!discard(&mut incoming(&["abc", "!"]), Duration::from_secs(1)).await);
        let mut endless = StreamBody::new(stream::pending::<Result<Frame<Bytes>, ()>>());
        assert!(!discard(&mut endless, Duration::ZERO).await);
    }

    #[tokio::test]
    async fn a_body_sends_its_chunks_in_order_and_declares_its_length() {
        let pieces = ByteChunks::Many(vec!["a".into(), "bc".into(), "d".into()]);
        let mut body = OutgoingBody::from(pieces);
        assert_eq!(Body::size_hint(&body).exact(), Some(4));
        assert_eq!(
            read_whole(&mut body, 9, MemoryPressurePolicy::Refuse(None)).await,
            Ok("abcd".into())
        );
        assert!(body.is_end_stream());
    }
}
