//! The byte stream of a connection: TCP, with TLS or without.

use std::{
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::{
    client::TlsStream,
    rustls::{self, ClientConnection},
};

use super::tls_failure::later_failure;

/// The byte stream of a connection.
#[derive(Debug)]
pub(super) enum HttpStream {
    Plain(TokioIo<TcpStream>),
    Tls(Box<TlsChannel>),
}

/// A TLS connection, and the alert of the server that ended it.
#[derive(Debug)]
pub(super) struct TlsChannel {
    stream: TokioIo<TlsStream<TcpStream>>,
    alert: TlsAlert,
}

/// The alert of the server that ended a TLS connection, if there was one.
pub(super) type TlsAlert = Arc<OnceLock<rustls::Error>>;

impl HttpStream {
    /// Returns the stream over an established TLS connection.
    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Self {
        let stream = TokioIo::new(stream);
        Self::Tls(Box::new(TlsChannel { stream, alert: TlsAlert::default() }))
    }

    /// Returns the TLS connection, if there is one.
    pub(super) fn session(&self) -> Option<&ClientConnection> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(channel) => Some(channel.stream.inner().get_ref().1),
        }
    }

    /// Returns the place where an alert of the server will be.
    pub(super) fn alert(&self) -> Option<TlsAlert> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(channel) => Some(Arc::clone(&channel.alert)),
        }
    }
}

impl TlsChannel {
    /// Keeps the alert in a failure.
    fn noted<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &polled
            && let Some(alert) = later_failure(error)
        {
            let _the_first_counts = self.alert.set(alert);
        }
        polled
    }
}

impl Read for HttpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(channel) => {
                let polled = Pin::new(&mut channel.stream).poll_read(context, buffer);
                channel.noted(polled)
            }
        }
    }
}

impl Write for HttpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(channel) => {
                let polled = Pin::new(&mut channel.stream).poll_write(context, bytes);
                channel.noted(polled)
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(channel) => Pin::new(&mut channel.stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(channel) => Pin::new(&mut channel.stream).poll_shutdown(context),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(channel) => channel.stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(channel) => {
                let polled = Pin::new(&mut channel.stream).poll_write_vectored(context, slices);
                channel.noted(polled)
            }
        }
    }
}
