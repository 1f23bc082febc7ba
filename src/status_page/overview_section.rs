//! The service as a whole, and the memory that sharing saves.

use serde_json::Value;

use super::html::Html;
use crate::time_format;

/// Returns the section.
pub(super) fn overview(status: &Value) -> Html {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let mut html = Html::default();
    html.markup("<dl class=\"facts\">");
    let mut fact = |name: &'static str, value: &str| {
        html.markup("<div><dt>").markup(name).markup("</dt><dd>").text(value).markup("</dd></div>");
    };
    let pool = &status["pool"];
    fact("Version", status["version"].as_str().unwrap_or_default());
    fact("Up for", &time_format::in_two_units(number(&status["uptime"])));
    fact("Client sessions", &number(&status["sessions"]).to_string());
    fact(
        "Connections to servers",
        &format!("{} of {}", number(&pool["connections"]), number(&pool["size"])),
    );
    if number(&pool["waiting"]) > 0 {
        fact("Waiting for room", &number(&pool["waiting"]).to_string());
    }
    html.markup("</dl>");
    html.part(&savings(status));
    html
}

/// Returns the picture of the memory in use beside the memory without sharing.
fn savings(status: &Value) -> Html {
    let bytes = |name: &str| status["memory"][name].as_u64().unwrap_or_default();
    let used = bytes("ownBytes") + bytes("serversBytes");
    let without = bytes("serversBytes") + bytes("savedBytes");
    let mut html = Html::default();
    if used == 0 {
        return html;
    }
    let longest = used.max(without).max(1);
    html.markup("<figure class=\"savings\"><figcaption>Memory of the servers: </figcaption>");
    for (name, amount, kind) in [
        ("with metamcp", used, "used"),
        ("if each client session had its own servers", without, "without"),
    ] {
        html.markup("<div class=\"bar\"><meter min=\"0\" max=\"")
            .number(longest)
            .markup("\" value=\"")
            .number(amount)
            .markup("\" class=\"")
            .markup(kind)
            .markup("\"></meter> <span>")
            .text(&mebibytes(amount))
            .markup(" ")
            .markup(name)
            .markup("</span></div>");
    }
    html.markup("</figure>");
    html
}

/// Returns a number of bytes in MiB.
pub(super) fn mebibytes(bytes: u64) -> String {
    let tenths = bytes / (1024 * 1024 / 10);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}
