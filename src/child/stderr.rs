//! The reader of a child's standard error.
//!
//! Reading never stops, so that the child never blocks on a full pipe. The log is bounded in line
//! length and rate, and known secrets are redacted.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::Instant,
};

use super::ErrorOutput;
use crate::{
    config::defaults,
    redact::{self, Redactor},
    server_name::ServerName,
};

/// The last lines of a child's standard error. Clients may read those from before the first client
/// request; operators may read all.
#[derive(Clone, Debug, Default)]
pub struct StderrTail(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    lines: Mutex<Lines>,
    /// A client has sent a request: later lines are for operators only.
    is_sealed: AtomicBool,
}

#[derive(Debug, Default)]
struct Lines {
    of_start: VecDeque<String>,
    later: VecDeque<String>,
    /// The last line on standard output that is no message, from before the first client request.
    of_stdout: Option<String>,
}

impl StderrTail {
    /// Returns the lines that clients may read.
    pub fn output(&self) -> ErrorOutput {
        let is_of_start = self.0.is_sealed.load(Ordering::Relaxed);
        let lines = self.lock();
        let of_stdout = lines.of_stdout.iter().map(|line| format!("stdout: {line}"));
        ErrorOutput {
            lines: lines.of_start.iter().cloned().chain(of_stdout).collect(),
            is_of_start,
        }
    }

    /// Returns the last of all lines, oldest first. Only operators may read them.
    pub fn for_operators(&self) -> Vec<String> {
        let lines = self.lock();
        let n_old = defaults::STDERR_LINES_KEPT - lines.later.len();
        let old = lines.of_start.iter().skip(lines.of_start.len().saturating_sub(n_old));
        old.chain(&lines.later).cloned().collect()
    }

    /// Keeps a line on standard output that is no message: a program may write there why it ends.
    /// `line` must be free of secrets.
    pub fn keep_stdout(&self, line: String) {
        let mut lines = self.lock();
        if !line.trim().is_empty() && !self.0.is_sealed.load(Ordering::Relaxed) {
            lines.of_stdout = Some(line);
        }
    }

    /// Keeps later lines for operators only: they may be about a client.
    pub fn seal(&self) {
        if !self.0.is_sealed.load(Ordering::Relaxed) {
            let _lines = self.lock();
            self.0.is_sealed.store(true, Ordering::Relaxed);
        }
    }

    fn push(&self, line: String) {
        let mut lines = self.lock();
        let lines = match self.0.is_sealed.load(Ordering::Relaxed) {
            true => &mut lines.later,
            false => &mut lines.of_start,
        };
        if lines.len() == defaults::STDERR_LINES_KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads `stream` until it ends, and logs each line under the server's name. Cancel safe: unread
/// output is lost with the pipe.
pub async fn read_to_end(
    mut stream: impl AsyncRead + Unpin,
    server: ServerName,
    redactor: Redactor,
    tail: StderrTail,
) {
    let mut rate = Rate::new(Instant::now());
    let mut line = Vec::new();
    let mut cut = 0_usize;
    let mut chunk = vec![0; 4096];
    // A secret that straddles the cut must still be recognized as a whole.
    let kept = defaults::STDERR_LINE_BYTES_MAX + redactor.longest_secret();
    loop {
        let n = match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(n) => n,
        };
        for piece in chunk[..n].split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            let room = kept.saturating_sub(line.len()).min(text.len());
            line.extend_from_slice(&text[..room]);
            cut += text.len() - room;
            if ends {
                log(&server, &redactor, &tail, &mut rate, &mut line, &mut cut);
            }
        }
    }
    log(&server, &redactor, &tail, &mut rate, &mut line, &mut cut);
    rate.report(&server);
}

fn log(
    server: &ServerName,
    redactor: &Redactor,
    tail: &StderrTail,
    rate: &mut Rate,
    line: &mut Vec<u8>,
    cut: &mut usize,
) {
    let mut text = redactor.redact(String::from_utf8_lossy(line).trim_end());
    line.clear();
    if *cut > 0 {
        // The end may be the beginning of a secret.
        let end = redact::cut(&text, text.len().saturating_sub(redactor.longest_secret())).len();
        *cut += text.len() - end;
        text.truncate(end);
    }
    let end = redact::cut(&text, defaults::STDERR_LINE_BYTES_MAX).len();
    *cut += text.len() - end;
    text.truncate(end);
    match std::mem::take(cut) {
        0 => {}
        n_bytes => text.push_str(&format!(" [{n_bytes} more bytes]")),
    }
    if text.is_empty() {
        return;
    }
    if rate.admit(Instant::now(), server) {
        tracing::info!(mcp_server = %server, mcp_stream = "stderr", "{server}: {text}");
    }
    tail.push(text);
}

/// A token bucket of lines.
#[derive(Debug)]
struct Rate {
    lines: f64,
    filled: Instant,
    suppressed: u64,
}

impl Rate {
    const PER_SECOND: f64 = defaults::STDERR_LINES_PER_SECOND as f64;
    const BURST: f64 = Self::PER_SECOND * 10.0;

    fn new(now: Instant) -> Self {
        Self { lines: Self::BURST, filled: now, suppressed: 0 }
    }

    fn admit(&mut self, now: Instant, server: &ServerName) -> bool {
        let elapsed: Duration = now.saturating_duration_since(self.filled);
        self.lines = (self.lines + elapsed.as_secs_f64() * Self::PER_SECOND).min(Self::BURST);
        self.filled = now;
        if self.lines < 1.0 {
            self.suppressed += 1;
            return false;
        }
        self.lines -= 1.0;
        self.report(server);
        true
    }

    fn report(&mut self, server: &ServerName) {
        match std::mem::take(&mut self.suppressed) {
            0 => {}
            n_lines => tracing::warn!(
                mcp_server = %server, n_lines,
                "server `{server}` wrote too fast: {n_lines} lines of its standard error were not logged"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> ServerName {
        ServerName::new("test").expect("a name")
    }

    #[tokio::test]
    async fn the_stderr_tail_keeps_the_last_lines_redacted_and_cut() {
        let tail = StderrTail::default();
        let long = "x".repeat(defaults::STDERR_LINE_BYTES_MAX + 5);
        let text = format!("{}\ntoken is hunter2\n{long}\nlast", "early\n".repeat(20));

        let redactor = Redactor::new(["hunter2".to_owned()].iter());
        read_to_end(text.as_bytes(), server(), redactor, tail.clone()).await;

        let lines = tail.output().lines;
        assert_eq!(lines.len(), defaults::STDERR_LINES_KEPT);
        assert_eq!(lines[lines.len() - 3], "token is [secret]");
        assert!(lines[lines.len() - 2].ends_with("x [5 more bytes]"));
        assert_eq!(lines[lines.len() - 1], "last");
    }

    #[tokio::test]
    async fn a_secret_at_the_cut_of_a_long_line_is_redacted() {
        let secret = "s3cr3t-s3cr3t-s3cr3t";
        let redactor = Redactor::new([secret.to_owned()].iter());
        let logged_tail = |n_before: usize| {
            let text = format!("{}{}", "x".repeat(n_before), secret.repeat(10_000));
            let (tail, redactor) = (StderrTail::default(), redactor.clone());
            async move {
                read_to_end(text.as_bytes(), server(), redactor, tail.clone()).await;
                tail.output().lines.concat()
            }
        };
        for n_before in 0..secret.len() {
            let logged_tail = logged_tail(n_before).await.replace("[secret]", "");
            assert!(
                !logged_tail.contains("s3") && !logged_tail.contains("3t"),
                "{n_before}: {logged_tail}"
            );
        }
    }

    #[tokio::test]
    async fn a_secret_of_several_lines_or_across_the_cut_is_not_logged() {
        let tail = StderrTail::default();
        let key = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQ\nzzzzzzzzzzzz\n-----END KEY-----\n";
        let straddling = "x".repeat(defaults::STDERR_LINE_BYTES_MAX - 3) + "hunter2hunter2";
        let text = format!("{key}{straddling}\n");

        let redactor = Redactor::new([key.to_owned(), "hunter2hunter2".to_owned()].iter());
        read_to_end(text.as_bytes(), server(), redactor, tail.clone()).await;

        let logged = tail.output().lines.join("\n");
        assert!(!logged.contains("MIIEp") && !logged.contains("zzz"), "{logged}");
        assert!(!logged.contains("hunter2") && !logged.contains("hun"), "{logged}");
    }

    #[tokio::test]
    async fn stderr_output_after_the_first_client_request_is_for_operators_only() {
        let tail = StderrTail::default();
        read_to_end(&b"no API key is set"[..], server(), Redactor::default(), tail.clone()).await;
        assert!(!tail.output().is_of_start);
        tail.keep_stdout("no licence".to_owned());
        tail.keep_stdout("\r".to_owned());
        tail.seal();
        tail.keep_stdout("for client A".to_owned());
        read_to_end(&b"client A asked for x"[..], server(), Redactor::default(), tail.clone())
            .await;

        let lines = ["no API key is set", "stdout: no licence"].map(str::to_owned).to_vec();
        assert_eq!(tail.output(), ErrorOutput { lines, is_of_start: true });
        assert_eq!(tail.for_operators(), ["no API key is set", "client A asked for x"]);
        let many = "more\n".repeat(defaults::STDERR_LINES_KEPT - 1) + "last";
        read_to_end(many.as_bytes(), server(), Redactor::default(), tail.clone()).await;
        let lines = tail.for_operators();
        assert_eq!((lines.len(), &*lines[0]), (defaults::STDERR_LINES_KEPT, "more"));
        assert_eq!(lines.last().map(String::as_str), Some("last"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_stderr_lines_is_counted_and_not_logged() {
        let mut rate = Rate::new(Instant::now());
        let n_admitted = (0..1000).filter(|_| rate.admit(Instant::now(), &server())).count();
        assert_eq!((n_admitted, rate.suppressed), (200, 800));

        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(rate.admit(Instant::now(), &server()));
        assert_eq!(rate.suppressed, 0);
    }
}
