//! An upstream that follows a script: broken streams, old transports, protocol violations.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use serde_json::{Value, json};

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    /// `POST`, `GET` or `DELETE`.
    pub(crate) verb: String,
    pub(crate) path: String,
    /// By name in small letters; the values of one name are joined by commas.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) message: Value,
    /// The body as text.
    pub(crate) body: String,
}

impl ReceivedRequest {
    /// Returns a header, or an empty text.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(String::as_str).unwrap_or_default()
    }

    /// Returns the method of the message, or else the verb.
    pub(crate) fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or(&self.verb)
    }

    /// Returns the text of an answer with this result.
    pub(crate) fn result(&self, result: &Value) -> String {
        json!({ "jsonrpc": "2.0", "id": self.message["id"], "result": result }).to_string()
    }
}

/// The writer of the answer to a request.
pub(crate) struct ResponseWriter {
    stream: TcpStream,
    is_over: bool,
}

impl ResponseWriter {
    /// Writes raw bytes; `false` if the client is gone.
    pub(crate) fn raw(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Writes a complete response.
    pub(crate) fn page(&mut self, status: u16, kind: &str, body: &str) {
        let length = body.len();
        self.raw(format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
        ));
    }

    /// Writes a complete response with a JSON-RPC message.
    pub(crate) fn json(&mut self, body: &str) {
        self.page(200, "application/json", body);
    }

    /// Writes the head of an event stream.
    pub(crate) fn events(&mut self) {
        self.raw("HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
    }

    /// Writes a chunk of an event stream; `false` if the client is gone.
    pub(crate) fn chunk(&mut self, text: &str) -> bool {
        self.raw(format!("{:x}\r\n{text}\r\n", text.len()))
    }

    /// Ends an event stream in order.
    pub(crate) fn end(&mut self) {
        self.raw("0\r\n\r\n");
    }

    /// Closes the connection, even in the middle of an answer.
    pub(crate) fn hang_up(&mut self) {
        self.is_over = true;
    }

    /// Waits until the client is gone.
    pub(crate) fn wait_gone(&mut self) {
        while matches!(self.stream.read(&mut [0; 64]), Ok(n_bytes) if n_bytes > 0) {}
        self.is_over = true;
    }
}

/// A script that returns whether it answered a request; [`answer_by_default`] answers the others.
type Script = dyn Fn(&ReceivedRequest, &mut ResponseWriter) -> bool + Send + Sync;

/// A running upstream; stopped on drop.
pub(crate) struct ScriptedUpstream {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    is_over: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl ScriptedUpstream {
    /// Starts an upstream that follows `script`, and answers all other requests by default.
    pub(crate) fn start(
        script: impl Fn(&ReceivedRequest, &mut ResponseWriter) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        Self::on(listener, script)
    }

    /// Starts an upstream on a bound socket.
    pub(crate) fn on(
        listener: TcpListener,
        script: impl Fn(&ReceivedRequest, &mut ResponseWriter) -> bool + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().expect("it is bound");
        let (requests, is_over): (Arc<Mutex<Vec<ReceivedRequest>>>, Arc<AtomicBool>) =
            Default::default();
        let (script, log, over): (Arc<Script>, _, _) =
            (Arc::new(script), Arc::clone(&requests), Arc::clone(&is_over));
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let (script, log) = (Arc::clone(&script), Arc::clone(&log));
                // The thread ends with its connection, which ends with the service.
                std::thread::spawn(move || serve(stream, &*script, &log));
            }
        });
        Self { url: format!("http://{address}/mcp"), requests, is_over, acceptor: Some(acceptor) }
    }

    /// Returns the configuration table of a server that is this upstream.
    pub(crate) fn server(&self, more: &str) -> String {
        format!("[servers.up]\nurl = {:?}\n{more}\n", self.url)
    }

    /// Returns every request so far.
    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().expect("not poisoned").clone()
    }

    /// Returns the number of requests of this method, or verb, so far.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.requests().iter().filter(|request| request.method() == method).count()
    }

    /// Returns the last request of this method, or verb.
    #[track_caller]
    pub(crate) fn last(&self, method: &str) -> ReceivedRequest {
        let found = self.requests().into_iter().rfind(|request| request.method() == method);
        found.unwrap_or_else(|| panic!("no request `{method}`"))
    }
}

impl Drop for ScriptedUpstream {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        TcpStream::connect(self.url.trim_start_matches("http://").trim_end_matches("/mcp")).ok();
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().ok();
        }
    }
}

fn serve(stream: TcpStream, script: &Script, log: &Mutex<Vec<ReceivedRequest>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut response = ResponseWriter { stream, is_over: false };
    while !response.is_over
        && let Some(request) = read(&mut reader)
    {
        log.lock().expect("not poisoned").push(request.clone());
        if !script(&request, &mut response) {
            answer_by_default(&request, &mut response);
        }
    }
}

/// Answers as a simple, correct upstream: every result is empty, and nothing streams.
fn answer_by_default(request: &ReceivedRequest, response: &mut ResponseWriter) {
    match request.method() {
        "initialize" => {
            let result = json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "scripted", "version": "1" },
            });
            let body = request.result(&result);
            let length = body.len();
            response.raw(format!(
                "HTTP/1.1 200 X\r\ncontent-type: application/json\r\nmcp-session-id: s1\r\ncontent-length: {length}\r\n\r\n{body}"
            ));
        }
        "tools/list" => response.json(&request.result(&json!({ "tools": [] }))),
        "DELETE" => response.page(200, "text/plain", ""),
        "GET" => response.page(405, "text/plain", ""),
        method if method.starts_with("notifications/") => response.page(202, "text/plain", ""),
        _ => response.json(&request.result(&json!({}))),
    }
}

/// Reads one request; `None` if the client is gone.
fn read(reader: &mut BufReader<TcpStream>) -> Option<ReceivedRequest> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut words = line.split_ascii_whitespace().map(str::to_owned);
    let (verb, path) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let values: &mut String = headers.entry(name.to_ascii_lowercase()).or_default();
        if !values.is_empty() {
            values.push_str(", ");
        }
        values.push_str(value.trim());
    }
    let length = headers.get("content-length").and_then(|value| value.parse().ok());
    let mut body = vec![0; length.unwrap_or_default()];
    reader.read_exact(&mut body).ok()?;
    let message = serde_json::from_slice(&body).unwrap_or_default();
    let body = String::from_utf8_lossy(&body).into_owned();
    Some(ReceivedRequest { verb, path, headers, message, body })
}
