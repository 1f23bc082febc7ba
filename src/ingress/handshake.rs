//! What a connection does first where there is a certificate.

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

/// The bytes of a client, plain or through TLS. Whether it takes them is watched below TLS, where they
/// leave us. Boxed: TLS is large, and a plain connection should not be.
pub(super) type ClientStream =
    Either<WriteTimeout<TcpStream>, Box<TlsStream<WriteTimeout<TcpStream>>>>;

/// Why a connection came to nothing before its first request.
#[derive(Debug, thiserror::Error)]
pub(super) enum AcceptError {
    /// It took too long, or never began.
    #[error("no TLS handshake within {} s", defaults::HANDSHAKE_TIMEOUT.as_secs())]
    Late,
    /// The client does not know that there is TLS.
    #[error("plain HTTP where TLS is spoken")]
    PlainHttp,
    /// The client does not want what we offer, or has gone.
    #[error("TLS handshake")]
    Failed(#[source] io::Error),
}

/// What a client hears that speaks plain HTTP, whatever it asks for. The end of the connection ends
/// the body.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    content-type: text/plain\r\n\
    cache-control: no-store\r\n\
    connection: close\r\n\
    \r\n\
    This port speaks TLS: use https:// instead of http://.\n";

/// Shakes hands with a client, for as long as that may take.
///
/// # Cancel safety
///
/// Not safe: dropped, the connection is lost, which nothing was asked on yet.
pub(super) async fn shake_hands(
    stream: TcpStream,
    identity: &TlsIdentity,
    write_timeout: Duration,
) -> Result<ClientStream, AcceptError> {
    let shaking = async {
        // Looked at and left where it is: rustls would answer with an alert.
        let mut first = [0];
        stream.peek(&mut first).await.map_err(AcceptError::Failed)?;
        // A method of HTTP begins with a capital letter, a handshake with 22.
        if first[0].is_ascii_uppercase() {
            refuse(stream).await.map_err(AcceptError::Failed)?;
            return Err(AcceptError::PlainHttp);
        }
        let stream = WriteTimeout::new(stream, write_timeout);
        let stream = identity.shake_hands(stream).await.map_err(AcceptError::Failed)?;
        Ok(ClientStream::Right(Box::new(stream)))
    };
    time::timeout(defaults::HANDSHAKE_TIMEOUT, shaking).await.unwrap_or(Err(AcceptError::Late))
}

async fn refuse(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(PLAIN_HTTP).await?;
    stream.shutdown().await?;
    // What is left unread would take the answer away from the client.
    let mut rest = stream.take(defaults::BODY_BYTES_SKIPPED as u64);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await.map(drop)
}

#[cfg(test)]
mod tests;
