//! Text into words: the same for definitions and for queries.
//!
//! A word is a lower-case run of letters and digits. Compound names fall into their parts
//! (`createIssue`, `create_issue`, `HTTPServer`), and Chinese, Japanese and Korean text, which has
//! no spaces, into overlapping pairs of characters. Knows nothing of stems or meaning.

/// How many bytes of a text are read. Ours: the longest description of a tool that says anything
/// new is far shorter, and a query of this length is a document.
pub(super) const TEXT_BYTES_MAX: usize = 8 * 1024;

/// The longest word, in bytes; what is longer is an identifier or a blob that nobody asks for.
/// Ours.
pub(super) const WORD_BYTES_MAX: usize = 40;

/// What kind of text words are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// A name: `GitHubSearch` has the words of its parts, and those of two neighbours together.
    Name,
    /// A sentence: `GitHub` is one word, as a brand is, and `createIssue` is two.
    Prose,
}

/// Returns the beginning of `text`, at most `bytes_max` long, cut between characters.
pub(super) fn beginning(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Calls `found` with every word of `text`, in order.
pub(super) fn each(text: &str, manner: Manner, mut found: impl FnMut(&str)) {
    let text = beginning(text, TEXT_BYTES_MAX);
    let mut rest = text;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        rest = &rest[start..];
        let end = rest.find(|found: char| !found.is_alphanumeric()).unwrap_or(rest.len());
        run(&rest[..end], manner, &mut found);
        rest = &rest[end..];
    }
}

/// Calls `found` with the words of a run of letters and digits.
fn run(text: &str, manner: Manner, found: &mut impl FnMut(&str)) {
    if !text.is_ascii() && text.chars().any(is_ideographic) {
        return ideographs(text, manner, found);
    }
    if text.len() > WORD_BYTES_MAX {
        return;
    }
    // Nearly all words; there is nothing to split and nothing to lower.
    if text.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return found(text);
    }
    let humps = humps(text);
    let lower = text.to_lowercase();
    let is_brand = text.starts_with(char::is_uppercase) && manner == Manner::Prose;
    if humps.len() < 2 {
        return found(&lower);
    }
    // `S3`, `mp3`, `36kr`, `OAuth2`: who asks for such a thing writes it together.
    let has_digits = text.contains(|found: char| found.is_ascii_digit());
    if is_brand || has_digits {
        found(&lower);
    }
    if is_brand {
        return;
    }
    let is_word =
        |hump: &&&str| hump.chars().any(|c| !c.is_ascii_digit()) && hump.chars().count() > 1;
    for hump in humps.iter().filter(is_word) {
        found(&hump.to_lowercase());
    }
    if manner == Manner::Name && !has_digits {
        for pair in humps.windows(2) {
            found(&pair.concat().to_lowercase());
        }
    }
}

/// Splits `camelCase`, `HTTPServer` and `v2` at their inner borders.
fn humps(text: &str) -> Vec<&str> {
    let characters: Vec<(usize, char)> = text.char_indices().collect();
    let mut borders = vec![0];
    for (place, window) in characters.windows(2).enumerate() {
        let [(_, before), (at, here)] = [window[0], window[1]];
        let after = characters.get(place + 2).map(|&(_, after)| after);
        let is_border = (before.is_lowercase() && here.is_uppercase())
            || (before.is_uppercase()
                && here.is_uppercase()
                // The plural of an abbreviation, `URLs`, is no border.
                && after.is_some_and(char::is_lowercase)
                && characters.get(place + 3).is_some())
            || before.is_numeric() != here.is_numeric();
        if is_border {
            borders.push(at);
        }
    }
    borders.push(text.len());
    borders.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

/// Calls `found` with each pair of neighbours among ideographs, and with the words between them.
fn ideographs(text: &str, manner: Manner, found: &mut impl FnMut(&str)) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_same = |found: char| is_ideographic(found) == is_ideographic(first);
        let end = rest.find(|found| !is_same(found)).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        rest = behind;
        if !is_ideographic(first) {
            run(part, manner, found);
            continue;
        }
        let borders: Vec<usize> =
            part.char_indices().map(|(at, _)| at).chain([part.len()]).collect();
        if borders.len() == 2 {
            found(part);
        }
        for window in borders.windows(3) {
            found(&part[window[0]..window[2]]);
        }
    }
}

/// Whether a character belongs to a script that is written without spaces.
fn is_ideographic(found: char) -> bool {
    matches!(found,
        '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9d}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, manner: Manner) -> Vec<String> {
        let mut words = Vec::new();
        each(text, manner, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn names_fall_into_their_parts() {
        let words = |text| words(text, Manner::Name);
        assert_eq!(words("create_issue-comment"), ["create", "issue", "comment"]);
        assert_eq!(words("createIssue"), ["create", "issue", "createissue"]);
        assert_eq!(words("HTTPServer"), ["http", "server", "httpserver"]);
        assert_eq!(words("listURLs"), ["list", "urls", "listurls"]);
        assert_eq!(words("get36krTrending"), ["get36krtrending", "get", "kr", "trending"]);
    }

    #[test]
    fn a_brand_in_a_sentence_is_one_word() {
        let words = |text| words(text, Manner::Prose);
        assert_eq!(words("Ask GitHub, don't guess."), ["ask", "github", "don", "t", "guess"]);
        assert_eq!(words("call createIssue"), ["call", "create", "issue"]);
        assert_eq!(words("an S3 bucket"), ["an", "s3", "bucket"]);
    }

    #[test]
    fn text_without_spaces_falls_into_pairs() {
        let words = |text| words(text, Manner::Prose);
        assert_eq!(words("获取天气"), ["获取", "取天", "天气"]);
        assert_eq!(words("查询12306车票"), ["查询", "12306", "车票"]);
        assert_eq!(words("Größe über Ärger"), ["größe", "über", "ärger"]);
        assert_eq!(words("🙂 …"), Vec::<String>::new());
    }

    #[test]
    fn what_is_too_long_is_cut_or_left_out() {
        assert_eq!(words(&"a".repeat(100), Manner::Prose), Vec::<String>::new());
        let long = "ü ".repeat(TEXT_BYTES_MAX);
        assert!(words(&long, Manner::Prose).len() <= TEXT_BYTES_MAX / 3 + 1);
    }
}
