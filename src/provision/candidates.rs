//! The servers that may be added, with their search index.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use tokio::{sync::OnceCell, task::spawn_blocking};

use super::{
    matching::{MatchScore, RequestedTask},
    registry::RegistryEntry,
    reply::{ExistingServer, ListedServer, display_text},
    trust::TrustVerdict,
};
use crate::{
    catalog::{Catalog, CatalogSnapshot, Listing},
    config::{Config, ProvisionConfig, Provisionable, defaults},
    protocol::list_page::ListItem,
    search::{AnalyzedServer, RankingStrategy, SearchIndex, SearchQuery, Thesaurus, ToolPosition},
    server_name::ServerName,
};

/// The servers that may be added, with their search index.
#[derive(Debug)]
pub(super) struct ProvisionOffer {
    rules: ProvisionConfig,
    /// The servers, in the order of the index.
    servers: Vec<(ServerName, Arc<Provisionable>)>,
    index: OnceLock<SearchIndex>,
    strategy: RankingStrategy,
    /// The declared groups of synonyms.
    synonyms: Vec<Vec<String>>,
    thesaurus: OnceLock<Arc<Thesaurus>>,
    /// The cached tools of the servers, read at the first request.
    remembered: OnceCell<RememberedTools>,
}

/// A server that may be added and matches the request.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) name: ServerName,
    pub(super) server: Arc<Provisionable>,
    pub(super) fit: MatchScore,
    /// The tool from an earlier run that gives the score, if it matches better than the
    /// declaration.
    pub(super) tool: Option<String>,
    pub(super) verdict: TrustVerdict,
}

impl ProvisionOffer {
    /// Returns the servers that `config` declares; none if provisioning is off.
    pub(super) fn new(config: &Config) -> Self {
        let rules = config.provision.clone();
        let servers: Vec<_> = match rules.is_enabled {
            true => rules.servers.clone().into_iter().collect(),
            false => Vec::new(),
        };
        Self {
            rules,
            servers,
            index: OnceLock::new(),
            strategy: config.search.strategy,
            synonyms: config.search.synonyms.clone(),
            thesaurus: OnceLock::new(),
            remembered: OnceCell::new(),
        }
    }

    fn thesaurus(&self) -> &Arc<Thesaurus> {
        self.thesaurus.get_or_init(|| match self.strategy {
            RankingStrategy::Hybrid => Thesaurus::with_synonyms(&self.synonyms),
            // Only the hybrid search uses synonyms.
            RankingStrategy::Keyword | RankingStrategy::Bm25 => Arc::default(),
        })
    }

    /// Returns the index of the declarations, built at the first request: most services get none.
    fn index(&self) -> &SearchIndex {
        self.index.get_or_init(|| {
            let analyzed = self.servers.iter().map(|(name, server)| analyzed(name, server));
            SearchIndex::new(&analyzed.collect::<Vec<_>>(), self.thesaurus())
        })
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.rules.is_enabled
    }

    /// Reads the cached tools of these servers, unless that was done. Cancel safe: the next caller
    /// repeats it.
    pub(super) async fn remember(&self, catalog: &Catalog) {
        let read = || async {
            let declared = self.servers.iter();
            let declared = declared.map(|(name, it)| (name.clone(), Arc::clone(&it.server)));
            let found = catalog.remembered(declared.collect()).await.into_iter();
            let servers = found.filter_map(|(at, tools)| {
                let (name, _) = self.servers.get(at)?;
                Some((at, name.clone(), tools))
            });
            let (servers, thesaurus) = (servers.collect(), Arc::clone(self.thesaurus()));
            let making = spawn_blocking(move || RememberedTools::new(servers, &thesaurus));
            making.await.unwrap_or_else(|error| {
                tracing::error!(%error, "cannot index the cached tools of servers that may be added: {error}");
                RememberedTools::new(Vec::new(), &Thesaurus::default())
            })
        };
        let _remembered = self.remembered.get_or_init(read).await;
    }

    /// Returns the servers that match well enough, best first: by their declaration, or by a tool
    /// that they had in an earlier run.
    pub(super) fn candidates(&self, wanted: &RequestedTask) -> Vec<Candidate> {
        let declared = wanted.among(self.index(), self.servers.len(), self.strategy);
        let mut by_tool = self.by_tool(wanted);
        let mut fits: Vec<(usize, MatchScore, Option<String>)> = declared
            .into_iter()
            .map(|(at, fit)| {
                let better = by_tool.remove(&at).filter(|(by_tool, _)| {
                    // On a tie, the operator's description counts.
                    by_tool.confidence > fit.confidence
                });
                better.map_or((at, fit, None), |(fit, tool)| (at, fit, Some(tool)))
            })
            .collect();
        fits.extend(by_tool.into_iter().map(|(at, (fit, tool))| (at, fit, Some(tool))));
        // The sort is stable: equal ones keep the order of the search.
        fits.sort_by(|(_, one, _), (_, other, _)| other.confidence.total_cmp(&one.confidence));
        fits.into_iter()
            .filter(|(_, fit, _)| fit.is_relevant())
            .take(defaults::MATCHES_MAX)
            .filter_map(|(at, fit, tool)| {
                let (name, server) = self.servers.get(at)?.clone();
                let verdict = TrustVerdict::of(&server, &self.rules, fit.confidence);
                Some(Candidate { name, server, fit, tool, verdict })
            })
            .collect()
    }

    /// Returns the best matching tool of each server that has any, by the server's position.
    fn by_tool(&self, wanted: &RequestedTask) -> BTreeMap<usize, (MatchScore, String)> {
        let Some(remembered) = self.remembered.get() else { return BTreeMap::new() };
        let found = remembered.found(&wanted.text, self.strategy);
        let texts = found.iter().map(|(_, name, tool)| (name.as_str(), tool.json()));
        let mut best = BTreeMap::new();
        for (nth, fit) in self.fits(wanted, texts) {
            if let Some((at, _, tool)) = found.get(nth) {
                best.entry(*at).or_insert_with(|| (fit, tool.key.clone()));
            }
        }
        best
    }

    /// Returns the matching tools of a snapshot, or of one of its servers, best first. The search
    /// ranks all tools; only its first results are scored, each by itself.
    pub(super) fn tools(
        &self,
        wanted: &RequestedTask,
        snapshot: &CatalogSnapshot,
        only: Option<usize>,
    ) -> Vec<(ToolPosition, MatchScore)> {
        let query = SearchQuery::new(&wanted.text, self.strategy, defaults::SHORTLIST_MAX);
        let hits = snapshot.search(&SearchQuery { server: only, ..query });
        let found: Vec<_> =
            hits.iter().filter_map(|hit| Some((hit.place, snapshot.at(hit.place)?))).collect();
        let texts = found.iter().map(|(_, (server, tool))| (server.name.as_str(), tool.json()));
        let fits = self.fits(wanted, texts).into_iter();
        fits.filter_map(|(at, fit)| Some((found.get(at)?.0, fit))).collect()
    }

    /// Returns the scores of the matching texts, best first, each with its position. A text is a
    /// name and a definition, written as that of a tool.
    fn fits<'a>(
        &self,
        wanted: &RequestedTask,
        texts: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Vec<(usize, MatchScore)> {
        let one =
            |(name, json): (&str, &str)| Arc::new(AnalyzedServer::of(name, "", [json].into_iter()));
        let analyzed: Vec<_> = texts.map(one).collect();
        let index = SearchIndex::new(&analyzed, self.thesaurus());
        wanted.among(&index, analyzed.len(), self.strategy)
    }

    /// Returns the entries of a registry that match well enough, best first.
    pub(super) fn listed(
        &self,
        wanted: &RequestedTask,
        entries: &[RegistryEntry],
    ) -> Vec<ListedServer> {
        let definitions: Vec<_> = entries.iter().map(RegistryEntry::definition).collect();
        let texts = entries.iter().zip(&definitions);
        let fits = self.fits(wanted, texts.map(|(entry, json)| (&*entry.name, json.as_str())));
        fits.into_iter()
            .filter(|(_, fit)| fit.is_relevant())
            .take(defaults::MATCHES_MAX)
            .filter_map(|(at, fit)| {
                let entry = entries.get(at)?;
                Some(ListedServer {
                    name: entry.name.clone(),
                    description: display_text(&entry.description),
                    confidence: fit.confidence,
                    install: entry.install.clone(),
                })
            })
            .collect()
    }
}

impl Candidate {
    pub(super) fn suggested(&self) -> ExistingServer {
        ExistingServer {
            name: self.name.clone(),
            description: display_text(&self.server.description),
            confidence: self.fit.confidence,
            trusted: self.verdict.trust.is_ok(),
            started: false,
            reason: format!("{}; {}", self.reason(), self.verdict),
        }
    }

    /// Returns the candidate as a server that was started.
    pub(super) fn started(&self) -> ExistingServer {
        ExistingServer { started: true, reason: self.reason(), ..self.suggested() }
    }

    /// Returns the reason why it was found.
    pub(super) fn reason(&self) -> String {
        match &self.tool {
            Some(tool) => format!("{} by its tool `{}`", self.fit, display_text(tool)),
            None => self.fit.to_string(),
        }
    }
}

/// Analyzes a server as a tool with the server's name, keywords as title, and description.
fn analyzed(name: &ServerName, server: &Provisionable) -> Arc<AnalyzedServer> {
    let definition = serde_json::json!({
        "name": name.as_str(),
        "title": server.keywords.join(", "),
        "description": server.description,
    });
    Arc::new(AnalyzedServer::of(name.as_str(), "", [definition.to_string().as_str()].into_iter()))
}

/// The tools that servers had in an earlier run, with their search index. Each tool is scored by
/// itself: all tools of a large server together match any request.
#[derive(Debug)]
pub(super) struct RememberedTools {
    /// The position of each server among those that may be added, with its name and tools.
    servers: Vec<(usize, ServerName, Listing)>,
    index: SearchIndex,
}

impl RememberedTools {
    /// Returns the index of these tools; each server comes with its position.
    pub(super) fn new(servers: Vec<(usize, ServerName, Listing)>, thesaurus: &Thesaurus) -> Self {
        let analyzed: Vec<_> = servers
            .iter()
            .map(|(_, name, tools)| {
                Arc::new(AnalyzedServer::of(name.as_str(), "", tools.iter().map(ListItem::json)))
            })
            .collect();
        let index = SearchIndex::new(&analyzed, thesaurus);
        Self { servers, index }
    }

    /// Returns the first results of a search, each with the position of its server.
    pub(super) fn found(
        &self,
        text: &str,
        strategy: RankingStrategy,
    ) -> Vec<(usize, &ServerName, &ListItem)> {
        let hits = self.index.search(&SearchQuery::new(text, strategy, defaults::SHORTLIST_MAX));
        hits.iter()
            .filter_map(|hit| {
                let (at, name, tools) = self.servers.get(hit.place.server)?;
                Some((*at, name, tools.get(hit.place.tool)?))
            })
            .collect()
    }
}
