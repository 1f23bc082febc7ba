//! A launcher whose servers are listened to while they are spoken to.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use tokio::{
    io::{AsyncRead, ReadBuf},
    time::Instant,
};

use crate::{
    child::{Home, Host, LaunchError, Launched, Launcher},
    config::defaults,
};

/// Starts servers as ever, and remembers how each began.
#[derive(Debug, Default)]
pub(super) struct Listener {
    heard: Arc<Mutex<Heard>>,
}

/// What a server has written first, and when it was started.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    pub(super) started: Option<Instant>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl Listener {
    /// Returns what the last server has written so far.
    pub(super) fn heard(&self) -> Heard {
        lock(&self.heard).clone()
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Launcher for Listener {
    fn launch<'a>(&'a self, home: &'a Home) -> BoxFuture<'a, Result<Launched, LaunchError>> {
        Box::pin(async move {
            let mut launched = Host.launch(home).await?;
            *lock(&self.heard) = Heard { started: Some(Instant::now()), ..Heard::default() };
            let tee = |inner, pipe| Tee { inner, heard: Arc::clone(&self.heard), pipe };
            launched.pipes.stdout = Box::new(tee(launched.pipes.stdout, Pipe::Stdout));
            launched.pipes.stderr = launched.pipes.stderr.map(|stderr| {
                Box::new(tee(stderr, Pipe::Stderr)) as Box<dyn AsyncRead + Send + Unpin>
            });
            Ok(launched)
        })
    }
}

#[derive(Clone, Copy)]
enum Pipe {
    Stdout,
    Stderr,
}

/// A pipe whose first bytes are kept.
struct Tee {
    inner: Box<dyn AsyncRead + Send + Unpin>,
    heard: Arc<Mutex<Heard>>,
    pipe: Pipe,
}

impl AsyncRead for Tee {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        let read = &buffer.filled()[before..];
        if !read.is_empty() {
            let mut heard = lock(&self.heard);
            let kept = match self.pipe {
                Pipe::Stdout => &mut heard.stdout,
                Pipe::Stderr => &mut heard.stderr,
            };
            let room = defaults::PROBE_OUTPUT_BYTES_MAX.saturating_sub(kept.len());
            kept.extend_from_slice(&read[..read.len().min(room)]);
        }
        polled
    }
}
