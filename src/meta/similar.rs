//! Names that are close to one that does not exist.

use crate::config::defaults;

/// Returns up to three of `known` that are close to `name`, nearest first.
///
/// The bound on the distance is that of seed 001: three, or two fifths of the name.
pub fn nearest(name: &str, known: impl Iterator<Item = String>) -> Vec<String> {
    if name.len() > defaults::SUGGESTION_BYTES_MAX {
        return Vec::new();
    }
    let wanted = name.to_lowercase();
    let cutoff = 3.max(name.len() * 2 / 5);
    let mut near: Vec<(usize, String)> = known
        .map(|known| (strsim::levenshtein(&wanted, &known.to_lowercase()), known))
        .filter(|(distance, _)| *distance <= cutoff)
        .collect();
    near.sort();
    near.into_iter().take(3).map(|(_, known)| known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, known: &[&str]) -> Vec<String> {
        nearest(name, known.iter().map(|known| (*known).to_owned()))
    }

    #[test]
    fn the_nearest_come_first_and_what_is_far_is_none() {
        assert_eq!(of("serach", &["search", "fetch", "delete_everything"]), ["search", "fetch"]);
        assert_eq!(of("LOG", &["log", "logs", "blog", "clog"]), ["log", "blog", "clog"]);
        assert_eq!(of("abcdefghij", &["abcdef", "abcde"]), ["abcdef"]);
        assert!(of(&"x".repeat(1000), &["x"]).is_empty());
    }
}
