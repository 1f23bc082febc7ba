//! An upstream whose every byte the test writes: broken streams, old transports, violations.

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
pub(crate) struct Asked {
    /// `POST`, `GET` or `DELETE`.
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) message: Value,
}

impl Asked {
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

/// The connection of a request.
pub(crate) struct Wire {
    stream: TcpStream,
    is_over: bool,
}

impl Wire {
    /// Writes raw bytes; `false` if the client is gone.
    pub(crate) fn raw(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Answers with a whole page.
    pub(crate) fn page(&mut self, status: u16, kind: &str, body: &str) {
        let length = body.len();
        self.raw(format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
        ));
    }

    /// Answers with a message.
    pub(crate) fn json(&mut self, body: &str) {
        self.page(200, "application/json", body);
    }

    /// Begins an event stream.
    pub(crate) fn events(&mut self) {
        self.raw("HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
    }

    /// Writes a chunk of an event stream; `false` if the client is gone.
    pub(crate) fn piece(&mut self, text: &str) -> bool {
        self.raw(format!("{:x}\r\n{text}\r\n", text.len()))
    }

    /// Ends an event stream correctly.
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

/// A script that returns whether it handled a request; the default behaviour handles others.
type Script = dyn Fn(&Asked, &mut Wire) -> bool + Send + Sync;

/// A running upstream; ended on drop.
pub(crate) struct Scripted {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    is_over: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Scripted {
    /// Starts an upstream that follows `script`, or else the default behaviour.
    pub(crate) fn start(
        script: impl Fn(&Asked, &mut Wire) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        Self::on(listener, script)
    }

    /// Starts it on a bound socket.
    pub(crate) fn on(
        listener: TcpListener,
        script: impl Fn(&Asked, &mut Wire) -> bool + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().expect("it is bound");
        let (asked, is_over): (Arc<Mutex<Vec<Asked>>>, Arc<AtomicBool>) = Default::default();
        let (script, log, over): (Arc<Script>, _, _) =
            (Arc::new(script), Arc::clone(&asked), Arc::clone(&is_over));
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
        Self { url: format!("http://{address}/mcp"), asked, is_over, acceptor: Some(acceptor) }
    }

    /// Returns the configuration table of a server that is this upstream.
    pub(crate) fn server(&self, more: &str) -> String {
        format!("[servers.up]\nurl = {:?}\n{more}\n", self.url)
    }

    /// Returns every request so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("not poisoned").clone()
    }

    /// Returns the number of requests of this method, or verb, so far.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.asked().iter().filter(|asked| asked.method() == method).count()
    }

    /// Returns the last request of this method, or verb.
    #[track_caller]
    pub(crate) fn last(&self, method: &str) -> Asked {
        let found = self.asked().into_iter().rfind(|asked| asked.method() == method);
        found.unwrap_or_else(|| panic!("no {method}"))
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        TcpStream::connect(self.url.trim_start_matches("http://").trim_end_matches("/mcp")).ok();
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().ok();
        }
    }
}

fn serve(stream: TcpStream, script: &Script, log: &Mutex<Vec<Asked>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut wire = Wire { stream, is_over: false };
    while !wire.is_over
        && let Some(asked) = read(&mut reader)
    {
        log.lock().expect("not poisoned").push(asked.clone());
        if !script(&asked, &mut wire) {
            behave(&asked, &mut wire);
        }
    }
}

/// Acts as a simple, correct upstream: every result is empty, nothing streams.
fn behave(asked: &Asked, wire: &mut Wire) {
    match asked.method() {
        "initialize" => {
            let result = json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "scripted", "version": "1" },
            });
            let body = asked.result(&result);
            let length = body.len();
            wire.raw(format!(
                "HTTP/1.1 200 X\r\ncontent-type: application/json\r\nmcp-session-id: s1\r\ncontent-length: {length}\r\n\r\n{body}"
            ));
        }
        "tools/list" => wire.json(&asked.result(&json!({ "tools": [] }))),
        "DELETE" => wire.page(200, "text/plain", ""),
        "GET" => wire.page(405, "text/plain", ""),
        method if method.starts_with("notifications/") => wire.page(202, "text/plain", ""),
        _ => wire.json(&asked.result(&json!({}))),
    }
}

/// Reads one request; `None` if the client is gone.
fn read(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
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
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|value| value.parse().ok());
    let mut body = vec![0; length.unwrap_or_default()];
    reader.read_exact(&mut body).ok()?;
    let message = serde_json::from_slice(&body).unwrap_or_default();
    Some(Asked { verb, path, headers, message })
}
