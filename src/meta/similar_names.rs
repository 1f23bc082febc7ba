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

/// Returns the one of `known` that `name` is misspelt or short for, if there is one. It is stricter than
/// [`nearest`]: `name` may as well be meant as it is.
pub fn misspelt<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > defaults::SUGGESTION_BYTES_MAX {
        return None;
    }
    let wanted = name.to_lowercase();
    let cutoff = if wanted.len() < 6 { 1 } else { 2.max(wanted.len() / 4) };
    let near = known.filter_map(|known| {
        let lower = known.to_lowercase();
        // Two letters that have changed places are one mistake.
        let distance = strsim::osa_distance(&wanted, &lower);
        let is_near = distance <= cutoff && distance < wanted.len();
        (is_near || is_short_for(&wanted, &lower)).then_some((distance, known))
    });
    near.min().map(|(_, known)| known)
}

/// Tells whether `short` is left of `long` where some letters are taken away, as `msg` of `message`.
fn is_short_for(short: &str, long: &str) -> bool {
    let mut rest = long.chars();
    let is_left = short.chars().all(|wanted| rest.any(|found| found == wanted));
    short.len() >= 3 && short.len() < long.len() && short.get(..1) == long.get(..1) && is_left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, known: &[&str]) -> Vec<String> {
        nearest(name, known.iter().map(|known| (*known).to_owned()))
    }

    #[test]
    fn what_is_misspelt_or_short_is_told_from_what_is_another_word() {
        let known = ["message", "path", "limit", "id"];
        for (name, meant) in [
            ("msg", Some("message")),
            ("mesage", Some("message")),
            ("Message", Some("message")),
            ("paht", Some("path")),
            ("lim", Some("limit")),
            ("limits", Some("limit")),
            ("ids", Some("id")),
            ("verbose", None),
            ("lists", None),
            ("bath", Some("path")),
            ("data", None),
            ("x", None),
            ("me", None),
            ("", None),
        ] {
            assert_eq!(misspelt(name, known.into_iter()), meant, "{name}");
        }
    }

    #[test]
    fn the_nearest_come_first_and_what_is_far_is_none() {
        assert_eq!(of("serach", &["search", "fetch", "delete_everything"]), ["search", "fetch"]);
        assert_eq!(of("LOG", &["log", "logs", "blog", "clog"]), ["log", "blog", "clog"]);
        assert_eq!(of("abcdefghij", &["abcdef", "abcde"]), ["abcdef"]);
        assert!(of(&"x".repeat(1000), &["x"]).is_empty());
    }
}
