//! An operator at the control socket, independent of the code under test.

use std::path::Path;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

use super::{DEADLINE, daemon::Daemon};

/// A connection to the control socket.
pub(crate) struct Operator {
    reader: BufReader<OwnedReadHalf>,
    writer: Option<OwnedWriteHalf>,
    n_requests: u64,
}

impl Operator {
    /// Connects to the control socket of the service.
    pub(crate) async fn at(daemon: &Daemon) -> Self {
        Self::connect(&daemon.control()).await
    }

    /// Connects to a socket.
    pub(crate) async fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).await.expect("connected");
        let (reader, writer) = stream.into_split();
        Self { reader: BufReader::new(reader), writer: Some(writer), n_requests: 0 }
    }

    /// Sends raw bytes.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let writer = self.writer.as_mut().expect("the writing side is open");
        let writing = writer.write_all(bytes.as_ref());
        timeout(DEADLINE, writing).await.expect("accepted in time").expect("written");
    }

    /// Sends a request with this id.
    pub(crate) async fn request(&mut self, id: Value, method: &str, params: Value) {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(format!("{request}\n")).await;
    }

    /// Returns whether the service has closed the connection, without reading from it.
    pub(crate) async fn is_cut_off(&mut self) -> bool {
        // An empty line between messages is ignored.
        self.writer.as_mut().expect("the writing side is open").write_all(b"\n").await.is_err()
    }

    /// Closes the sending side.
    pub(crate) fn close_writing(&mut self) {
        self.writer = None;
    }

    /// Returns the next line; `None` if the service has closed the connection.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let reading = self.reader.read_line(&mut line);
        let read = timeout(DEADLINE, reading).await.expect("a line in time");
        match read {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(serde_json::from_str(&line).expect("each line is JSON")),
        }
    }

    /// Reads to the end, and returns the number of bytes.
    pub(crate) async fn drain(&mut self) -> usize {
        let mut rest = Vec::new();
        let reading = self.reader.read_to_end(&mut rest);
        // A closed connection may end with an error.
        let _end = timeout(DEADLINE, reading).await.expect("it ends in time");
        rest.len()
    }

    /// Sends a request and returns the whole answer, which must be the next message.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.n_requests += 1;
        let id = json!(format!("ask-{}", self.n_requests));
        self.request(id.clone(), method, params).await;
        let answer = self.next().await.expect("an answer");
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Sends a request and returns the result.
    #[track_caller]
    pub(crate) fn result(
        &mut self,
        method: &str,
        params: Value,
    ) -> impl Future<Output = Value> + use<'_> {
        let method = method.to_owned();
        async move {
            let mut answer = self.ask(&method, params).await;
            assert!(answer["error"].is_null(), "{method}: {answer}");
            answer["result"].take()
        }
    }

    /// Sends a request and returns the error.
    pub(crate) async fn error(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params).await;
        assert!(answer["result"].is_null(), "{method}: {answer}");
        answer["error"].take()
    }
}
