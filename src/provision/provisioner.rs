//! The addition of declared servers on request.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::{task::spawn_blocking, time::timeout};

use super::{
    CallableTool, MatchSource, ProvisionReply, RequestedTask, ServerMatch,
    added_servers::AddedServers,
    candidates::{Candidate, ProvisionOffer},
    registry::{RegistryClient, RegistryResults},
};
use crate::{
    call::CallError,
    catalog::{Catalog, CatalogSnapshot, Listing},
    config::{Config, ServerConfigs, defaults},
    connection::ConnectionLimits,
    error_report::chain,
    pool::{Pool, ServerSlot},
    protocol::list_page::ListItem,
    reconfigure::{ConfigChange, Reconfigure, ServerDiff},
    redact::sanitize,
    server_name::ServerName,
    session::SessionRegistry,
};

#[cfg(test)]
mod tests;

/// The provisioner, which adds declared servers when a client asks for what they do.
#[derive(Debug)]
pub struct Provisioner {
    pool: Arc<Pool>,
    sessions: Arc<SessionRegistry>,
    catalog: Arc<Catalog>,
    /// Changes only while [`Pool::lock_servers`] is held.
    added: ArcSwap<AddedServers>,
    offer: ArcSwap<ProvisionOffer>,
    registry: ArcSwapOption<RegistryClient>,
}

/// A provisioning request.
#[derive(Clone, Copy, Debug)]
pub struct ProvisionRequest<'a> {
    /// The task, in words.
    pub intent: &'a str,
    /// More words about the task.
    pub context: Option<&'a str>,
    /// Start the best match if that is allowed.
    pub auto: bool,
    /// The time limits of requests.
    pub limits: ConnectionLimits,
}

impl Provisioner {
    /// Returns a provisioner for `config`, with no server added.
    pub fn new(
        pool: Arc<Pool>,
        sessions: Arc<SessionRegistry>,
        catalog: Arc<Catalog>,
        config: &Arc<Config>,
    ) -> Self {
        let added = ArcSwap::from_pointee(AddedServers::new(Arc::clone(config)));
        let offer = ArcSwap::from_pointee(ProvisionOffer::new(config));
        let registry = ArcSwapOption::from(registry_of(config, None));
        Self { pool, sessions, catalog, added, offer, registry }
    }

    /// Returns the servers in force under `config`: the declared and the added ones. An added server
    /// stays while it is declared under `[provision.servers]`.
    pub fn servers_under(&self, config: &Arc<Config>) -> ServerConfigs {
        self.added.load().under(config).in_force()
    }

    /// Searches the known tools, the servers that may be added, and the declared registry.
    /// With [`ProvisionRequest::auto`], adds the best server if its namespace is trusted and its
    /// confidence is high enough. Cancel safe: an added server stays, and clients are notified.
    pub async fn provision(&self, request: ProvisionRequest<'_>) -> ProvisionReply {
        let offer = self.offer.load_full();
        let wanted = RequestedTask::new(request.intent, request.context);
        if wanted.is_empty() {
            return ProvisionReply::nothing("Say in `intent` what the tool is to do, in words.");
        }
        let answer = self.search_local(&offer, &wanted, request).await;
        match self.registry.load_full() {
            Some(registry) if !answer.is_sufficient() => {
                let RegistryResults { entries, failure } = registry.find(&wanted.words).await;
                // The registry may return a thousand entries.
                let listing = spawn_blocking(move || offer.listed(&wanted, &entries));
                match listing.await {
                    Ok(listed) => answer.with_listed(listed, failure),
                    Err(error) => answer.with_listed(Vec::new(), Some(error.to_string())),
                }
            }
            Some(_) | None => answer,
        }
    }

    /// Searches the known tools and the declared servers.
    async fn search_local(
        &self,
        offer: &ProvisionOffer,
        wanted: &RequestedTask,
        request: ProvisionRequest<'_>,
    ) -> ProvisionReply {
        let limits = request.limits;
        let tools = self.local_tools(offer, wanted, limits).await;
        offer.remember(&self.catalog).await;
        let mut candidates = offer.candidates(wanted);
        let best_tool = tools.first().map_or(0.0, |tool| tool.confidence);
        let best_server = candidates.first().map_or(0.0, |found| found.fit.confidence);
        // On a tie, known tools go first: they need no decision.
        if !tools.is_empty() && best_tool >= best_server {
            return ProvisionReply { tools, ..ProvisionReply::from(MatchSource::Local, CALL) };
        }
        if candidates.is_empty() {
            return ProvisionReply::nothing(match offer.is_enabled() {
                true => {
                    "No known tool and no declared server matches: describe the task in other words."
                }
                false => {
                    "No known tool matches, and no server can be added: the operator can declare servers under `[provision.servers]`."
                }
            });
        }
        let best = candidates.remove(0);
        if let Some(slot) = self.pool.slot(best.name.as_str()) {
            // It was added before: return its tools.
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
            (_, false) => "No server was started: `reason` of the first match says why.",
            (true, true) => "The best match is no longer declared: ask again.",
        };
        let declared = std::iter::once(best).chain(candidates).map(|found| found.suggested());
        let matches = declared.map(ServerMatch::Declared).collect();
        ProvisionReply { tools, matches, ..ProvisionReply::from(MatchSource::Catalog, message) }
    }

    /// Returns the known tools that match well enough, best first.
    async fn local_tools(
        &self,
        offer: &ProvisionOffer,
        wanted: &RequestedTask,
        limits: ConnectionLimits,
    ) -> Vec<CallableTool> {
        // Servers that fail are left out here; other requests report them.
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

    /// Adds a server, unless it was added meanwhile. Returns `None` if it is no longer declared.
    fn add(&self, name: &ServerName) -> Option<Arc<ServerSlot>> {
        {
            let _one_at_a_time = self.pool.lock_servers();
            if let Some(added) = self.added.load().with(name) {
                let (config, servers) = (&added.config, added.in_force());
                let diff = self.pool.compare(&servers);
                self.pool.apply(&servers, &diff, config, config.service.max_total_timeout);
                self.added.store(Arc::new(added));
                tracing::info!(mcp_server = %name, "server `{name}` added on a client's request");
            }
        }
        let slot = self.pool.slot(name.as_str())?;
        self.sessions.reconcile_redeclared();
        Some(slot)
    }

    /// Returns the tools of a server that is in the pool; `is_new` if this request added it.
    async fn opened(
        &self,
        offer: &ProvisionOffer,
        wanted: &RequestedTask,
        found: &Candidate,
        slot: &Arc<ServerSlot>,
        limits: ConnectionLimits,
        is_new: bool,
    ) -> ProvisionReply {
        let notice = is_new.then(|| AddedNotice { catalog: &self.catalog, server: &found.name });
        let read = match timeout(limits.silence, self.tools_of(slot, limits)).await {
            Ok(Ok(listing)) => Ok(listing),
            Ok(Err(error)) => Err(chain(&*error)),
            Err(_) => Err("it did not start in time: ask again later".to_owned()),
        };
        // Clients of the merged view can list it now.
        drop(notice);
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
                    0 => "The server is connected, and has no tools.".to_owned(),
                    n if n > tools.len() => format!("{CALL} These are {} of {n}.", tools.len()),
                    _ => CALL.to_owned(),
                };
                ProvisionReply { tools, matches, server, ..ProvisionReply::from(source, message) }
            }
            Err(reason) => {
                // The reason may quote the server.
                let reason = sanitize(&reason);
                let name = &found.name;
                tracing::warn!(mcp_server = %name, %reason, "no tools from server `{name}`: {reason}");
                let message = format!("The server `{name}` cannot be used now: {reason}");
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

    /// Returns the known tools of a server, or reads them.
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
}

impl Reconfigure for Provisioner {
    /// The caller holds [`Pool::lock_servers`] until the pool has applied the change, too.
    fn reconfigure(&self, change: &ConfigChange) {
        let config = &change.new;
        self.offer.store(Arc::new(ProvisionOffer::new(config)));
        self.registry.store(registry_of(config, self.registry.load_full()));
        self.added.store(Arc::new(self.added.load().under(config)));
    }
}

/// Notifies other clients of an added server when dropped, even if the caller did not wait for its
/// start.
struct AddedNotice<'a> {
    catalog: &'a Catalog,
    server: &'a ServerName,
}

impl Drop for AddedNotice<'_> {
    fn drop(&mut self) {
        let added = vec![self.server.clone()];
        self.catalog.replaced(&ServerDiff { added, ..ServerDiff::default() });
    }
}

/// Returns the declared registry; reuses `known` with its cache if the declaration is the same.
fn registry_of(config: &Config, known: Option<Arc<RegistryClient>>) -> Option<Arc<RegistryClient>> {
    let rules = &config.provision;
    let declared = rules.registry.as_ref().filter(|_| rules.is_enabled)?;
    let proxy = &config.service.proxy;
    let known = known.filter(|registry| registry.is_declared_as(declared, proxy));
    Some(known.unwrap_or_else(|| Arc::new(RegistryClient::new(declared, proxy))))
}

/// The instruction for tools that can be called.
const CALL: &str = "Call these with `mcp_call`; `mcp_discover` describes their arguments.";

/// Returns the tools of a server, best matches first.
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
