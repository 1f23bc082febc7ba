//! The way from a client's request to the exchange with its server.

use std::{sync::Arc, time::Duration};

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use hyper::{HeaderMap, header::HeaderName};

use super::request_outcome::{RequestOutcome, quoted};
use crate::{
    call::{CallContinuation, CallError, Exchange},
    call_record::CallRecorder,
    capacity_holder::Holder,
    compute_pool::{ComputeError, ComputePool, StopFlag},
    config::{Config, defaults},
    connection::{ConnectionLimits, ForwardedHeaders, SessionOwner},
    pool::{ClientDemand, OneShotClient, Pool, ServerSlot},
    protocol::{Message, jsonrpc::MessagePart, payloads::method},
    reconfigure::{ConfigChange, Reconfigure},
    server_name::ServerName,
    session::{ResumeOutcome, Session, SessionRegistry},
    similar_names::nearest,
};

/// The services that turn a client's request into an exchange with a server.
#[derive(Debug)]
pub struct Forwarder {
    pool: Arc<Pool>,
    sessions: Arc<SessionRegistry>,
    config: ArcSwap<Config>,
    /// The headers of clients that some server gets, if there are any.
    forward_headers: ArcSwapOption<Vec<HeaderName>>,
    /// The owner that lists are read for where each client has its own connection and this client
    /// has no identity.
    observer: SessionOwner,
    /// The pool for long computations.
    computer: ComputePool,
    calls: Arc<CallRecorder>,
}

impl Reconfigure for Forwarder {
    /// Applies another configuration to requests from now on.
    fn reconfigure(&self, change: &ConfigChange) {
        self.config.store(Arc::clone(&change.new));
        self.calls.configure(&change.new.telemetry);
        self.forward_headers.store(forward_headers(&change.new));
        let (old, new) = (&change.old.tools, &change.new.tools);
        if (&old.sets, old.always_load) != (&new.sets, new.always_load) {
            self.sessions.own_tools_changed();
        }
    }
}

impl Forwarder {
    /// Returns the services over `pool`.
    pub fn new(pool: Arc<Pool>, sessions: Arc<SessionRegistry>, config: Arc<Config>) -> Arc<Self> {
        let forward_headers = ArcSwapOption::new(forward_headers(&config));
        let (config, observer) = (ArcSwap::new(config), SessionOwner::observer());
        let (computer, calls) = (ComputePool::default(), Arc::<CallRecorder>::default());
        calls.configure(&config.load().telemetry);
        Arc::new(Self { pool, sessions, config, forward_headers, observer, computer, calls })
    }

    /// Returns the servers.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns the registry of client sessions.
    pub fn sessions(&self) -> &Arc<SessionRegistry> {
        &self.sessions
    }

    /// Returns the pool for long computations.
    pub fn computer(&self) -> &ComputePool {
        &self.computer
    }

    /// Returns the recorder of calls.
    pub fn calls(&self) -> &Arc<CallRecorder> {
        &self.calls
    }

    /// Returns the owner that lists are read for if the client has no identity.
    pub fn observer(&self) -> &SessionOwner {
        &self.observer
    }

    /// Returns the effective configuration.
    pub fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    /// Returns the effective configuration for a short use, which costs less.
    pub fn peek_config(&self) -> Guard<Arc<Config>> {
        self.config.load()
    }

    /// Returns the headers of a client's request that some server gets; `None` without any.
    pub fn forwarded(&self, headers: &HeaderMap) -> Option<Arc<ForwardedHeaders>> {
        let names = self.forward_headers.load();
        ForwardedHeaders::select(names.as_deref()?, headers)
    }

    /// Returns the limits of a request.
    pub fn limits(&self) -> ConnectionLimits {
        let config = self.config.load();
        ConnectionLimits {
            silence: config.service.request_timeout,
            total: config.service.max_total_timeout,
        }
    }

    /// Returns the limits of a request with this timeout, at most those of the service.
    pub fn limits_within(&self, timeout: Option<Duration>) -> ConnectionLimits {
        let limits = self.limits();
        timeout.map_or(limits, |timeout| ConnectionLimits::of_total(timeout.min(limits.total)))
    }

    /// Returns the slot of a server.
    ///
    /// # Errors
    ///
    /// [`CallError::UnknownServer`], with similar names, if the server is not declared, and
    /// [`CallError::DisabledServer`] if it is disabled.
    pub fn declared_slot(&self, name: &str) -> Result<Arc<ServerSlot>, CallError> {
        self.pool.slot(name).ok_or_else(|| {
            if self.is_disabled(name) {
                return CallError::DisabledServer { server: name.to_owned() };
            }
            let slots = self.pool.slots();
            let similar = nearest(name, slots.keys().map(ServerName::to_string));
            CallError::UnknownServer { server: quoted(name), similar }
        })
    }

    /// Returns whether the configuration disables a server.
    pub fn is_disabled(&self, name: &str) -> bool {
        self.config.load().disabled.contains_key(name)
    }

    /// Returns the owner that lists are read for. Where each client has its own connection, a modern
    /// client sees the lists of the common observer, since it has no identity.
    pub fn list_owner<'a>(&'a self, session: &'a Session) -> Option<&'a SessionOwner> {
        session.owner().or_else(|| session.is_modern().then_some(&self.observer))
    }

    /// Returns a one-shot client for a server with a connection per client, if this client has no
    /// identity. Its connection lasts until the request is answered. Cancel safe.
    pub async fn one_shot_client(
        &self,
        slot: &ServerSlot,
        session: &Session,
    ) -> Option<OneShotClient> {
        let client_meta = session.client_meta().filter(|_| slot.is_per_session())?;
        let one_shot = self.sessions.one_shot_client(&client_meta.capabilities);
        let demand = || ClientDemand { level: client_meta.level, ..ClientDemand::default() };
        // Boxed, to keep the future of other clients small.
        Box::pin(slot.set_demand(Some(one_shot.owner()), demand)).await;
        Some(one_shot)
    }

    /// Forwards a client's request to a server. Cancel safe: nothing was sent.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the request continues an exchange that is unknown or of another request.
    pub async fn forward(
        &self,
        slot: Arc<ServerSlot>,
        session: &Session,
        request: Message,
    ) -> Result<RequestOutcome, CallError> {
        self.forward_with(slot, session, request, self.limits(), None).await
    }

    /// Forwards like [`Forwarder::forward`], within these limits. `continuation` handles the
    /// outcome.
    ///
    /// # Errors
    ///
    /// As for [`Forwarder::forward`].
    pub async fn forward_with(
        &self,
        slot: Arc<ServerSlot>,
        session: &Session,
        request: Message,
        limits: ConnectionLimits,
        continuation: Option<Box<dyn CallContinuation>>,
    ) -> Result<RequestOutcome, CallError> {
        if request.part(MessagePart::RequestState).is_some() {
            // Boxed, to keep the future of a new request small.
            match Box::pin(self.sessions.resume(slot.name(), &request)).await? {
                ResumeOutcome::Foreign => {}
                ResumeOutcome::Exchange(exchange) => return Ok(RequestOutcome::Exchange(exchange)),
                ResumeOutcome::Asked(result) => {
                    return Ok(RequestOutcome::answer_text(&request, &result));
                }
            }
        }
        let one_shot = self.one_shot_client(&slot, session).await;
        let mut exchange = client_exchange(session, one_shot, slot, request, limits);
        if let Some(continuation) = continuation {
            exchange = exchange.with_continuation(continuation, self.computer.clone());
        }
        Ok(RequestOutcome::Exchange(Box::new(exchange)))
    }

    /// Does work on so many bytes: at once if they are few, else in the compute pool. Cancel safe:
    /// the work does not begin, or its result is lost.
    ///
    /// # Errors
    ///
    /// [`ComputeError`] if the work was not done.
    pub async fn compute<T: Send + 'static>(
        &self,
        holder: Holder,
        bytes: usize,
        work: impl FnOnce(&StopFlag) -> T + Send + 'static,
    ) -> Result<T, ComputeError> {
        if bytes <= defaults::INLINE_BYTES_MAX {
            return Ok(work(&StopFlag::default()));
        }
        self.computer.clone().run(holder, work).await
    }
}

fn forward_headers(config: &Config) -> Option<Arc<Vec<HeaderName>>> {
    let names = config.forward_headers();
    (!names.is_empty()).then(|| Arc::new(names))
}

/// Returns the exchange of a client's request with a server. A one-shot client has its own
/// connection, which ends with the request.
pub fn client_exchange(
    session: &Session,
    one_shot: Option<OneShotClient>,
    slot: Arc<ServerSlot>,
    request: Message,
    limits: ConnectionLimits,
) -> Exchange {
    // A call, or the read of a resource or prompt; a list comes from the catalog.
    if request.method().is_some_and(|method| method::MAY_NEED_INPUT.contains(&method)) {
        session.note_use(slot.name());
    }
    let owner = one_shot.as_ref().map(OneShotClient::owner).or(session.owner());
    Exchange::new(slot, owner, session.client(), session.holder(), request, limits)
        .with_one_shot(one_shot)
}

/// Returns whether all clients share one connection to the server.
pub fn is_shared(slot: &ServerSlot) -> bool {
    slot.has_fixed_connection() && !slot.is_per_session()
}
