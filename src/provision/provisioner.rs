//! Adds servers when somebody asks for what they do.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::{task::spawn_blocking, time::timeout};

use super::{
    CallableTool, MatchSource, ProvisionReply, ProvisionRequest, RequestedTask, ServerMatch,
    added_servers::{AddedServers, ServerSetChange},
    candidates::{Candidate, ProvisionOffer},
    registry::{RegistryClient, RegistryResults},
};
use crate::{
    call::CallError,
    catalog::{Catalog, CatalogSnapshot, Listing},
    config::{Config, defaults, diff::ServerDiff},
    connection::ConnectionLimits,
    error_report::chain,
    name::ServerName,
    pool::{Pool, ServerSlot},
    protocol::list_page::ListItem,
    redact::sanitize,
    session::SessionRegistry,
};

#[cfg(test)]
mod tests;

/// Adds servers that are declared to wait until somebody asks for what they do.
#[derive(Debug)]
pub struct Provisioner {
    pool: Arc<Pool>,
    sessions: Arc<SessionRegistry>,
    catalog: Arc<Catalog>,
    /// Serialises changes of what is in force.
    added: Mutex<AddedServers>,
    offer: ArcSwap<ProvisionOffer>,
    registry: ArcSwapOption<RegistryClient>,
}

impl Provisioner {
    /// Returns one to which `config` applies, with nothing added.
    pub fn new(
        pool: Arc<Pool>,
        sessions: Arc<SessionRegistry>,
        catalog: Arc<Catalog>,
        config: &Arc<Config>,
    ) -> Self {
        let added = Mutex::new(AddedServers::new(Arc::clone(config)));
        let offer = ArcSwap::from_pointee(ProvisionOffer::new(config));
        let registry = ArcSwapOption::from(registry_of(config, None));
        Self { pool, sessions, catalog, added, offer, registry }
    }

    /// Applies another configuration to the pool, and returns what has changed. What was added stays
    /// as long as it is declared to be there on request.
    pub fn reload(&self, config: &Arc<Config>, patience: Duration) -> ServerDiff {
        self.offer.store(Arc::new(ProvisionOffer::new(config)));
        self.registry.store(registry_of(config, self.registry.load_full()));
        let mut added = self.added();
        let ServerSetChange { config, diff } = added.replace(Arc::clone(config));
        // With the lock, so that nothing is added meanwhile that the pool then takes for declared.
        self.pool.apply(&diff, &config, patience);
        diff
    }

    /// Finds what somebody asks for: among the tools that are there, the servers that may be added,
    /// and a registry if there is one. With [`ProvisionRequest::auto`], the server that fits best is added if
    /// its namespace is trusted and it is sure to be meant.
    ///
    /// # Cancel safety
    ///
    /// Safe: a server that was added stays, and clients hear of it.
    pub async fn provision(&self, request: ProvisionRequest<'_>) -> ProvisionReply {
        let offer = self.offer.load_full();
        let wanted = RequestedTask::new(request.intent, request.context);
        if wanted.is_empty() {
            return ProvisionReply::nothing("Say in `intent` what the tool is to do, in words.");
        }
        let answer = self.at_hand(&offer, &wanted, request).await;
        match self.registry.load_full() {
            Some(registry) if !answer.is_sufficient() => {
                let RegistryResults { entries, failure } = registry.find(wanted.words()).await;
                // There may be a thousand of them.
                let listing = spawn_blocking(move || offer.listed(&wanted, &entries));
                match listing.await {
                    Ok(listed) => answer.with_listed(listed, failure),
                    Err(error) => answer.with_listed(Vec::new(), Some(error.to_string())),
                }
            }
            Some(_) | None => answer,
        }
    }

    /// Finds what is there, or declared.
    async fn at_hand(
        &self,
        offer: &ProvisionOffer,
        wanted: &RequestedTask,
        request: ProvisionRequest<'_>,
    ) -> ProvisionReply {
        let limits = request.limits;
        let tools = self.local_tools(offer, wanted, limits).await;
        offer.remember(&self.catalog).await;
        let mut candidates = offer.candidates(wanted);
        let surest_tool = tools.first().map_or(0.0, |tool| tool.confidence);
        let surest_server = candidates.first().map_or(0.0, |found| found.fit.confidence);
        // What is there needs no decision: it goes first where both are as sure.
        if !tools.is_empty() && surest_tool >= surest_server {
            return ProvisionReply { tools, ..ProvisionReply::from(MatchSource::Local, CALL) };
        }
        if candidates.is_empty() {
            return ProvisionReply::nothing(match offer.is_enabled() {
                true => "Nothing that is there or declared fits: say it in other words.",
                false => {
                    "Nothing that is there fits, and no server can be added: the operator can declare some under `[provision.servers]`."
                }
            });
        }
        let best = candidates.remove(0);
        if let Some(slot) = self.pool.slot(best.name.as_str()) {
            // It was added before: that is where the intent leads.
            return self.opened(offer, wanted, &best, &slot, limits, false).await;
        }
        if request.auto
            && best.verdict.is_allowed()
            && let Some(slot) = self.add(&best.name)
        {
            return self.opened(offer, wanted, &best, &slot, limits, true).await;
        }
        let message = match (request.auto, best.verdict.is_allowed()) {
            (false, true) => "Ask again with `autoProvision` to start the first of these.",
            (_, false) => "None was started: `reason` says what the first of these lacks.",
            (true, true) => "It is not declared any more: ask again.",
        };
        let declared = std::iter::once(best).chain(candidates).map(|found| found.suggested());
        let matches = declared.map(ServerMatch::Declared).collect();
        ProvisionReply { tools, matches, ..ProvisionReply::from(MatchSource::Catalog, message) }
    }

    /// Returns the tools that are there and worth a mention, the surest first.
    async fn local_tools(
        &self,
        offer: &ProvisionOffer,
        wanted: &RequestedTask,
        limits: ConnectionLimits,
    ) -> Vec<CallableTool> {
        // Servers that fail are left out: somebody else can tell of them.
        let _unavailable = self.catalog.learn(limits, None).await;
        let snapshot = self.catalog.snapshot().await;
        offer
            .tools(wanted, &snapshot, None)
            .into_iter()
            .filter(|(_, fit)| fit.is_relevant())
            .filter_map(|(place, fit)| Some((snapshot.at(place)?, fit)))
            .filter(|((server, _), _)| self.pool.slot(server.name.as_str()).is_some())
            .take(defaults::MATCHES_MAX)
            .map(|((server, tool), fit)| CallableTool::new(&server.name, tool, fit.confidence))
            .collect()
    }

    /// Adds a server, unless it was added meanwhile. `None` if it is not declared any more.
    fn add(&self, name: &ServerName) -> Option<Arc<ServerSlot>> {
        {
            let mut added = self.added();
            if let Some(ServerSetChange { config, diff }) = added.add(name) {
                let patience = config.service.max_total_timeout;
                self.pool.apply(&diff, &config, patience);
                tracing::info!(mcp_server = %name, "server added on request");
            }
        }
        let slot = self.pool.slot(name.as_str())?;
        self.sessions.reconcile_redeclared();
        Some(slot)
    }

    /// Returns what a server offers that is there now, be it `new` or from an earlier request.
    async fn opened(
        &self,
        offer: &ProvisionOffer,
        wanted: &RequestedTask,
        found: &Candidate,
        slot: &Arc<ServerSlot>,
        limits: ConnectionLimits,
        is_new: bool,
    ) -> ProvisionReply {
        let news = is_new.then(|| News { catalog: &self.catalog, server: &found.name });
        let read = match timeout(limits.silence, self.tools_of(slot, limits)).await {
            Ok(Ok(listing)) => Ok(listing),
            Ok(Err(error)) => Err(chain(&*error)),
            Err(_) => Err("it did not start in time, and may be there later".to_owned()),
        };
        // Clients of the merged view list it now that it can be listed.
        drop(news);
        let server = Some(found.name.clone());
        match read {
            Ok(listing) => {
                let snapshot = self.catalog.snapshot().await;
                let tools = ranked(offer, wanted, &found.name, &listing, &snapshot);
                let (source, matches) = if is_new {
                    (MatchSource::Catalog, vec![ServerMatch::Declared(found.started())])
                } else {
                    (MatchSource::Local, Vec::new())
                };
                let message = match listing.len() {
                    0 => "The server is there, and has no tools.".to_owned(),
                    n if n > tools.len() => format!("{CALL} These are {} of {n}.", tools.len()),
                    _ => CALL.to_owned(),
                };
                ProvisionReply { tools, matches, server, ..ProvisionReply::from(source, message) }
            }
            Err(reason) => {
                // Much of it is in the words of the server.
                let reason = sanitize(&reason);
                tracing::warn!(mcp_server = %found.name, %reason, "added server has no tools");
                let message = format!("The server `{}` is of no use now: {reason}", found.name);
                let mut failed = found.suggested();
                failed.reason = format!("{}; {reason}", found.reason());
                let matches = vec![ServerMatch::Declared(failed)];
                ProvisionReply {
                    matches,
                    server,
                    ..ProvisionReply::from(MatchSource::Catalog, message)
                }
            }
        }
    }

    /// Returns the tools of a server: as they are known, or else as it says.
    async fn tools_of(
        &self,
        slot: &Arc<ServerSlot>,
        limits: ConnectionLimits,
    ) -> Result<Listing, Arc<CallError>> {
        let snapshot = self.catalog.snapshot().await;
        match snapshot.server(slot.name().as_str()) {
            Some(known) => Ok(Arc::clone(&known.tools)),
            None => self.catalog.refresh(slot, limits).await,
        }
    }

    fn added(&self) -> MutexGuard<'_, AddedServers> {
        // Held for a change of the pool, which waits for nothing.
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// That a server was added, which others are told when this is dropped: also where the one who has
/// asked for it does not wait until it has started.
struct News<'a> {
    catalog: &'a Catalog,
    server: &'a ServerName,
}

impl Drop for News<'_> {
    fn drop(&mut self) {
        let added = vec![self.server.clone()];
        self.catalog.replaced(&ServerDiff { added, ..ServerDiff::default() });
    }
}

/// Returns the registry that is declared: the one that there is, with what it has answered, if it is
/// the same.
fn registry_of(config: &Config, known: Option<Arc<RegistryClient>>) -> Option<Arc<RegistryClient>> {
    let rules = &config.provision;
    let declared = rules.registry.as_ref().filter(|_| rules.is_enabled)?;
    let known = known.filter(|registry| registry.is_declared_as(declared));
    Some(known.unwrap_or_else(|| Arc::new(RegistryClient::new(declared))))
}

/// What to do with tools that are there.
const CALL: &str = "Call these with `mcp_call`; `mcp_discover` describes their arguments.";

/// Returns the tools of a server, those first that fit best.
fn ranked(
    offer: &ProvisionOffer,
    wanted: &RequestedTask,
    server: &ServerName,
    listing: &Listing,
    snapshot: &CatalogSnapshot,
) -> Vec<CallableTool> {
    let only = snapshot.position(server.as_str());
    let fits = only.map(|_| offer.tools(wanted, snapshot, only)).unwrap_or_default();
    let fits: Vec<(&ListItem, f64)> = fits
        .iter()
        .filter_map(|(place, fit)| Some((snapshot.at(*place)?.1, fit.confidence)))
        .collect();
    let others = listing.iter().filter(|tool| !fits.iter().any(|(fit, _)| fit.key == tool.key));
    let all = fits.iter().copied().chain(others.map(|tool| (tool, 0.0)));
    all.take(defaults::STARTED_TOOLS_MAX)
        .map(|(tool, confidence)| CallableTool::new(server, tool, confidence))
        .collect()
}
