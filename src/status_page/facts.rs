//! Parts of answers of the control interface, as the sections read and show them.

use serde_json::Value;

use super::html::Html;

/// The longest foreign text in a list, in bytes of the page.
pub(super) const TEXT_BYTES_MAX: usize = 300;

/// Returns a member that is a text, or an empty one.
pub(super) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

/// Returns the items of a list, which may be missing.
pub(super) fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns a number of bytes in MiB, if there is one.
pub(super) fn mebibytes(bytes: &Value) -> Html {
    let Some(bytes) = bytes.as_u64() else { return Html::default() };
    let tenths = bytes / (1024 * 1024 / 10);
    Html::of_text(&format!("{}.{} MiB", tenths / 10, tenths % 10))
}

/// Returns the name and the version that a client gives itself.
pub(super) fn client(name: &str, version: &str) -> Html {
    let mut html = Html::default();
    html.cut(if name.is_empty() { "a client without a name" } else { name }, TEXT_BYTES_MAX);
    if !version.is_empty() {
        html.markup(" <small>").cut(version, TEXT_BYTES_MAX).markup("</small>");
    }
    html
}

/// Returns a time of RFC 3339 in UTC, to the second.
pub(super) fn time(rfc3339: &str) -> Html {
    let mut html = Html::default();
    html.markup("<time datetime=\"").cut(rfc3339, TEXT_BYTES_MAX).markup("\">");
    let seconds = rfc3339.split('.').next().unwrap_or_default();
    html.cut(&seconds.replace('T', " "), TEXT_BYTES_MAX).markup("</time>");
    html
}
