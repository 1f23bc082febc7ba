//! The service as a whole, and the processes and the memory that sharing saves.

use serde_json::{Value, json};

use super::{
    facts::{array, mebibytes, text},
    html::Html,
};
use crate::time_format;

/// The width of a picture, in its own units.
const BAR_WIDTH: u64 = 100;

/// Returns the section.
pub(super) fn overview(status: &Value) -> Html {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let mut html = Html::default();
    html.markup("<dl class=\"facts\">");
    let mut fact = |name: &'static str, value: &str| {
        html.markup("<div><dt>").markup(name).markup("</dt><dd>").text(value).markup("</dd></div>");
    };
    let pool = &status["pool"];
    fact("Version", text(status, "version"));
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
    let (used, unshared) = processes(status);
    let both = [used, unshared].map(|count| (count, Html::of_number(count)));
    html.part(&picture("Processes", both));
    let memory = |name: &str| number(&status["memory"][name]);
    let used = memory("ownBytes") + memory("serversBytes");
    let unshared = memory("serversBytes") + memory("savedBytes");
    if memory("ownBytes") > 0 {
        let both = [used, unshared].map(|bytes| (bytes, mebibytes(&json!(bytes))));
        html.part(&picture("Memory", both));
    }
    html
}

/// Returns the number of processes, that of metamcp included, and their number if each client
/// session had its own. Counts a client session for the servers that it has called or read from.
fn processes(status: &Value) -> (u64, u64) {
    let mut counts = (1, 0);
    for server in array(&status["servers"]) {
        let number = |name: &str| server[name].as_u64().unwrap_or_default();
        if !server["pid"].is_u64() {
            continue;
        }
        let (used, sessions) = (number("connections"), number("clientSessions"));
        counts.0 += used;
        counts.1 += if text(server, "sharing") == "shared" { used.max(sessions) } else { used };
    }
    counts
}

/// Returns a picture of an amount with metamcp beside the amount without it.
fn picture(title: &'static str, [with, without]: [(u64, Html); 2]) -> Html {
    let longest = with.0.max(without.0).max(1);
    let mut html = Html::default();
    html.markup("<figure><figcaption>").markup(title).markup("</figcaption>");
    for ((amount, label), class, words) in [
        (with, "used", " with metamcp"),
        (without, "unshared", " if each client session had its own servers"),
    ] {
        let width = (BAR_WIDTH * amount).div_ceil(longest);
        html.markup("<div class=\"bar\"><svg aria-hidden=\"true\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\"><rect height=\"10\" width=\"");
        html.number(width).markup("\" class=\"").markup(class).markup("\"/></svg> <span>");
        html.part(&label).markup(words).markup("</span></div>");
    }
    html.markup("</figure>");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_counted_with_and_without_sharing() {
        let server = |sharing: &str, connections: u64, sessions: u64| {
            json!({
                "sharing": sharing, "pid": 7, "connections": connections,
                "clientSessions": sessions,
            })
        };
        let status = json!({ "servers": [
            server("shared", 1, 5), server("shared", 2, 0), server("session", 3, 4),
            { "sharing": "shared", "connections": 1, "clientSessions": 9 },
        ] });
        assert_eq!(processes(&status), (7, 10));
    }
}
