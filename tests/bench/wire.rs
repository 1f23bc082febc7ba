//! A minimal HTTP/1.1 client connection: on a machine with few cores, the client's own cost would
//! distort the measurement.
//!
//! It supports only the framing that the servers here use: a length or chunks.

use std::{io, net::SocketAddr, ops::Range};

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memmem;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// A persistent connection.
pub(crate) struct Wire {
    stream: TcpStream,
    buffer: BytesMut,
}

/// The head of an answer.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) is_events: bool,
    length: Length,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: Head,
    body: Bytes,
}

#[derive(Clone, Copy, Debug)]
enum Length {
    Bytes(usize),
    Chunks,
}

impl Wire {
    pub(crate) async fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: BytesMut::with_capacity(4096) })
    }

    /// Sends a request and reads its whole answer.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<Answer> {
        let head = self.open(request).await?;
        let body = match head.length {
            Length::Bytes(length) => self.take(length).await?,
            Length::Chunks => self.chunks().await?,
        };
        Ok(Answer { head, body })
    }

    /// Sends a request and reads the head of its answer; the body may be endless.
    pub(crate) async fn open(&mut self, request: &[u8]) -> io::Result<Head> {
        self.stream.write_all(request).await?;
        let end = self.find(b"\r\n\r\n").await?;
        let head = Head::parse(&self.buffer[..end])?;
        self.buffer.advance(end + 4);
        Ok(head)
    }

    /// Joins the chunks of a body. A chunk is a length in hexadecimal, a line break, the bytes, and
    /// a line break; the last one is empty.
    async fn chunks(&mut self) -> io::Result<Bytes> {
        let mut body = BytesMut::new();
        loop {
            let end = self.find(b"\r\n").await?;
            let length = std::str::from_utf8(&self.buffer[..end])
                .ok()
                .and_then(|digits| usize::from_str_radix(digits.trim(), 16).ok())
                .ok_or_else(|| broken("a chunk without a length"))?;
            self.buffer.advance(end + 2);
            body.extend_from_slice(&self.take(length).await?);
            let _line_break = self.take(2).await?;
            if length == 0 {
                return Ok(body.freeze());
            }
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Bytes> {
        self.buffer.reserve(length.saturating_sub(self.buffer.len()));
        while self.buffer.len() < length {
            self.read().await?;
        }
        Ok(self.buffer.split_to(length).freeze())
    }

    /// Reads until `what` has arrived, and returns its position.
    async fn find(&mut self, what: &[u8]) -> io::Result<usize> {
        loop {
            if let Some(at) = memmem::find(&self.buffer, what) {
                return Ok(at);
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> io::Result<()> {
        self.buffer.reserve(4096);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(broken("the connection was closed in the middle of an answer")),
            _ => Ok(()),
        }
    }
}

impl Head {
    fn parse(text: &[u8]) -> io::Result<Self> {
        let text = std::str::from_utf8(text).map_err(|_| broken("a head that is not text"))?;
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let status = status.ok_or_else(|| broken("an answer without a status"))?;
        let mut head = Self { status, session: None, is_events: false, length: Length::Bytes(0) };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                let length = value.parse().map_err(|_| broken("a length that is no number"))?;
                head.length = Length::Bytes(length);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.length = Length::Chunks;
            } else if name.eq_ignore_ascii_case("content-type") {
                head.is_events = value.starts_with("text/event-stream");
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                head.session = Some(value.to_owned());
            }
        }
        Ok(head)
    }
}

impl Answer {
    /// Returns the message in the body: all of it, or the data of the last event.
    pub(crate) fn message(&self) -> &[u8] {
        if !self.head.is_events {
            return &self.body;
        }
        &self.body[last_data(&self.body)]
    }
}

/// Returns the range of the data of the last event.
fn last_data(body: &[u8]) -> Range<usize> {
    let start = memmem::rfind(body, b"data: ").map_or(body.len(), |at| at + 6);
    let end = memchr::memchr(b'\n', &body[start..]).map_or(body.len(), |at| start + at);
    start..end
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
