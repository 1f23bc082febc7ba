//! The items of servers: their names in the form `SERVER/NAME`, and their lists.

use serde_json::{Value, value::RawValue};

use super::{
    FAILED, Failed, output,
    service_target::OutputArgs,
    text_table::{CellColour, TableCell, TextTable},
};

/// Splits `SERVER/NAME` into server and name; the name may contain further slashes.
///
/// # Errors
///
/// [`Failed`] with 64 when the server or the name is missing.
pub(super) fn split<'a>(text: &'a str, kind: &str) -> Result<(&'a str, &'a str), Failed> {
    text.split_once('/').filter(|(server, name)| !server.is_empty() && !name.is_empty()).ok_or_else(
        || {
            let form = if kind == "resource" { "SERVER/URI" } else { "SERVER/NAME" };
            Failed::usage(
                format!("`{text}` is not a {kind}"),
                format!("Write {form}; `metamcp {kind}s` lists them."),
            )
        },
    )
}

/// Prints the items that `method` lists and names the unavailable servers on standard error.
/// `describe` returns the name of an item, a detail and its description, `member` is its place in an
/// entry.
pub(super) fn print_list(
    common: &OutputArgs,
    (method, params): (&str, &Value),
    (member, empty): (&str, &str),
    describe: impl Fn(&Value) -> [String; 3],
) -> Result<(), Failed> {
    common.print(&items(&common.target.ask(method, params)?)?, |items| {
        let mut table = TextTable::default();
        for item in output::items(items) {
            let [name, detail, about] = describe(&item[member]);
            table.row([
                format!("{}/{name}", output::word(&item["server"])).into(),
                TableCell::from(detail).colour(CellColour::Dim),
                about.into(),
            ]);
        }
        output::table_or(&table, empty);
    })
}

/// Returns the items of a list with a report, and names the unavailable servers on standard error.
fn items(listed: &RawValue) -> Result<Box<RawValue>, Failed> {
    #[derive(serde::Deserialize)]
    struct ListReport<'a> {
        #[serde(borrow)]
        items: &'a RawValue,
        #[serde(default)]
        unavailable: Vec<Value>,
        #[serde(default, rename = "hasMore")]
        has_more: bool,
    }
    let report: ListReport<'_> = serde_json::from_str(listed.get()).map_err(|error| {
        Failed::new(FAILED, format!("the service's answer is invalid: {error}"))
    })?;
    print_unavailable("not listed", &report.unavailable);
    if report.has_more {
        output::hint("There are more tools: raise --limit.\n");
    }
    Ok(report.items.to_owned())
}

/// Prints the servers without a list, each with the reason, on standard error.
pub(super) fn print_unavailable(prefix: &str, servers: &[Value]) {
    for server in servers {
        let [name, reason] = ["server", "reason"].map(|member| output::word(&server[member]));
        output::eprint(&format!("{prefix}: {name}: {reason}\n"));
    }
}

/// Returns the first line of the first of these members that is a text.
pub(super) fn first_line(item: &Value, members: &[&str]) -> String {
    let text = members.iter().map(|member| &item[*member]).find(|text| text.is_string());
    output::first_line(text.unwrap_or(&Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_name_ends_at_the_first_slash() {
        assert_eq!(split("a/b", "prompt").ok(), Some(("a", "b")));
        assert_eq!(split("a/file:///b", "resource").ok(), Some(("a", "file:///b")));
        for wrong in ["a", "a/", "/b", "", "/"] {
            assert_eq!(
                split(wrong, "prompt").map_err(|failed| failed.code),
                Err(crate::cli::USAGE),
                "{wrong}"
            );
        }
    }
}
