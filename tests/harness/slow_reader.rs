//! A client that sends a request and reads the answer only on demand.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};

use super::{
    DEADLINE,
    client::{Client, MCP_HEADERS},
};

/// The approximate receive buffer of the kernel: small, so that the sender blocks soon.
const RECEIVE_BYTES: u32 = 4096;

/// The receive buffer for reading. Through the small window, megabytes would arrive a few kilobytes
/// at a time, each possibly delayed by the sender's timer.
const READING_BYTES: usize = 1 << 20;

/// A connection with one request. The answer is read only on demand.
#[derive(Debug)]
pub(crate) struct SlowReader(TcpStream);

impl Client {
    /// Posts a message on a separate connection.
    pub(crate) async fn slow_post(&self, message: &str) -> SlowReader {
        let headers = MCP_HEADERS.map(|(name, value)| format!("{name}: {value}\r\n")).concat();
        let length = message.len();
        self.slow("POST", &format!("{headers}content-length: {length}\r\n"), message).await
    }

    /// Opens the GET stream on a separate connection.
    pub(crate) async fn slow_get(&self) -> SlowReader {
        self.slow("GET", "accept: text/event-stream\r\n", "").await
    }

    async fn slow(&self, method: &str, headers: &str, body: &str) -> SlowReader {
        let (host, path) = self.url()["http://".len()..].split_once('/').expect("a path");
        let own = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let own: String = own.collect();
        let text = format!("{method} /{path} HTTP/1.1\r\nhost: {host}\r\n{own}{headers}\r\n{body}");
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(RECEIVE_BYTES).expect("it takes a size");
        let connected = socket.connect(host.parse().expect("an address"));
        let mut stream = connected.await.expect("a connection");
        tokio::time::timeout(DEADLINE, stream.write_all(text.as_bytes()))
            .await
            .expect("the server reads in time")
            .expect("the server reads");
        SlowReader(stream)
    }
}

impl SlowReader {
    /// Reads `n_bytes` bytes of the answer, including the head.
    pub(crate) async fn read(&mut self, n_bytes: usize) -> Vec<u8> {
        let mut bytes = vec![0; n_bytes];
        let read = tokio::time::timeout(DEADLINE, self.0.read_exact(&mut bytes)).await;
        read.expect("they arrive in time").expect("they arrive");
        bytes
    }

    /// Reads until `text` has arrived.
    pub(crate) async fn read_until(&mut self, text: &str) -> String {
        let mut bytes = Vec::new();
        let reading = async {
            while !String::from_utf8_lossy(&bytes).contains(text) {
                bytes.push(self.0.read_u8().await.expect("it arrives before the end"));
            }
        };
        tokio::time::timeout(DEADLINE, reading).await.expect("it arrives in time");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads a chunked answer to its end, including its head and the chunk framing.
    pub(crate) async fn read_to_end_of_answer(mut self) -> Vec<u8> {
        const END: &[u8] = b"\r\n0\r\n\r\n";
        self.take_more();
        let mut bytes = Vec::new();
        let reading = async {
            while !bytes.ends_with(END) && self.0.read_buf(&mut bytes).await.expect("bytes") > 0 {}
        };
        tokio::time::timeout(DEADLINE, reading).await.expect("it ends in time");
        bytes
    }

    /// Waits until the server closes the connection and returns the bytes received.
    pub(crate) async fn read_to_end(mut self) -> Vec<u8> {
        self.take_more();
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(DEADLINE, self.0.read_to_end(&mut bytes)).await;
        // A reset is an end too.
        read.expect("it is closed in time").ok();
        bytes
    }

    fn take_more(&self) {
        rustix::net::sockopt::set_socket_recv_buffer_size(&self.0, READING_BYTES)
            .expect("it takes a size");
    }
}
