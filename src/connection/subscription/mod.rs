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
        Era,
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
    outcome: watch::Sender<WatchOutcome>,
}

/// The outcome of the last attempt to watch resources.
#[derive(Clone, Debug, Default)]
struct WatchOutcome {
    /// The resources of the attempt; `None` before the first one.
    watched: Option<BTreeSet<String>>,
    /// The resources that are not watched, with the error objects as JSON text.
    refused: BTreeMap<String, String>,
}

/// A subscription that the server has acknowledged.
struct AcknowledgedSubscription {
    call: PendingRequest,
    honoured: SubscriptionFilter,
}

/// The reason why there is no subscription.
enum SubscribeFailure {
    /// The server's error object, as JSON text.
    Refused(String),
    /// A failure that may pass.
    Lost(Arc<str>),
}

impl Connection {
    /// Makes the server watch these resources, and no others. Returns those that it does not watch,
    /// with error objects as JSON text. Cancel safe: the change takes effect all the same.
    ///
    /// # Errors
    ///
    /// [`RequestFailure`] when the server does not respond within [`defaults::RECONCILE_TIMEOUT`].
    pub async fn watch(
        &self,
        uris: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, String>, RequestFailure> {
        let mut outcome = self.notices.outcome.subscribe();
        self.notices.watched.send_replace(uris.clone());
        let after = defaults::RECONCILE_TIMEOUT;
        let settled = outcome.wait_for(|outcome| outcome.watched.as_ref() == Some(uris));
        tokio::select! {
            () = self.wait_until_gone() => Err(RequestFailure::Gone),
            settled = time::timeout(after, settled) => match settled {
                Ok(Ok(outcome)) => Ok(outcome.refused.clone()),
                Ok(Err(_)) => Err(RequestFailure::Gone),
                Err(_) => Err(RequestFailure::Timeout(after)),
            },
        }
    }
}

/// Holds the subscription of an established connection until that is gone. `wants_lists` says that
/// there are clients to notify of changed lists.
pub(super) async fn run(connection: Arc<Connection>, wants_lists: bool) {
    if connection.era() == Era::Legacy {
        return;
    }
    let listener = Listener {
        watched: connection.notices.watched.subscribe(),
        connection: &connection,
        wants_lists,
        state: SubscriptionState::default(),
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
    wants_lists: bool,
    state: SubscriptionState,
    open: Option<AcknowledgedSubscription>,
    /// The previous subscription, and the time until which its last notices may still come.
    last: Option<(AcknowledgedSubscription, Instant)>,
    attempts: ReopenAttempts,
    has_worked: bool,
}

impl Listener<'_> {
    async fn run(mut self) {
        loop {
            let filter = self.filter();
            self.state.set_filter(filter);
            match self.state.next() {
                SubscriptionAction::Rest => self.rest().await,
                SubscriptionAction::Close => {
                    self.open = None;
                    self.state.closed();
                }
                SubscriptionAction::Open(filter) => {
                    if let Some(pause) = self.try_to_open(filter).await {
                        // A changed demand is requested at once.
                        tokio::select! {
                            _ = self.watched.changed() => {}
                            () = time::sleep(pause) => {}
                        }
                    }
                }
            }
        }
    }

    /// Returns the notices that metamcp wants from this server.
    fn filter(&mut self) -> SubscriptionFilter {
        let uris = self.watched.borrow_and_update().iter().cloned().collect();
        let all =
            SubscriptionFilter { tools: true, prompts: true, resources: true, uris: Vec::new() };
        let lists = match self.connection.profile() {
            Some(profile) if self.wants_lists => {
                all.supported_by(profile.result.get("capabilities").unwrap_or(&Value::Null))
            }
            Some(_) | None => SubscriptionFilter::default(),
        };
        let filter = SubscriptionFilter { uris, ..lists };
        if filter == SubscriptionFilter::default() {
            self.report(&filter, |_| None);
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
                        log_lost(connection, &why);
                        self.open = None;
                        self.state.lost();
                        opening.await
                    }
                },
            }
        };
        let server = &connection.server;
        match opened {
            Ok(opened) => {
                tracing::debug!(
                    mcp_server = %server,
                    "server `{server}` has accepted a subscription"
                );
                self.report(&filter, |uri| {
                    let is_honoured = opened.honoured.uris.iter().any(|found| found == uri);
                    (!is_honoured).then(|| not_watched(uri))
                });
                let until = Instant::now() + defaults::LISTEN_OVERLAP;
                // On a pipe, everything before the acknowledgement has been read.
                let last = self.open.replace(opened).filter(|_| connection.is_stateless());
                self.last = last.map(|last| (last, until));
                self.has_worked = true;
                if self.state.opened(filter) {
                    connection.reread_lists();
                }
                None
            }
            Err(SubscribeFailure::Refused(error)) => {
                let quoted = connection.quote(&error);
                tracing::debug!(
                    mcp_server = %server, error = quoted,
                    "server `{server}` has refused a subscription: {quoted}"
                );
                self.report(&filter, |_| Some(error.clone()));
                self.state.refused(filter);
                None
            }
            Err(SubscribeFailure::Lost(why)) => {
                tracing::debug!(
                    mcp_server = %server, reason = %why,
                    "server `{server}` has not accepted a subscription: {why}"
                );
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
            self.report(&filter, |_| Some(error.clone()));
            self.state.refused(filter);
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
                log_lost(connection, &why);
                self.open = None;
                self.state.lost();
                if since.elapsed() >= defaults::STREAM_STABLE_AFTER {
                    self.attempts = ReopenAttempts::new();
                }
                // A changed demand is requested at once.
                let _either = time::timeout(self.attempts.pause(None), self.watched.changed()).await;
            }
        }
    }

    /// Reports the outcome for the resources in `filter` to the waiting callers.
    fn report(&self, filter: &SubscriptionFilter, refusal: impl Fn(&str) -> Option<String>) {
        let refused = filter.uris.iter().filter_map(|uri| Some((uri.clone(), refusal(uri)?)));
        self.connection.notices.outcome.send_replace(WatchOutcome {
            watched: Some(filter.uris.iter().cloned().collect()),
            refused: refused.collect(),
        });
    }
}

/// Subscribes to the notices in `filter`, and waits until the server says which ones it sends.
async fn open(
    connection: &Arc<Connection>,
    filter: &SubscriptionFilter,
) -> Result<AcknowledgedSubscription, SubscribeFailure> {
    let lost = |failure: RequestFailure| SubscribeFailure::Lost(failure.to_string().into());
    let opening = async {
        let (request, limits) = (listen(filter), ConnectionLimits::of_total(UNLIMITED));
        let starting =
            connection.start(Holder::SERVICE, &request, RequestOrigin::Probe, limits, None);
        let mut call = starting.await.map_err(lost)?;
        loop {
            match call.next().await.map_err(lost)? {
                CallEvent::Message(message)
                    if message.message().method() == Some(method::SUBSCRIPTIONS_ACKNOWLEDGED) =>
                {
                    let honoured = SubscriptionFilter::read(message.message()).unwrap_or_default();
                    return Ok(AcknowledgedSubscription { call, honoured });
                }
                CallEvent::Message(_) | CallEvent::Deferred | CallEvent::RetryAfter(_) => {}
                CallEvent::Answer(answer) => {
                    return Err(match answer.part(MessagePart::Error) {
                        Some(error) => SubscribeFailure::Refused(error.to_owned()),
                        None => SubscribeFailure::Lost("the server ended it at once".into()),
                    });
                }
            }
        }
    };
    let not_acknowledged = |_| SubscribeFailure::Lost("the server did not acknowledge it".into());
    time::timeout(defaults::RECONCILE_TIMEOUT, opening).await.map_err(not_acknowledged)?
}

fn log_lost(connection: &Connection, why: &str) {
    let server = &connection.server;
    tracing::debug!(
        mcp_server = %server, reason = %why,
        "the subscription at server `{server}` has ended: {why}"
    );
}

/// Returns the error object for a resource that the server does not watch.
fn not_watched(uri: &str) -> String {
    let why = format!("the server does not report changes of `{uri}`");
    error(INVALID_PARAMS, "NOT_WATCHED", &why)
}

/// Returns an error object as JSON text.
fn error(code: i64, name: &str, message: &str) -> String {
    json!({ "code": code, "message": message, "data": { "code": name } }).to_string()
}

impl AcknowledgedSubscription {
    /// Passes on the server's notices until the subscription ends, and returns why it did.
    async fn read(&mut self, connection: &Arc<Connection>) -> Arc<str> {
        loop {
            match self.call.next().await {
                Ok(CallEvent::Message(SideMessage::Notification(notice))) => {
                    let notice = server_subscription::untagged(&notice);
                    connection.announce(SideMessage::Notification(notice));
                }
                Ok(
                    CallEvent::Message(SideMessage::Question(_))
                    | CallEvent::Deferred
                    | CallEvent::RetryAfter(_),
                ) => {}
                Ok(CallEvent::Answer(_)) => return "the server has ended it".into(),
                Err(failure) => return failure.to_string().into(),
            }
        }
    }
}

/// A time for which a subscription may be silent: longer than any connection, and short enough to be
/// added to an `Instant`.
const UNLIMITED: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
