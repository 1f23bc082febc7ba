//! The tokenizer of definitions and queries.
//!
//! A word is a lower-case run of letters and digits. Compound names are split into their parts
//! (`createIssue`, `create_issue`, `HTTPServer`). Chinese, Japanese and Korean text, which has no
//! spaces, is split into overlapping pairs of characters. Stems and meaning are not handled here.

/// The number of bytes read of a text. Useful descriptions of tools are far shorter, and a query of
/// this length is a document.
pub(super) const TEXT_BYTES_MAX: usize = 8 * 1024;

/// The longest word, in bytes. A longer one is an identifier or a blob, which is not a search term.
pub(super) const WORD_BYTES_MAX: usize = 40;

/// The kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    /// A name: `GitHubSearch` has the words of its parts, and of each two neighbours together.
    Name,
    /// A sentence: `GitHub` is one word, since it is a brand, and `createIssue` is two.
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

/// The form of a word in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordForm {
    /// A word as it was written, or a part of a compound.
    Plain,
    /// A variant beside a plain word with the same letters: `oauth` for `oauth2`, `utf8` for
    /// `UTF-8`. People may write either of them.
    Beside,
}

/// The fewest digits that are a word of their own in a name. A request may contain the 77 of
/// `tool77`, but not the 3 of `s3`.
const NUMBER_DIGITS_MIN: usize = 2;

/// Calls `found` with every word of `text`, in order.
pub(super) fn each(text: &str, kind: TextKind, mut found: impl FnMut(&str, WordForm)) {
    let text = beginning(text, TEXT_BYTES_MAX);
    let (mut rest, mut before) = (text, "");
    while let Some(start) = rest.find(char::is_alphanumeric) {
        let between = &rest[..start];
        rest = &rest[start..];
        let end = rest.find(|found: char| !found.is_alphanumeric()).unwrap_or(rest.len());
        let here = &rest[..end];
        run(here, kind, &mut found);
        // `UTF-8`, `H.264`, `tool_77`: also written as one word.
        let is_joined = matches!(between, "-" | "_" | ".")
            && is_all(before, u8::is_ascii_alphabetic)
            && is_all(here, u8::is_ascii_digit);
        if is_joined && before.len() + here.len() <= WORD_BYTES_MAX {
            found(&[before, here].concat().to_ascii_lowercase(), WordForm::Beside);
        }
        (rest, before) = (&rest[end..], here);
    }
}

pub(super) fn is_number(word: &str) -> bool {
    is_all(word, u8::is_ascii_digit)
}

fn is_all(text: &str, is_one: fn(&u8) -> bool) -> bool {
    !text.is_empty() && text.as_bytes().iter().all(is_one)
}

/// Calls `found` with the words of a run of letters and digits.
fn run(text: &str, kind: TextKind, found: &mut impl FnMut(&str, WordForm)) {
    if !text.is_ascii() && text.chars().any(is_ideographic) {
        return ideographs(text, kind, found);
    }
    if text.len() > WORD_BYTES_MAX {
        return;
    }
    // Nearly all words: they need no split and no conversion to lower case.
    if is_all(text, u8::is_ascii_lowercase) || is_number(text) {
        return found(text, WordForm::Plain);
    }
    if text.contains(char::is_numeric) {
        return numbered(text, kind, found);
    }
    letters(text, kind, |word| found(word, WordForm::Plain));
}

/// Calls `found` with the words of a run of letters.
fn letters(text: &str, kind: TextKind, mut found: impl FnMut(&str)) {
    let is_brand = text.starts_with(char::is_uppercase) && kind == TextKind::Prose;
    let humps = humps(text);
    if is_brand || humps.len() < 2 {
        return found(&text.to_lowercase());
    }
    for hump in humps.iter().filter(|hump| hump.chars().count() > 1) {
        found(&hump.to_lowercase());
    }
    if kind == TextKind::Name {
        for pair in humps.windows(2) {
            found(&pair.concat().to_lowercase());
        }
    }
}

/// Calls `found` with the words of a run of letters and numbers.
///
/// `S3`, `mp3`, `36kr` and `OAuth2` are written as one word, so the whole run is one word. Its
/// variants are the words of its letters, letters with their number (`S3` of `listS3Buckets`), and
/// in a name its numbers.
fn numbered(text: &str, kind: TextKind, found: &mut impl FnMut(&str, WordForm)) {
    found(&text.to_lowercase(), WordForm::Plain);
    let humps = humps(text);
    let is_number = |hump: &str| hump.starts_with(char::is_numeric);
    let is_capitalized = |hump: &str| {
        let mut characters = hump.chars();
        characters.next().is_some_and(char::is_uppercase)
            && characters.next().is_some_and(char::is_lowercase)
    };
    for pair in humps.windows(2).filter(|_| humps.len() > 2) {
        // In `S3Buckets` the number belongs to the part before it, in `2FA` to the part after it.
        if is_number(pair[1]) || (is_number(pair[0]) && !is_capitalized(pair[1])) {
            found(&pair.concat().to_lowercase(), WordForm::Beside);
        }
    }
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_number = first.is_numeric();
        let end = rest.find(|found: char| found.is_numeric() != is_number).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        rest = behind;
        let n_characters = part.chars().count();
        if !is_number && n_characters > 1 {
            letters(part, kind, |word| found(word, WordForm::Beside));
        } else if is_number && n_characters >= NUMBER_DIGITS_MIN && kind == TextKind::Name {
            found(part, WordForm::Beside);
        }
    }
}

/// Splits `camelCase`, `HTTPServer` and `v2` at their inner boundaries.
fn humps(text: &str) -> Vec<&str> {
    let characters: Vec<(usize, char)> = text.char_indices().collect();
    let mut borders = vec![0];
    for (place, window) in characters.windows(2).enumerate() {
        let [(_, before), (at, here)] = [window[0], window[1]];
        let after = characters.get(place + 2).map(|&(_, after)| after);
        let is_border = (before.is_lowercase() && here.is_uppercase())
            || (before.is_uppercase()
                && here.is_uppercase()
                // The plural of an abbreviation, `URLs`, has no boundary.
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
fn ideographs(text: &str, kind: TextKind, found: &mut impl FnMut(&str, WordForm)) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_same = |found: char| is_ideographic(found) == is_ideographic(first);
        let end = rest.find(|found| !is_same(found)).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        rest = behind;
        if !is_ideographic(first) {
            run(part, kind, found);
            continue;
        }
        let borders: Vec<usize> =
            part.char_indices().map(|(at, _)| at).chain([part.len()]).collect();
        if borders.len() == 2 {
            found(part, WordForm::Plain);
        }
        for window in borders.windows(3) {
            found(&part[window[0]..window[2]], WordForm::Plain);
        }
    }
}

/// Returns whether a character belongs to a script that is written without spaces.
fn is_ideographic(found: char) -> bool {
    matches!(found,
        '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9d}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, kind: TextKind) -> Vec<String> {
        let mut words = Vec::new();
        each(text, kind, |word, _| words.push(word.to_owned()));
        words
    }

    #[test]
    fn compound_names_are_split_into_their_parts() {
        let words = |text| words(text, TextKind::Name);
        assert_eq!(words("create_issue-comment"), ["create", "issue", "comment"]);
        assert_eq!(words("createIssue"), ["create", "issue", "createissue"]);
        assert_eq!(words("HTTPServer"), ["http", "server", "httpserver"]);
        assert_eq!(words("listURLs"), ["list", "urls", "listurls"]);
    }

    #[test]
    fn a_brand_in_a_sentence_is_one_word() {
        let words = |text| words(text, TextKind::Prose);
        assert_eq!(words("Ask GitHub, don't guess."), ["ask", "github", "don", "t", "guess"]);
        assert_eq!(words("call createIssue"), ["call", "create", "issue"]);
        assert_eq!(words("an S3 bucket"), ["an", "s3", "bucket"]);
    }

    #[test]
    fn a_name_with_digits_is_one_token_with_its_parts_as_side_forms() {
        type Case<'a> = (&'a str, TextKind, &'a [&'a str], &'a [&'a str]);
        let cases: [Case<'_>; 12] = [
            ("s3", TextKind::Name, &["s3"], &[]),
            ("404", TextKind::Prose, &["404"], &[]),
            ("2fa", TextKind::Prose, &["2fa"], &["fa"]),
            ("OAuth2", TextKind::Prose, &["oauth2"], &["auth2", "oauth"]),
            ("UTF-8", TextKind::Prose, &["utf", "8"], &["utf8"]),
            ("tool_77", TextKind::Name, &["tool", "77"], &["tool77"]),
            ("tool77", TextKind::Name, &["tool77"], &["tool", "77"]),
            ("S3Buckets", TextKind::Name, &["s3buckets"], &["s3", "buckets"]),
            ("list2FA", TextKind::Name, &["list2fa"], &["list2", "2fa", "list", "fa"]),
            ("getEC2", TextKind::Name, &["getec2"], &["ec2", "get", "ec", "getec"]),
            ("查询12306车票", TextKind::Name, &["查询", "12306", "车票"], &[]),
            ("10-4, 2020-10", TextKind::Prose, &["10", "4", "2020", "10"], &[]),
        ];
        for (text, kind, plain, beside) in cases {
            let mut found = [Vec::new(), Vec::new()];
            each(text, kind, |word, form| {
                found[usize::from(form == WordForm::Beside)].push(word.to_owned());
            });
            assert_eq!(found[0], plain, "{text}");
            assert_eq!(found[1], beside, "{text}");
        }
    }

    #[test]
    fn text_without_spaces_is_split_into_pairs() {
        let words = |text| words(text, TextKind::Prose);
        assert_eq!(words("获取天气"), ["获取", "取天", "天气"]);
        assert_eq!(words("查询12306车票"), ["查询", "12306", "车票"]);
        assert_eq!(words("Größe über Ärger"), ["größe", "über", "ärger"]);
        assert_eq!(words("🙂 …"), Vec::<String>::new());
    }

    #[test]
    fn an_overlong_word_is_left_out_and_an_overlong_text_is_cut() {
        assert_eq!(words(&"a".repeat(100), TextKind::Prose), Vec::<String>::new());
        let long = "ü ".repeat(TEXT_BYTES_MAX);
        assert!(words(&long, TextKind::Prose).len() <= TEXT_BYTES_MAX / 3 + 1);
    }
}
