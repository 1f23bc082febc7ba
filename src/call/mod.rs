//! The only way from a request to a server: connect, send, and send again if that is provably safe.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use tokio::time::{self, Instant};

use crate::{
    config::defaults,
    connection::{Call, Connection, Event, Failure, Limits, Owner},
    name::ServerName,
    pool::{Lease, Slot},
    protocol::{Message, Pieces, jsonrpc::Part, mcp::method},
    report::chain,
};

mod error;

pub use error::CallError;

/// One request and its answer, over as many connections as that takes.
///
/// Dropping it cancels the request at the server.
pub struct Exchange {
    slot: Arc<Slot>,
    owner: Option<Owner>,
    request: Message,
    limits: Limits,
    ends: Instant,
    stage: Stage,
    replays_left: u32,
    /// For a request that may have been executed and may be executed twice. Counted apart: one that
    /// was interrupted is the first to find out that the server is not there.
    repeats_left: u32,
    /// Something came before the answer, so that the client would see it twice.
    has_begun: bool,
}

enum Stage {
    /// Kept here, so that a wait that is cut off goes on where it was.
    Connecting(BoxFuture<'static, Result<Lease, CallError>>),
    /// There is a connection; the request is on its way once there is a call.
    Connected(Connected),
    /// The client does not want the answer any more.
    Cancelled,
}

/// Whether a request that failed may be sent again.
enum Again {
    Not,
    /// It was not executed.
    Unexecuted,
    /// It may have been executed, and may be executed twice.
    Repeatable,
}

struct Connected {
    // Before the lease: what is given back has nothing of ours running on it.
    call: Option<Call>,
    lease: Lease,
}

impl Exchange {
    /// Prepares to send the request of `owner` to the server of `slot`; the first
    /// [`Exchange::next`] sends it.
    pub fn new(slot: Arc<Slot>, owner: Option<&Owner>, request: Message, limits: Limits) -> Self {
        // One bound for the dial, the request and its replay together.
        let ends = Instant::now() + limits.total;
        let owner = owner.cloned();
        let stage = connecting(&slot, owner.as_ref(), limits, Duration::ZERO);
        Self {
            slot,
            owner,
            request,
            limits,
            ends,
            stage,
            replays_left: defaults::REPLAYS,
            repeats_left: defaults::REPEATS,
            has_begun: false,
        }
    }

    /// Returns what comes next, as [`Call::next`] does.
    ///
    /// # Errors
    ///
    /// [`CallError`] when no answer will come; nothing comes after it.
    ///
    /// # Cancel safety
    ///
    /// Safe: the next call goes on.
    pub async fn next(&mut self) -> Result<Event, CallError> {
        loop {
            let (error, again) = match self.advance().await {
                Ok(event) => return Ok(event),
                Err(lost) => lost,
            };
            let (attempts_left, pause) = match again {
                Again::Not => return Err(error),
                Again::Unexecuted => (&mut self.replays_left, Duration::ZERO),
                Again::Repeatable => (&mut self.repeats_left, defaults::REPEAT_PAUSE),
            };
            let Some(n_left) = attempts_left.checked_sub(1) else { return Err(error) };
            *attempts_left = n_left;
            tracing::info!(mcp_server = %self.slot.name(), reason = %chain(&error), "request sent again");
            let total = self.ends.saturating_duration_since(Instant::now());
            let limits = Limits { total, ..self.limits };
            self.stage = connecting(&self.slot, self.owner.as_ref(), limits, pause);
        }
    }

    /// Goes on to what comes next on one connection, or to why nothing will.
    async fn advance(&mut self) -> Result<Event, (CallError, Again)> {
        loop {
            let Connected { call, lease } = match &mut self.stage {
                Stage::Connecting(connecting) => match connecting.await {
                    Ok(lease) => {
                        self.stage = Stage::Connected(Connected { call: None, lease });
                        continue;
                    }
                    Err(error) if error.is_replayable() => return Err((error, Again::Unexecuted)),
                    Err(error) => return Err((error, Again::Not)),
                },
                Stage::Connected(connected) => connected,
                Stage::Cancelled => return std::future::pending().await,
            };
            let came = match call {
                Some(call) => call.next().await,
                none => {
                    let total = self.ends.saturating_duration_since(Instant::now());
                    let limits = Limits { total, ..self.limits };
                    match lease.connection.call(&self.request, limits).await {
                        Ok(sent) => {
                            *none = Some(sent);
                            continue;
                        }
                        Err(failure) => Err(failure),
                    }
                }
            };
            let source = match came {
                Ok(event) => {
                    self.has_begun = true;
                    return Ok(event);
                }
                Err(source) => source,
            };
            let again = if source.is_replayable() {
                Again::Unexecuted
            } else if source.is_interruption()
                && !self.has_begun
                && is_repeatable(&self.request, &lease.connection)
            {
                Again::Repeatable
            } else {
                Again::Not
            };
            return Err((CallError::Failed { server: self.slot.name().clone(), source }, again));
        }
    }

    /// Waits for the answer. Notifications go by, questions are refused.
    ///
    /// # Errors
    ///
    /// As [`Exchange::next`].
    ///
    /// # Cancel safety
    ///
    /// Dropping it cancels the request at the server.
    pub async fn finish(mut self) -> Result<Message, CallError> {
        loop {
            if let Event::Answer(answer) = self.next().await? {
                return Ok(answer);
            }
        }
    }

    /// Gives the request up because the client has said that it does not want the answer; see
    /// [`Call::cancel`]. Nothing comes after it.
    pub fn cancel(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Cancelled);
        if let Stage::Connected(Connected { call: Some(call), .. }) = stage {
            call.cancel();
        }
    }

    /// Returns the name of the server.
    pub fn server(&self) -> &ServerName {
        self.slot.name()
    }

    /// Returns the generation of the connection that the request is on, if it is on one.
    pub fn generation(&self) -> Option<u64> {
        match &self.stage {
            Stage::Connected(Connected { lease, .. }) => Some(lease.connection.generation()),
            Stage::Connecting(_) | Stage::Cancelled => None,
        }
    }

    /// Tells whether the server works on the request.
    pub fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Connected(Connected { call: Some(_), .. }))
    }

    /// Returns the progress token that the client gave, as JSON text.
    fn client_token(&self) -> Option<&str> {
        self.request.part(Part::ProgressToken)
    }

    /// Returns the client's id of the request, as JSON text.
    pub fn client_id(&self) -> &str {
        self.request.part(Part::Id).unwrap_or("null")
    }

    /// Returns the bytes of `message` as the client is to see them: its own id and token.
    pub fn restore(&self, message: &Message) -> Pieces {
        // A message with a token comes only where the request had one.
        let token = self.client_token().unwrap_or("null");
        message.edit_in_pieces([(Part::Id, self.client_id()), (Part::ProgressToken, token)])
    }
}

/// Tells whether a request that may have been executed can be sent again: it only reads, or its tool
/// says that calling it twice does no more than calling it once. Source: design ruling 9.
fn is_repeatable(request: &Message, connection: &Connection) -> bool {
    match request.method().unwrap_or_default() {
        method::TOOLS_CALL => {
            request.string(Part::Name).is_some_and(|tool| connection.is_repeatable(&tool))
        }
        asked => method::READING.contains(&asked),
    }
}

/// Returns a connection for a request of `owner`, dialling first where that is needed. Room for
/// another connection is waited for as long as a request may be silent; a dial as long as one may
/// take in all, for starting a server takes longer than asking it. It goes on for whoever asks next.
///
/// # Errors
///
/// [`CallError`] when there is none in time.
///
/// # Cancel safety
///
/// Safe.
pub async fn connect(
    slot: &Slot,
    owner: Option<&Owner>,
    limits: Limits,
) -> Result<Lease, CallError> {
    let server = || slot.name().clone();
    // Where both end at the same time, the wait inside has its say first: it knows what is missing.
    time::timeout(limits.total, slot.lease(owner, Instant::now() + limits.silence))
        .await
        .map_err(|_| CallError::Failed {
            server: server(),
            source: Failure::NotInTime { after: limits.total },
        })?
        .map_err(|source| CallError::NotConnected { server: server(), source })
}

/// Returns the first stage of a request, which has a connection where there is one for all. The wait
/// for another one begins after a `pause`.
fn connecting(slot: &Arc<Slot>, owner: Option<&Owner>, limits: Limits, pause: Duration) -> Stage {
    if pause.is_zero()
        && let Some(lease) = slot.ready(owner)
    {
        return Stage::Connected(Connected { call: None, lease });
    }
    let (slot, owner) = (Arc::clone(slot), owner.cloned());
    Stage::Connecting(Box::pin(async move {
        time::sleep(pause).await;
        connect(&slot, owner.as_ref(), limits).await
    }))
}
