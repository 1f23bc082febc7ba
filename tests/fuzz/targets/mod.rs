//! The fuzz targets: per parser, a function that checks invariants of its result for any input.

mod client_values;
mod files;
mod messages;
mod scripts;

/// A fuzz target, which panics if an invariant is violated.
pub(crate) type Target = fn(&[u8]);

/// The targets by name. Each has a directory with its name in the corpus.
pub(crate) const ALL: [(&str, Target); 15] = [
    ("catalog", files::catalog),
    ("configuration", files::configuration),
    ("control", messages::control),
    ("cursor", client_values::cursor),
    ("envelope", messages::envelope),
    ("fields", client_values::fields),
    ("framing", messages::framing),
    ("import", files::import),
    ("page", client_values::page),
    ("registry", files::registry),
    ("sandbox-input", scripts::sandbox_input),
    ("sandbox-output", scripts::sandbox_output),
    ("schema", client_values::schema),
    ("session", client_values::session),
    ("task", files::task),
];

/// Splits the data into two texts at its first line break.
fn two_texts(data: &[u8]) -> Option<(&str, &str)> {
    let text = str::from_utf8(data).ok()?;
    Some(text.split_once('\n').unwrap_or((text, "")))
}
