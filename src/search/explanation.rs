//! The explanation of a tool's score.

use std::fmt;

use serde::Serialize;

/// The explanation of a tool's score: parts that add up to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ScoreExplanation {
    /// The sum of the parts.
    pub score: f64,
    /// The parts of the score, the largest first.
    pub parts: Vec<ScorePart>,
}

/// A part of a score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScorePart {
    /// The reason for this part, such as a word and its field.
    pub name: String,
    /// The contribution to the score.
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
