//! One connection of a demo server, from the handshake to the end of its input.
//!
//! rmcp alone would wait up to five seconds for calls in flight after the end of the input. Here,
//! the end of the input cancels a token, and the calls return when it is cancelled.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use rmcp::{
    RoleServer, ServerHandler, ServiceExt, service::ServerInitializeError,
    transport::async_rw::AsyncRwTransport,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time,
};
use tokio_util::sync::CancellationToken;

use super::{Demo, DemoError};

/// The time for writing answers after the end of the input.
///
/// It is used up only if the client closes the input without reading the output.
pub(super) const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// Runs the handler that `new` returns until `reader` ends.
///
/// `new` receives a token that is cancelled at the end of the input.
///
/// # Errors
///
/// As [`Demo::serve`].
pub(super) async fn serve<H, R, W>(
    demo: Demo,
    reader: R,
    writer: W,
    new: impl FnOnce(CancellationToken) -> H,
) -> Result<(), DemoError>
where
    H: ServerHandler,
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let closing = CancellationToken::new();
    let handler = new(closing.clone());
    let reader = EndOfInput { reader, ended: closing.clone() };
    let transport = AsyncRwTransport::<RoleServer, _, _>::new_server(reader, writer);
    let running = match handler.serve(transport).await {
        Ok(running) => running,
        // A client that disconnects before its first message has made no error.
        Err(ServerInitializeError::ConnectionClosed(_)) if closing.is_cancelled() => return Ok(()),
        Err(source) => return Err(DemoError::Handshake { demo, source: Box::new(source) }),
    };
    let overdue = async {
        closing.cancelled().await;
        time::sleep(CLOSE_GRACE).await;
    };
    tokio::select! {
        ended = running.waiting() => match ended {
            Ok(_reason) => Ok(()),
            Err(source) => Err(DemoError::Stopped { demo, source }),
        },
        () = overdue => Ok(()),
    }
}

/// A reader that cancels a token at the end of its input or on an error.
#[derive(Debug)]
struct EndOfInput<R> {
    reader: R,
    ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for EndOfInput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buffer.filled().len();
        let room = buffer.remaining();
        let outcome = ready!(Pin::new(&mut self.reader).poll_read(context, buffer));
        let ended = room > 0 && buffer.filled().len() == filled;
        if ended || outcome.is_err() {
            self.ended.cancel();
        }
        Poll::Ready(outcome)
    }
}
