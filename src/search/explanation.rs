//! Why a tool stands where it does.

use std::fmt;

use serde::Serialize;

/// Why a tool stands where it does: parts that add up to its score.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ScoreExplanation {
    /// The sum of the parts.
    pub score: f64,
    /// What the score is made of, the largest first.
    pub parts: Vec<ScorePart>,
}

/// A part of a score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScorePart {
    /// What it is for.
    pub name: String,
    /// What it adds.
    pub score: f64,
}

impl ScoreExplanation {
    /// Adds up `parts`.
    pub(super) fn of(mut parts: Vec<ScorePart>) -> Self {
        parts.sort_by(|a, b| b.score.total_cmp(&a.score));
        Self { score: parts.iter().map(|part| part.score).sum(), parts }
    }
}

impl fmt::Display for ScoreExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.score)?;
        for (place, ScorePart { name, score }) in self.parts.iter().enumerate() {
            write!(f, "{}{name} {score:.3}", if place == 0 { " = " } else { " + " })?;
        }
        Ok(())
    }
}
