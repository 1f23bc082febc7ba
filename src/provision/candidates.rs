//! The servers that may be added, ready to be searched.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use tokio::{sync::OnceCell, task::spawn_blocking};

use super::{
    matching::{MatchScore, RequestedTask},
    registry::RegistryEntry,
    remembered_tools::RememberedTools,
    reply::{ExistingServer, ListedServer, display_text},
    trust::TrustVerdict,
};
use crate::{
    catalog::{Catalog, CatalogSnapshot},
    config::{Config, ProvisionConfig, Provisionable, defaults},
    name::ServerName,
    search::{AnalyzedServer, RankingStrategy, SearchIndex, SearchQuery, Thesaurus, ToolPosition},
};

/// The servers that may be added, ready to be searched.
#[derive(Debug)]
pub(super) struct ProvisionOffer {
    rules: ProvisionConfig,
    /// In the order of the index.
    servers: Vec<(ServerName, Arc<Provisionable>)>,
    index: OnceLock<SearchIndex>,
    strategy: RankingStrategy,
    /// Groups that are declared.
    synonyms: Vec<Vec<String>>,
    thesaurus: OnceLock<Arc<Thesaurus>>,
    /// What the disk has of them, read when somebody asks first.
    remembered: OnceCell<RememberedTools>,
}

/// A server that may be added and fits.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) name: ServerName,
    pub(super) server: Arc<Provisionable>,
    pub(super) fit: MatchScore,
    /// The tool that it had in an earlier run and that fits so well, where that is not how it is
    /// declared.
    pub(super) tool: Option<String>,
    pub(super) verdict: TrustVerdict,
}

impl ProvisionOffer {
    /// Returns what `config` declares: nothing where that is switched off.
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

    /// Returns the words that mean the same.
    fn thesaurus(&self) -> &Arc<Thesaurus> {
        self.thesaurus.get_or_init(|| match self.strategy {
            RankingStrategy::Hybrid => Thesaurus::with_synonyms(&self.synonyms),
            // Only a search by meaning looks at it.
            RankingStrategy::Keyword | RankingStrategy::Bm25 => Arc::default(),
        })
    }

    /// Returns how the servers are declared, made when somebody asks first: few ever do.
    fn index(&self) -> &SearchIndex {
        self.index.get_or_init(|| {
            let analyzed = self.servers.iter().map(|(name, server)| analyzed(name, server));
            SearchIndex::new(&analyzed.collect::<Vec<_>>(), self.thesaurus())
        })
    }

    /// Tells whether anything may be added, or suggested.
    pub(super) fn is_enabled(&self) -> bool {
        self.rules.is_enabled
    }

    /// Takes what the disk has of the tools of these servers, unless that was done.
    ///
    /// # Cancel safety
    ///
    /// Safe: whoever asks next does it.
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
                tracing::error!(%error, "cached lists of waiting servers not read");
                RememberedTools::new(Vec::new(), &Thesaurus::default())
            })
        };
        let _remembered = self.remembered.get_or_init(read).await;
    }

    /// Returns the servers that are worth a mention, the surest first: by how they are declared, or by
    /// a tool that they had in an earlier run.
    pub(super) fn candidates(&self, wanted: &RequestedTask) -> Vec<Candidate> {
        let declared = wanted.among(self.index(), self.servers.len(), self.strategy);
        let mut by_tool = self.by_tool(wanted);
        let mut fits: Vec<(usize, MatchScore, Option<String>)> = declared
            .into_iter()
            .map(|(at, fit)| {
                let better = by_tool.remove(&at).filter(|(by_tool, _)| {
                    // What the operator says of it counts where both are as sure.
                    by_tool.confidence > fit.confidence
                });
                better.map_or((at, fit, None), |(fit, tool)| (at, fit, Some(tool)))
            })
            .collect();
        fits.extend(by_tool.into_iter().map(|(at, (fit, tool))| (at, fit, Some(tool))));
        // Stable: of equal ones the search has said which comes first.
        fits.sort_by(|(_, one, _), (_, other, _)| other.confidence.total_cmp(&one.confidence));
        let worth = fits.into_iter().filter(|(_, fit, _)| fit.is_relevant());
        worth
            .take(defaults::MATCHES_MAX)
            .filter_map(|(at, fit, tool)| {
                let (name, server) = self.servers.get(at)?.clone();
                let verdict = TrustVerdict::of(&server, &self.rules, fit.confidence);
                Some(Candidate { name, server, fit, tool, verdict })
            })
            .collect()
    }

    /// Returns for each server with a tool that fits, by its position, the best one.
    fn by_tool(&self, wanted: &RequestedTask) -> BTreeMap<usize, (MatchScore, String)> {
        let Some(remembered) = self.remembered.get() else { return BTreeMap::new() };
        let found = remembered.found(wanted.text(), self.strategy);
        let texts = found.iter().map(|(_, name, tool)| (name.as_str(), tool.json()));
        let mut best = BTreeMap::new();
        for (nth, fit) in self.fits(wanted, texts) {
            if let Some((at, _, tool)) = found.get(nth) {
                best.entry(*at).or_insert_with(|| (fit, tool.key.clone()));
            }
        }
        best
    }

    /// Returns how well tools of a snapshot fit that fit at all, or those of one of its servers, by
    /// their place, the best first. All of them were analysed for the search; only those that it finds
    /// first are, once more, by themselves.
    pub(super) fn tools(
        &self,
        wanted: &RequestedTask,
        snapshot: &CatalogSnapshot,
        only: Option<usize>,
    ) -> Vec<(ToolPosition, MatchScore)> {
        let query = SearchQuery {
            text: wanted.text(),
            strategy: self.strategy,
            limit: defaults::SHORTLIST_MAX,
            server: only,
            ..SearchQuery::default()
        };
        let hits = snapshot.search(&query);
        let found: Vec<_> =
            hits.iter().filter_map(|hit| Some((hit.place, snapshot.at(hit.place)?))).collect();
        let texts = found.iter().map(|(_, (server, tool))| (server.name.as_str(), tool.json()));
        let fits = self.fits(wanted, texts).into_iter();
        fits.filter_map(|(at, fit)| Some((found.get(at)?.0, fit))).collect()
    }

    /// Returns how well each of some texts fits that fits at all, by its position, the best first.
    /// Each is a name and the definition of a tool, or of what is like one.
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

    /// Returns what of a registry's servers is worth a mention, the surest first.
    pub(super) fn listed(
        &self,
        wanted: &RequestedTask,
        entries: &[RegistryEntry],
    ) -> Vec<ListedServer> {
        let definitions: Vec<_> = entries.iter().map(RegistryEntry::definition).collect();
        let texts = entries.iter().zip(&definitions);
        let fits = self.fits(wanted, texts.map(|(entry, json)| (&*entry.name, json.as_str())));
        let worth = fits.into_iter().filter(|(_, fit)| fit.is_relevant());
        worth
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
    /// Returns it as one that was not started.
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

    /// Returns it as one that was.
    pub(super) fn started(&self) -> ExistingServer {
        ExistingServer { started: true, reason: self.reason(), ..self.suggested() }
    }

    /// Returns why it was found.
    pub(super) fn reason(&self) -> String {
        match &self.tool {
            Some(tool) => format!("{} by its tool `{}`", self.fit, display_text(tool)),
            None => self.fit.to_string(),
        }
    }
}

/// A server is found as a tool is that has its name, its keywords for a title, and its description.
fn analyzed(name: &ServerName, server: &Provisionable) -> Arc<AnalyzedServer> {
    let definition = serde_json::json!({
        "name": name.as_str(),
        "title": server.keywords.join(", "),
        "description": server.description,
    });
    Arc::new(AnalyzedServer::of(name.as_str(), "", [definition.to_string().as_str()].into_iter()))
}
