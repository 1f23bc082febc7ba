//! The state of one client: its streams, log level and subscriptions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{
    call::Call,
    fake::Fake,
    message::{Members, RpcError},
    open_bodies::GET_STREAM,
    output::{Output, OutputReceiver, OutputSender},
    resumable_stream::ResumableStream,
};

/// The id of the only session of standard input and output.
pub(crate) const PIPE: &str = "";

/// The state of a session.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// Ends the streams of the session.
    pub(crate) closed: CancellationToken,
    /// The stream for messages without a request: the GET stream, while it is open.
    pub(crate) listener: Option<OutputSender>,
    /// The lowest level of log messages to send.
    level: Level,
    pub(crate) subscribed: BTreeSet<String>,
    /// The resumable streams, by name.
    pub(crate) streams: BTreeMap<String, Arc<ResumableStream>>,
    n_posts: u64,
}

/// The severity of a log message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    #[default]
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl Session {
    /// Returns a session with resumable streams; its GET stream is stored from the start.
    pub(crate) fn resumable() -> Self {
        let mut session = Self::default();
        session.listener = Some(session.store_stream(GET_STREAM));
        session
    }

    /// Returns a session whose messages all go to one stream.
    pub(crate) fn listening(output: OutputSender) -> Self {
        Self { listener: Some(output), ..Self::default() }
    }

    /// Returns the sending end of a new resumable stream.
    pub(crate) fn store_stream(&mut self, name: &str) -> OutputSender {
        let (stream, feed) = ResumableStream::new(name);
        self.streams.insert(name.to_owned(), stream);
        OutputSender::Stored(Arc::new(feed))
    }

    /// Returns a stream name for the next POST.
    pub(crate) fn next_post(&mut self) -> String {
        self.n_posts += 1;
        format!("p{}", self.n_posts)
    }

    /// Starts to listen to a stored stream after an event, or else to a new one.
    pub(crate) fn listen(&mut self, name: &str, after: Option<u64>) -> OutputReceiver {
        if let Some(stream) = self.streams.get(name) {
            return OutputReceiver::Stored(stream.read(after));
        }
        let (output, receiver) = OutputSender::new();
        self.listener = Some(output);
        OutputReceiver::Queue(receiver)
    }

    /// Removes the listener, unless its stream is stored.
    pub(crate) fn stop_listening(&mut self) {
        self.listener =
            self.listener.take().filter(|output| matches!(output, OutputSender::Stored(_)));
    }

    /// Returns whether the client wants log messages of this level.
    pub(crate) fn wants(&self, level: Level) -> bool {
        self.level <= level
    }
}

impl Call {
    /// Returns the id of the session; a pipe has one too.
    pub(crate) fn session_id(&self) -> &str {
        self.session.as_deref().unwrap_or(PIPE)
    }

    /// Sets the lowest level of log messages to send.
    pub(crate) fn set_level(&self, params: &Members) -> Result<(), RpcError> {
        let level: Level = params.required("level")?;
        let mut state = self.fake.state();
        state.seen.levels.push(level);
        if let Some(session) = state.sessions.get_mut(self.session_id()) {
            session.level = level;
        }
        drop(state);
        self.fake.changed();
        Ok(())
    }

    /// Starts or ends a subscription to a resource; a URI that starts with `refuse:` fails.
    pub(crate) fn subscribe(&self, params: &Members, is_on: bool) -> Result<(), RpcError> {
        let uri: String = params.required("uri")?;
        let mut state = self.fake.state();
        let seen = &mut state.seen;
        if is_on { &mut seen.subscribes } else { &mut seen.unsubscribes }.push(uri.clone());
        let is_refused = uri.starts_with("refuse:");
        if let Some(session) = state.sessions.get_mut(self.session_id())
            && !is_refused
        {
            if is_on {
                session.subscribed.insert(uri.clone());
            } else {
                session.subscribed.remove(&uri);
            }
        }
        drop(state);
        self.fake.changed();
        if is_refused {
            return Err(RpcError::new(-32002, format!("Resource not found: {uri}")));
        }
        Ok(())
    }
}

impl Fake {
    /// Writes a message to the listeners of the sessions that want it; returns their number.
    pub(crate) async fn notify(&self, message: &str, wants: impl Fn(&Session) -> bool) -> usize {
        let outputs: Vec<OutputSender> = self
            .state()
            .sessions
            .values()
            .filter(|session| wants(session))
            .filter_map(|session| session.listener.clone())
            .collect();
        for output in &outputs {
            output.send(Output::ServerMessage(message.to_owned())).await;
        }
        outputs.len()
    }

    /// Writes a message to every listening client: the GET streams, or else `output`.
    pub(crate) async fn broadcast(&self, message: &str, output: Option<&OutputSender>) -> usize {
        let n_listeners =
            self.notify(message, |_| true).await + self.push_to_listen_requests(message).await;
        match output {
            Some(output) if n_listeners == 0 => {
                output.send(Output::ServerMessage(message.to_owned())).await;
                1
            }
            _ => n_listeners,
        }
    }
}
