//! The subscription of metamcp to the notices of a server of the modern era: one per connection,
//! for all clients.
//!
//! It is not work: the connection counts as idle meanwhile, and is not kept for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{self, Instant},
};

use super::{
    CallEvent, Connection, ConnectionLimits, PendingRequest, RequestFailure, SideMessage,
    http::ReopenAttempts, pending_request::RequestOrigin,
};
use crate::{
    capacity_holder::Holder,
    config::defaults,
    era::{
        client_subscription::SubscriptionFilter,
        server_subscription::{self, listen},
    },
    protocol::{
        Era, Message,
        jsonrpc::MessagePart,
        payloads::method,
        rpc_error::{INTERNAL_ERROR, INVALID_PARAMS},
    },
};

mod subscription_state;

use subscription_state::{SubscriptionAction, SubscriptionState};

/// The resources that clients watch, and the server's response.
#[derive(Debug, Default)]
pub(super) struct NoticeSubscriptions {
    watched: watch::Sender<BTreeSet<String>>,
    told: watch::Sender<Told>,
}

/// The outcome of the last attempt to watch resources.
#[derive(Clone, Debug, Default)]
struct Told {
    /// The resources of the attempt; `None` before the first one.
    asked: Option<BTreeSet<String>>,
    /// The resources that are not watched, with the error objects as JSON text.
    refused: BTreeMap<String, String>,
}

/// A subscription that the server has acknowledged.
struct Open {
    call: PendingRequest,
    honoured: SubscriptionFilter,
}

/// The reason why there is no subscription.
enum Refusal {
    /// The server's error object, as JSON text.
    Answered(String),
    /// A failure that may pass.
    Lost(Arc<str>),
}

impl Connection {
    /// Makes the server watch these resources, and no others. Returns those that it does not watch,
    /// with error objects as JSON text. Cancel safe: the change takes effect all the same.
    ///
    /// # Errors
    ///
    /// [`RequestFailure`] when the server does not respond within [`defaults::SETTLE_TIMEOUT`].
    pub async fn watch(
        &self,
        uris: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, String>, RequestFailure> {
        let mut told = self.notices.told.subscribe();
        self.notices.watched.send_replace(uris.clone());
        let settled = async {
            let told = told.wait_for(|told| told.asked.as_ref() == Some(uris)).await;
            told.map(|told| told.refused.clone())
        };
        let patience = defaults::SETTLE_TIMEOUT;
        tokio::select! {
            () = self.wait_until_gone() => Err(RequestFailure::Gone),
            settled = time::timeout(patience, settled) => match settled {
                Ok(Ok(refused)) => Ok(refused),
                Ok(Err(_)) => Err(RequestFailure::Gone),
                Err(_) => Err(RequestFailure::Timeout { after: patience }),
            },
        }
    }
}

/// Holds the subscription of an established connection until that is gone. `tells_lists` says that
/// there are clients to notify of changed lists.
pub(super) async fn run(connection: Arc<Connection>, tells_lists: bool) {
    if connection.era() == Era::Legacy {
        return;
    }
    let listener = Listener {
        watched: connection.notices.watched.subscribe(),
        connection: &connection,
        tells_lists,
        plan: SubscriptionState::default(),
        open: None,
        last: None,
        attempts: ReopenAttempts::new(),
        has_worked: false,
    };
    tokio::select! {
        () = connection.wait_until_gone() => {}
        () = listener.run() => {}
    }
}

/// The task state that holds the subscription of one connection.
struct Listener<'a> {
    connection: &'a Arc<Connection>,
    watched: watch::Receiver<BTreeSet<String>>,
    tells_lists: bool,
    plan: SubscriptionState,
    open: Option<Open>,
    /// The previous subscription, and the time until which its last notices may still come.
    last: Option<(Open, Instant)>,
    attempts: ReopenAttempts,
    has_worked: bool,
}

impl Listener<'_> {
    async fn run(mut self) {
        loop {
            let filter = self.filter();
            self.plan.set_filter(filter);
            match self.plan.next() {
                SubscriptionAction::Rest => self.rest().await,
                SubscriptionAction::Close => {
                    self.open = None;
                    self.plan.closed();
                }
                SubscriptionAction::Open(filter) => {
                    if let Some(pause) = self.try_to_open(filter).await {
                        // New wishes are requested at once.
                        tokio::select! {
                            _ = self.watched.changed() => {}
                            () = time::sleep(pause) => {}
                        }
                    }
                }
            }
        }
    }

    /// Returns the notices that metamcp wants of this server.
    fn filter(&mut self) -> SubscriptionFilter {
        let uris = self.watched.borrow_and_update().iter().cloned().collect();
        let all =
            SubscriptionFilter { tools: true, prompts: true, resources: true, uris: Vec::new() };
        let lists = match self.connection.profile() {
            Some(profile) if self.tells_lists => {
                all.supported_by(profile.result.get("capabilities").unwrap_or(&Value::Null))
            }
            Some(_) | None => SubscriptionFilter::default(),
        };
        let filter = SubscriptionFilter { uris, ..lists };
        if filter == SubscriptionFilter::default() {
            self.tell(&filter, |_| None);
        }
        filter
    }

    /// Opens a subscription while the previous one continues. If that fails, returns the pause
    /// before the next attempt.
    async fn try_to_open(&mut self, filter: SubscriptionFilter) -> Option<Duration> {
        let connection = self.connection;
        let opened = {
            let mut opening = pin!(open(connection, &filter));
            match &mut self.open {
                None => opening.await,
                Some(last) => tokio::select! {
                    opened = opening.as_mut() => opened,
                    why = last.read(connection) => {
                        tracing::debug!(mcp_server = %connection.server, reason = %why, "no notices");
                        self.open = None;
                        self.plan.lost();
                        opening.await
                    }
                },
            }
        };
        match opened {
            Ok(opened) => {
                tracing::debug!(mcp_server = %connection.server, "listening");
                self.tell(&filter, |uri| {
                    let is_honoured = opened.honoured.uris.iter().any(|found| found == uri);
                    (!is_honoured).then(|| not_watched(uri))
                });
                let until = Instant::now() + defaults::LISTEN_OVERLAP;
                // On a pipe, everything before the acknowledgement has been read.
                let last = self.open.replace(opened).filter(|_| connection.is_stateless());
                self.last = last.map(|last| (last, until));
                self.has_worked = true;
                if self.plan.opened(filter) {
                    connection.reread_lists();
                }
                None
            }
            Err(Refusal::Answered(error)) => {
                let quoted = connection.quote(&error);
                tracing::debug!(mcp_server = %connection.server, error = quoted, "not listening");
                self.tell(&filter, |_| Some(error.clone()));
                self.plan.refused(filter);
                None
            }
            Err(Refusal::Lost(why)) => {
                tracing::debug!(mcp_server = %connection.server, reason = %why, "not listening");
                self.pause(filter, &why)
            }
        }
    }

    /// Returns the pause before the next attempt, if one is left.
    fn pause(&mut self, filter: SubscriptionFilter, why: &str) -> Option<Duration> {
        if self.has_worked {
            return Some(self.attempts.pause(None));
        }
        let pause = self.attempts.next(None);
        if pause.is_none() {
            let error = error(INTERNAL_ERROR, "NOT_LISTENING", why);
            self.tell(&filter, |_| Some(error.clone()));
            self.plan.refused(filter);
        }
        pause
    }

    /// Waits until there is something to do.
    async fn rest(&mut self) {
        let connection = self.connection;
        let since = Instant::now();
        let last = async {
            match &mut self.last {
                Some((last, until)) => {
                    let _its_end = time::timeout_at(*until, last.read(connection)).await;
                }
                None => pending().await,
            }
        };
        let open = async {
            match &mut self.open {
                Some(open) => open.read(connection).await,
                None => pending().await,
            }
        };
        tokio::select! {
            changed = self.watched.changed() => {
                // The sender is in the connection.
                debug_assert!(changed.is_ok(), "it outlives us");
            }
            () = last => self.last = None,
            why = open => {
                tracing::debug!(mcp_server = %connection.server, reason = %why, "no notices");
                self.open = None;
                self.plan.lost();
                if since.elapsed() >= defaults::STREAM_STABLE_AFTER {
                    self.attempts = ReopenAttempts::new();
                }
                // New wishes are requested at once.
                let _either = time::timeout(self.attempts.pause(None), self.watched.changed()).await;
            }
        }
    }

    /// Reports the outcome for the resources in `filter` to the waiting callers.
    fn tell(&self, filter: &SubscriptionFilter, refusal: impl Fn(&str) -> Option<String>) {
        let refused = filter.uris.iter().filter_map(|uri| Some((uri.clone(), refusal(uri)?)));
        self.connection.notices.told.send_replace(Told {
            asked: Some(filter.uris.iter().cloned().collect()),
            refused: refused.collect(),
        });
    }
}

/// Subscribes to the notices in `filter`, and waits until the server says which ones it sends.
async fn open(connection: &Arc<Connection>, filter: &SubscriptionFilter) -> Result<Open, Refusal> {
    let lost = |why: String| Refusal::Lost(why.into());
    let opening = async {
        let mut call = connection
            .listen(&listen(filter))
            .await
            .map_err(|failure| lost(failure.to_string()))?;
        loop {
            match call.next().await {
                Ok(CallEvent::Aside(aside)) if is_acknowledgement(&aside) => {
                    let honoured = SubscriptionFilter::read(aside.message()).unwrap_or_default();
                    return Ok(Open { call, honoured });
                }
                Ok(CallEvent::Aside(_) | CallEvent::Deferred) => {}
                Ok(CallEvent::Answer(answer)) => {
                    return Err(match answer.part(MessagePart::Error) {
                        Some(error) => Refusal::Answered(error.to_owned()),
                        None => lost("it ended at once".to_owned()),
                    });
                }
                Err(failure) => return Err(lost(failure.to_string())),
            }
        }
    };
    match time::timeout(defaults::SETTLE_TIMEOUT, opening).await {
        Ok(opened) => opened,
        Err(_) => Err(lost("it was not acknowledged".to_owned())),
    }
}

fn is_acknowledgement(aside: &SideMessage) -> bool {
    aside.message().method() == Some(method::SUBSCRIPTIONS_ACKNOWLEDGED)
}

/// Returns the error object for a resource that the server does not watch.
fn not_watched(uri: &str) -> String {
    let why = format!("the server does not tell of changes of `{uri}`");
    error(INVALID_PARAMS, "NOT_WATCHED", &why)
}

/// Returns an error object as JSON text.
fn error(code: i64, name: &str, message: &str) -> String {
    json!({ "code": code, "message": message, "data": { "code": name } }).to_string()
}

impl Open {
    /// Passes on the server's notices until the subscription ends, and returns why it did.
    async fn read(&mut self, connection: &Arc<Connection>) -> Arc<str> {
        loop {
            match self.call.next().await {
                Ok(CallEvent::Aside(SideMessage::Notification(notice))) => {
                    connection.announce(SideMessage::Notification(server_subscription::untagged(
                        &notice,
                    )));
                }
                Ok(CallEvent::Aside(SideMessage::Question(_)) | CallEvent::Deferred) => {}
                Ok(CallEvent::Answer(_)) => return "the server has ended it".into(),
                Err(failure) => return failure.to_string().into(),
            }
        }
    }
}

impl Connection {
    /// Sends a request that lasts as long as the connection. It is not work, and only metamcp waits
    /// for its messages.
    async fn listen(self: &Arc<Self>, request: &Message) -> Result<PendingRequest, RequestFailure> {
        // A subscription may be silent without limit.
        let limits = ConnectionLimits { silence: FOR_EVER, total: FOR_EVER };
        self.begin(Holder::SERVICE, request, RequestOrigin::Probe, limits).await
    }
}

/// Longer than any connection, and short enough to be added to an `Instant`.
const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
