//! What is fuzzed: for each parser a function that holds what it makes of some bytes against what must be
//! so whatever they are.

mod files;
mod messages;
mod words;

/// A target: it panics where something is not so.
pub(crate) type Target = fn(&[u8]);

/// The targets by name. Each has a directory of that name in the corpus.
pub(crate) const ALL: [(&str, Target); 13] = [
    ("catalog", files::catalog),
    ("configuration", files::configuration),
    ("control", messages::control),
    ("cursor", words::cursor),
    ("envelope", messages::envelope),
    ("fields", words::fields),
    ("framing", messages::framing),
    ("import", files::import),
    ("page", words::page),
    ("registry", files::registry),
    ("schema", words::schema),
    ("session", words::session),
    ("task", files::task),
];

/// Returns the data as two texts, cut at its first line break.
fn two_texts(data: &[u8]) -> Option<(&str, &str)> {
    let text = str::from_utf8(data).ok()?;
    Some(text.split_once('\n').unwrap_or((text, "")))
}
