//! An upstream with stub answers: the test supplies each one byte for byte.
//!
//! Unlike the fake, it can answer incorrectly.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use serde_json::{Value, json};

/// A function that returns the answer to one message: status, headers and body. An event stream
/// stays open after the body.
pub(crate) type AnswerFunction = dyn Fn(&Value) -> (u16, &'static str, String) + Send + Sync;

/// A running upstream; stopped on drop.
pub(crate) struct StubUpstream {
    pub(crate) url: String,
    is_over: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl StubUpstream {
    /// Starts an upstream that handles `initialize` itself and answers all other requests with
    /// `answer`.
    pub(crate) fn start(
        answer: impl Fn(&Value) -> (u16, &'static str, String) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let is_over = Arc::new(AtomicBool::new(false));
        let (answer, over): (Arc<AnswerFunction>, _) = (Arc::new(answer), Arc::clone(&is_over));
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let answer = Arc::clone(&answer);
                // The thread ends with its connection, which ends with the service.
                std::thread::spawn(move || serve(stream, &*answer));
            }
        });
        Self { url: format!("http://{address}/mcp"), is_over, acceptor: Some(acceptor) }
    }
}

impl Drop for StubUpstream {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        TcpStream::connect(self.url.trim_start_matches("http://").trim_end_matches("/mcp")).ok();
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().ok();
        }
    }
}

fn serve(stream: TcpStream, answer: &AnswerFunction) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut writer = stream;
    while let Some(body) = read(&mut reader) {
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let (status, headers, body) = match message["method"].as_str() {
            Some("initialize") => (200, JSON, initialized(&message)),
            Some(method) if method.starts_with("notifications/") => (202, JSON, String::new()),
            Some(_) => answer(&message),
            None => (200, JSON, String::new()),
        };
        let length = if headers == STREAM {
            String::new()
        } else {
            format!("content-length: {}\r\n", body.len())
        };
        let head =
            format!("HTTP/1.1 {status} X\r\nmcp-session-id: stub\r\n{headers}\r\n{length}\r\n");
        if writer.write_all(format!("{head}{body}").as_bytes()).is_err() {
            return;
        }
    }
}

/// The headers of a JSON answer.
pub(crate) const JSON: &str = "content-type: application/json";
/// The headers of an endless stream.
pub(crate) const STREAM: &str = "content-type: text/event-stream";

fn initialized(message: &Value) -> String {
    let result = json!({
        "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
        "serverInfo": { "name": "stub", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string()
}

/// Reads one request and returns its body; `None` if the client is gone.
fn read(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}
