//! The servers that may be added, ready to be searched. Pure.

use std::sync::Arc;

use super::{
    answer::{DeclaredServer, ListedServer, shown},
    matching::{Fit, Wanted},
    registry::Entry,
    trust::Verdict,
};
use crate::{
    catalog::Snapshot,
    config::{Config, Provision, Provisionable, defaults},
    name::ServerName,
    search::{Analyzed, Index, Place, Query, Strategy, Thesaurus},
};

/// The servers that may be added, ready to be searched.
#[derive(Debug)]
pub(super) struct Offer {
    rules: Provision,
    /// In the order of the index.
    servers: Vec<(ServerName, Arc<Provisionable>)>,
    index: Index,
    strategy: Strategy,
    thesaurus: Thesaurus,
}

/// A server that may be added and fits.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) name: ServerName,
    pub(super) server: Arc<Provisionable>,
    pub(super) fit: Fit,
    pub(super) verdict: Verdict,
}

impl Offer {
    /// Returns what `config` declares: nothing where that is switched off.
    pub(super) fn new(config: &Config) -> Self {
        let rules = config.provision.clone();
        let servers: Vec<_> = match rules.is_enabled {
            true => rules.servers.clone().into_iter().collect(),
            false => Vec::new(),
        };
        let thesaurus = Thesaurus::with_synonyms(&config.search.synonyms);
        let analyzed: Vec<_> =
            servers.iter().map(|(name, server)| analyzed(name, server)).collect();
        let index = Index::new(&analyzed, &thesaurus);
        Self { rules, servers, index, strategy: config.search.strategy, thesaurus }
    }

    /// Tells whether anything may be added, or suggested.
    pub(super) fn is_enabled(&self) -> bool {
        self.rules.is_enabled
    }

    /// Returns the servers that are worth a mention, the surest first.
    pub(super) fn candidates(&self, wanted: &Wanted) -> Vec<Candidate> {
        let fits = wanted.among(&self.index, self.servers.len(), self.strategy);
        let worth = fits.into_iter().filter(|(_, fit)| fit.is_worth_it());
        worth
            .take(defaults::MATCHES_MAX)
            .filter_map(|(at, fit)| {
                let (name, server) = self.servers.get(at)?.clone();
                let verdict = Verdict::of(&server, &self.rules, fit.confidence);
                Some(Candidate { name, server, fit, verdict })
            })
            .collect()
    }

    /// Returns how well tools of a snapshot fit that fit at all, or those of one of its servers, by
    /// their place, the best first. All of them were analysed for the search; only those that it finds
    /// first are, once more, by themselves.
    pub(super) fn tools(
        &self,
        wanted: &Wanted,
        snapshot: &Snapshot,
        only: Option<usize>,
    ) -> Vec<(Place, Fit)> {
        let query = Query {
            text: wanted.text(),
            strategy: self.strategy,
            limit: defaults::SHORTLIST_MAX,
            server: only,
            ..Query::default()
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
        wanted: &Wanted,
        texts: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Vec<(usize, Fit)> {
        let one = |(name, json): (&str, &str)| Arc::new(Analyzed::of(name, "", [json].into_iter()));
        let analyzed: Vec<_> = texts.map(one).collect();
        let index = Index::new(&analyzed, &self.thesaurus);
        wanted.among(&index, analyzed.len(), self.strategy)
    }

    /// Returns what of a registry's servers is worth a mention, the surest first.
    pub(super) fn listed(&self, wanted: &Wanted, entries: &[Entry]) -> Vec<ListedServer> {
        let definitions: Vec<_> = entries.iter().map(Entry::definition).collect();
        let texts = entries.iter().zip(&definitions);
        let fits = self.fits(wanted, texts.map(|(entry, json)| (&*entry.name, json.as_str())));
        let worth = fits.into_iter().filter(|(_, fit)| fit.is_worth_it());
        worth
            .take(defaults::MATCHES_MAX)
            .filter_map(|(at, fit)| {
                let entry = entries.get(at)?;
                Some(ListedServer {
                    name: entry.name.clone(),
                    description: shown(&entry.description),
                    confidence: fit.confidence,
                    install: entry.install.clone(),
                })
            })
            .collect()
    }
}

impl Candidate {
    /// Returns it as one that was not started.
    pub(super) fn suggested(&self) -> DeclaredServer {
        DeclaredServer::new(&self.name, &self.server, &self.fit, &self.verdict)
    }

    /// Returns it as one that was.
    pub(super) fn started(&self) -> DeclaredServer {
        DeclaredServer { started: true, reason: self.fit.to_string(), ..self.suggested() }
    }
}

/// A server is found as a tool is that has its name, its keywords for a title, and its description.
fn analyzed(name: &ServerName, server: &Provisionable) -> Arc<Analyzed> {
    let definition = serde_json::json!({
        "name": name.as_str(),
        "title": server.keywords.join(", "),
        "description": server.description,
    });
    Arc::new(Analyzed::of(name.as_str(), "", [definition.to_string().as_str()].into_iter()))
}
