//! The bridge between a client that only speaks over stdin and stdout and the running service.
//!
//! ```text
//!  client ── stdin, stdout ── bridge (relay) ── control socket ── ingress::stdio_pipe ── view
//! ```
//!
//! The bridge attaches to the control socket, and reattaches after a restart of the service. The
//! `relay` decides which messages to pass on, keep or repeat.

use std::path::PathBuf;

use futures_util::future::{BoxFuture, OptionFuture};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::{self, Instant},
};

use crate::{
    backoff::Backoff,
    config::defaults,
    control::socket_client::{self, ControlClientError},
    error_report::chain,
    protocol::ndjson::{LineDecoder, NdjsonLine},
    session::sleep_until,
    unsent_messages::UnsentMessages,
};

mod outage_reply;
mod relay;
mod request;
mod session_memory;

use relay::BridgeRelay;

/// The number of bytes per read: the capacity of pipes and sockets.
const READ_BYTES: usize = 64 << 10;

/// The service, and the view of it for the client.
#[derive(Clone, Debug)]
pub struct BridgeTarget {
    /// The path of the control socket.
    pub socket: PathBuf,
    /// The parameters of `mcp/attach`, JSON text.
    pub params: String,
}

/// A connection to the service that carries MCP messages, and the lines already read.
type AttachResult = Result<(UnixStream, LineDecoder), ControlClientError>;

/// Relays messages between a client and the service at `target` until the client disconnects. Not
/// cancel safe. The requests of the client are cancelled.
///
/// # Errors
///
/// [`ControlClientError`] if the service does not accept the first attachment. Later attachments
/// are retried for as long as the client is connected.
pub async fn run<R, W>(
    target: &BridgeTarget,
    reader: R,
    writer: W,
) -> Result<(), ControlClientError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let bridge = Bridge {
        target,
        started: Instant::now(),
        relay: BridgeRelay::default(),
        attaching: Some(Box::pin(attach(target))),
        was_attached: false,
        backoff: Backoff::new(defaults::BRIDGE_BACKOFF),
        service_reader: None,
        service_writer: None,
    };
    bridge.run(reader, writer).await
}

struct Bridge<'a> {
    target: &'a BridgeTarget,
    started: Instant,
    relay: BridgeRelay,
    /// The attempt to attach, while there is no attachment.
    attaching: Option<BoxFuture<'a, AttachResult>>,
    was_attached: bool,
    backoff: Backoff,
    /// The stream of messages from the service, and the lines already read.
    service_reader: Option<(OwnedReadHalf, LineDecoder)>,
    service_writer: Option<OwnedWriteHalf>,
}

impl Bridge<'_> {
    async fn run<R, W>(mut self, mut reader: R, mut writer: W) -> Result<(), ControlClientError>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let mut lines = LineDecoder::new(defaults::BODY_BYTES_MAX);
        let mut close_at = None;
        loop {
            let relay = &mut self.relay;
            relay.tick(self.started.elapsed());
            if close_at.is_some() {
                if self.was_attached && relay.to_client.is_empty() && !relay.has_pending() {
                    return Ok(());
                }
                if relay.to_service.is_empty() {
                    // Closing this half tells the service that no more messages follow.
                    self.service_writer = None;
                }
            }
            let reads = close_at.is_none()
                && relay.to_service.n_bytes() < defaults::UNREAD_BYTES
                && relay.to_client.n_bytes() < defaults::BRIDGE_UNREAD_BYTES;
            let listens = relay.to_client.n_bytes() < defaults::BRIDGE_UNREAD_BYTES;
            let deadline = relay.deadline().map(|deadline| self.started + deadline);
            lines.buffer().reserve(if reads { READ_BYTES } else { 0 });
            tokio::select! {
                written = relay.to_client.write(&mut writer), if !relay.to_client.is_empty() => {
                    if written.is_err() {
                        return Ok(()); // The client reads no more.
                    }
                }
                Some(()) = write(&mut self.service_writer, &mut relay.to_service) => {}
                read = reader.read_buf(lines.buffer()), if reads => {
                    let is_over = !matches!(read, Ok(1..));
                    while let Some(line) = lines.next_line() {
                        self.take_client_line(line);
                    }
                    if is_over {
                        if let Some(line) = lines.last_line() {
                            self.take_client_line(line);
                        }
                        close_at = Some(Instant::now() + defaults::BRIDGE_CLOSE_TIMEOUT);
                    }
                }
                Some(is_open) = read(&mut self.service_reader), if listens => {
                    self.take_service_lines(is_open, close_at.is_some());
                }
                Some(attached) = OptionFuture::from(self.attaching.as_mut()) => {
                    self.attaching = None;
                    if let Err(error) = self.attached(attached) {
                        let written = self.relay.to_client.write(&mut writer);
                        let _client_gone = time::timeout(defaults::BRIDGE_CLOSE_TIMEOUT, written).await;
                        return Err(error);
                    }
                    // The service answers only from now on.
                    close_at = close_at.map(|_| Instant::now() + defaults::BRIDGE_CLOSE_TIMEOUT);
                }
                () = sleep_until(deadline) => {}
                // If the first attachment fails, the user must still learn why.
                () = sleep_until(close_at), if self.was_attached => return Ok(()),
            }
        }
    }

    fn take_client_line(&mut self, line: NdjsonLine) {
        match line {
            NdjsonLine::Whole(line) => self.relay.receive_from_client(line, self.started.elapsed()),
            NdjsonLine::Oversized(line) => {
                self.relay.to_client.push(line.refusal(defaults::BODY_BYTES_MAX));
            }
        }
    }

    /// Handles the lines read from the service, and its disconnect if `is_open` is `false`. If the
    /// client `is_gone`, the bridge does not reattach.
    fn take_service_lines(&mut self, is_open: bool, is_gone: bool) {
        let now = self.started.elapsed();
        if let Some((_, lines)) = &mut self.service_reader {
            while let Some(line) = lines.next_line() {
                match line {
                    NdjsonLine::Whole(line) => self.relay.receive_from_service(line, now),
                    NdjsonLine::Oversized(line) => {
                        tracing::error!(
                            n_bytes = line.length,
                            "message of the service dropped: it has {} bytes, and the limit is {}",
                            line.length,
                            defaults::BRIDGE_ANSWER_BYTES_MAX
                        );
                    }
                }
            }
        }
        if !is_open && is_gone {
            (self.service_reader, self.service_writer) = (None, None);
            self.relay.abandon();
        } else if !is_open {
            tracing::info!(
                "the connection to the service is lost: messages wait until the service is back"
            );
            self.relay.detached(now);
            (self.service_reader, self.service_writer) = (None, None);
            self.backoff = Backoff::new(defaults::BRIDGE_BACKOFF);
            self.attaching = Some(Box::pin(attach(self.target)));
        }
    }

    fn attached(&mut self, attached: AttachResult) -> Result<(), ControlClientError> {
        match attached {
            Ok((stream, lines)) => {
                let (reader, writer) = stream.into_split();
                if std::mem::replace(&mut self.was_attached, true) {
                    tracing::info!("reconnected to the service");
                }
                (self.service_reader, self.service_writer) = (Some((reader, lines)), Some(writer));
                self.relay.attached(self.started.elapsed());
                // More lines may have arrived with the attachment.
                self.take_service_lines(true, false);
                Ok(())
            }
            Err(error) => {
                if let ControlClientError::Silent { .. } = &error {
                    let remedy = error.hint().unwrap_or_default();
                    self.relay.hung(&outage_reply::service_silent(chain(&error), &remedy));
                    if self.was_attached {
                        tracing::warn!("{}. {remedy}", chain(&error));
                    }
                }
                if !self.was_attached {
                    return Err(error);
                }
                if let ControlClientError::Refused(refusal) = &error {
                    tracing::warn!(
                        error = chain(&error),
                        "the service refuses to reconnect this client: {}",
                        chain(&error)
                    );
                    self.relay.refused(refusal.message.clone());
                }
                let (pause, target) = (self.backoff.pause(fastrand::f64()), self.target);
                self.attaching = Some(Box::pin(async move {
                    time::sleep(pause).await;
                    attach(target).await
                }));
                Ok(())
            }
        }
    }
}

async fn attach(target: &BridgeTarget) -> AttachResult {
    let length_max = defaults::BRIDGE_ANSWER_BYTES_MAX;
    socket_client::attach(&target.socket, &target.params, length_max).await
}

/// Reads from the service. Returns whether the connection is still open, or `None` without one.
async fn read(stream: &mut Option<(OwnedReadHalf, LineDecoder)>) -> Option<bool> {
    let (reader, lines) = stream.as_mut()?;
    lines.buffer().reserve(READ_BYTES);
    Some(matches!(reader.read_buf(lines.buffer()).await, Ok(1..)))
}

/// Writes to the service. Returns `None` if there is nothing to do. After a failure, the other half
/// of the connection reports the reason.
async fn write(stream: &mut Option<OwnedWriteHalf>, unsent: &mut UnsentMessages) -> Option<()> {
    let writer = stream.as_mut().filter(|_| !unsent.is_empty())?;
    if unsent.write(writer).await.is_err() {
        *stream = None;
        unsent.clear();
    }
    Some(())
}
