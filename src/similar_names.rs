//! Known names that are similar to an unknown one.

/// The longest name that is compared with others, in bytes: the time of a comparison is the product
/// of both lengths.
pub const NAME_BYTES_MAX: usize = 128;

/// Returns the names in `known` with at most `distance_max` differences to `name`, nearest first.
/// Case is ignored, and two swapped letters are one difference.
pub fn within<T: AsRef<str> + Ord>(
    name: &str,
    known: impl Iterator<Item = T>,
    distance_max: usize,
) -> Vec<T> {
    if name.len() > NAME_BYTES_MAX {
        return Vec::new();
    }
    let name = name.to_lowercase();
    let mut near: Vec<(usize, T)> = known
        .map(|known| (strsim::osa_distance(&name, &known.as_ref().to_lowercase()), known))
        .filter(|(distance, _)| *distance <= distance_max)
        .collect();
    near.sort();
    near.into_iter().map(|(_, known)| known).collect()
}

/// The length from which more letters of a name may differ, since unrelated long names differ in
/// most of them.
const LONG_NAME: usize = 9;

/// Returns up to three names in `known` that are similar to `name`, nearest first: at most a third of
/// the letters differ, or two fifths of a long name.
pub fn nearest(name: &str, known: impl Iterator<Item = String>) -> Vec<String> {
    let differing = match name.chars().count() {
        n_letters @ ..LONG_NAME => (n_letters / 3).max(usize::from(n_letters > 1)),
        n_letters => n_letters * 2 / 5,
    };
    let mut near = within(name, known, differing);
    near.truncate(3);
    near
}

/// Returns a question about the most similar name, or else `fallback`.
pub fn did_you_mean(similar: &[String], fallback: &str) -> String {
    similar.first().map_or_else(|| fallback.to_owned(), |name| format!("Did you mean `{name}`?"))
}

/// Returns the name in `known` that `name` misspells or abbreviates, if any. It is stricter than
/// [`nearest`], since `name` may also be intended.
pub fn misspelt<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let known: Vec<&str> = known.collect();
    let name = name.to_lowercase();
    let differing = if name.len() < 6 { 1 } else { 2.max(name.len() / 4) };
    let differing = differing.min(name.len().saturating_sub(1));
    let near = within(&name, known.iter().copied(), differing);
    let is_long = |known: &&str| is_short_for(&name, &known.to_lowercase());
    let shortened = || within(&name, known.into_iter().filter(is_long), usize::MAX);
    near.first().copied().or_else(|| shortened().first().copied())
}

/// Returns whether `short` is `long` with letters left out, as `msg` is `message`.
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
    fn a_misspelt_or_shortened_name_is_matched_and_a_different_word_is_not() {
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
    fn similar_names_come_nearest_first_and_different_names_are_left_out() {
        assert_eq!(of("serach", &["search", "sketch", "delete_everything"]), ["search"]);
        assert_eq!(of("gti", &["git", "web", "db"]), ["git"]);
        assert_eq!(of("nope", &["add", "logs", "stop", "note"]), ["note"]);
        assert!(of("x", &["y", "db"]).is_empty());
        assert_eq!(of("LOG", &["log", "logs", "blog", "clog"]), ["log", "blog", "clog"]);
        assert_eq!(of("abcdefghij", &["abcdef", "abcde"]), ["abcdef"]);
        assert!(of(&"x".repeat(1000), &["x"]).is_empty());
    }
}
