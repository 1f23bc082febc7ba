//! The TLS handshake of client connections.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time,
};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use super::write_timeout::WriteTimeout;
use crate::{config::defaults, tls::TlsIdentity};

/// A client's byte stream, plain or over TLS. The write timeout applies below TLS. The TLS variant
/// is boxed, because it is large.
pub(super) type ClientStream =
    Either<WriteTimeout<TcpStream>, Box<TlsStream<WriteTimeout<TcpStream>>>>;

/// The reason why a connection failed before its first request.
#[derive(Debug, thiserror::Error)]
pub(super) enum AcceptError {
    #[error("the TLS handshake did not complete within {} s", defaults::HANDSHAKE_TIMEOUT.as_secs())]
    Timeout,
    #[error("the client sent plain HTTP to a port that expects TLS (`https://`)")]
    PlainHttp,
    #[error("the TLS handshake failed")]
    Failed(#[source] io::Error),
}

/// The response to any plain HTTP request. The end of the connection ends the body.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    content-type: text/plain\r\n\
    cache-control: no-store\r\n\
    connection: close\r\n\
    \r\n\
    This port speaks TLS: use https:// instead of http://.\n";

/// Performs the TLS handshake with a client, within a time limit. Not cancel safe. The connection
/// is lost; no request has arrived on it yet.
pub(super) async fn shake_hands(
    stream: TcpStream,
    identity: &TlsIdentity,
    write_timeout: Duration,
) -> Result<ClientStream, AcceptError> {
    let handshake = async {
        // Only peeked at, because rustls would answer plain HTTP with an alert.
        let mut first = [0];
        stream.peek(&mut first).await.map_err(AcceptError::Failed)?;
        // An HTTP method starts with a capital letter, a TLS handshake with byte 22.
        if first[0].is_ascii_uppercase() {
            refuse(stream).await.map_err(AcceptError::Failed)?;
            return Err(AcceptError::PlainHttp);
        }
        let stream = WriteTimeout::new(stream, write_timeout);
        let stream = identity.shake_hands(stream).await.map_err(AcceptError::Failed)?;
        Ok(ClientStream::Right(Box::new(stream)))
    };
    time::timeout(defaults::HANDSHAKE_TIMEOUT, handshake).await.unwrap_or(Err(AcceptError::Timeout))
}

async fn refuse(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(PLAIN_HTTP).await?;
    stream.shutdown().await?;
    // Unread data would reset the connection before the client reads the answer.
    let mut rest = stream.take(defaults::BODY_BYTES_SKIPPED as u64);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await.map(drop)
}

#[cfg(test)]
mod tests;
