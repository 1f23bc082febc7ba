//! The posting lists: the documents with each feature, and its amount in them.

/// Stems and concepts of documents.
#[derive(Default)]
pub(super) struct DocumentTerms {
    pub(super) stems: Vec<SearchTerm>,
    pub(super) concepts: Vec<SearchTerm>,
}

/// A feature of a document.
#[derive(Clone, Copy)]
pub(super) struct SearchTerm {
    pub(super) feature: u32,
    pub(super) document: u32,
    /// The amount of the feature, between 0 and 1.
    pub(super) amount: f32,
}

/// Lists of documents, one for each feature, contiguous in memory.
pub(super) struct PostingLists {
    /// The start of each feature's list, and at the end the number of entries.
    starts: Box<[u32]>,
    entries: Box<[(u32, f32)]>,
    pub(super) n_documents: usize,
}

impl PostingLists {
    /// Sorts features, given document by document, into their lists.
    pub(super) fn of(features: &[SearchTerm], n_features: usize, n_documents: usize) -> Self {
        let mut starts = vec![0_u32; n_features + 1];
        for found in features {
            starts[found.feature as usize + 1] += 1;
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        let mut next = starts.clone();
        let mut entries = vec![(0, 0.0); features.len()];
        for found in features {
            let place = &mut next[found.feature as usize];
            entries[*place as usize] = (found.document, found.amount);
            *place += 1;
        }
        Self { starts: starts.into(), entries: entries.into(), n_documents }
    }

    /// Returns the documents with a feature, in order, and its amounts.
    pub(super) fn with(&self, feature: u32) -> &[(u32, f32)] {
        let border = |place: u32| self.starts.get(place as usize).map(|&start| start as usize);
        match (border(feature), border(feature.saturating_add(1))) {
            (Some(start), Some(end)) if start <= end => &self.entries[start..end],
            (_, _) => &[],
        }
    }

    pub(super) fn amount(&self, feature: u32, document: u32) -> f32 {
        let list = self.with(feature);
        list.binary_search_by_key(&document, |&(document, _)| document)
            .map_or(0.0, |place| list[place].1)
    }

    /// Returns the rarity of a feature: the Robertson-Sparck Jones weight of BM25, above 0.
    pub(super) fn rarity(&self, feature: u32) -> f32 {
        self.rarity_of(self.with(feature).len())
    }

    /// Returns the rarity of a feature in `n_having` documents.
    #[expect(clippy::cast_precision_loss, reason = "counts of documents")]
    pub(super) fn rarity_of(&self, n_having: usize) -> f32 {
        let (all, having) = (self.n_documents as f32, n_having as f32);
        (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
    }
}
