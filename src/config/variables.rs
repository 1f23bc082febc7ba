//! Tables of names and values to pass on: the environment of a child, the headers of a request.

use std::collections::BTreeMap;

use toml::Spanned;

use super::{SecretValue, diagnostic::ConfigProblem, refusal::Refusal};

/// The table as written in the file.
pub(super) type VariableTable = Spanned<BTreeMap<Spanned<String>, SecretValue>>;

/// Returns the variables for a child.
pub(super) fn of_environment(
    table: Option<VariableTable>,
) -> Result<BTreeMap<String, SecretValue>, ConfigProblem> {
    let check = |name: &str, _: &BTreeMap<String, _>| {
        if !name.is_empty() && !name.contains(['=', '\0']) {
            return Ok(());
        }
        // Not shown: a name with `=` has the value in it.
        let message = "a key is not the name of an environment variable";
        Err(Refusal::new(message, "write a name without `=`"))
    };
    checked(table, check, |value| !value.contains('\0'))
}

/// Returns the headers for an endpoint.
pub(super) fn of_headers(
    table: Option<VariableTable>,
) -> Result<BTreeMap<String, SecretValue>, ConfigProblem> {
    let check = |name: &str, earlier: &BTreeMap<String, _>| {
        if !is_header(name) {
            let help = "write a valid name; metamcp sets the headers of the protocol itself";
            // A name that is none may have the value in it.
            let shown = match name.parse::<hyper::header::HeaderName>() {
                Ok(_) => format!("`{name}`"),
                Err(_) => "a key".to_owned(),
            };
            return Err(Refusal::new(format!("{shown} is not the name of a header to set"), help));
        }
        if earlier.keys().any(|other| other.eq_ignore_ascii_case(name)) {
            let help = "remove one: HTTP ignores the case of header names";
            return Err(Refusal::new(format!("`{name}` is declared twice"), help));
        }
        Ok(())
    };
    checked(table, check, |value| hyper::header::HeaderValue::from_str(value).is_ok())
}

/// Checks each name with `check`, which also gets the values before it. Checks that a literal can
/// be passed on, and that a credential has a valid name.
fn checked(
    table: Option<VariableTable>,
    check: impl Fn(&str, &BTreeMap<String, SecretValue>) -> Result<(), Refusal>,
    is_value: fn(&str) -> bool,
) -> Result<BTreeMap<String, SecretValue>, ConfigProblem> {
    let mut checked = BTreeMap::new();
    for (name, value) in table.map(Spanned::into_inner).unwrap_or_default() {
        let refused = |refusal| ConfigProblem::refused(name.span(), refusal);
        check(name.get_ref(), &checked).map_err(refused)?;
        if let SecretValue::Literal(text) = &value
            && !is_value(text)
        {
            let name = name.get_ref();
            let message = format!("the value of `{name}` has characters that cannot be sent");
            return Err(refused(Refusal::new(message, "remove line breaks and NUL characters")));
        }
        value.check_name().map_err(refused)?;
        checked.insert(name.into_inner(), value);
    }
    Ok(checked)
}

/// Returns whether a header is never passed on from a client to a server: it holds a credential, or
/// belongs to one hop. Source: RFC 9110, section 7.6.1.
pub(super) fn is_private_header(name: &hyper::header::HeaderName) -> bool {
    const NEVER: [&str; 12] = [
        "authorization",
        "cookie",
        "forwarded",
        "keep-alive",
        "last-event-id",
        "origin",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "upgrade",
    ];
    NEVER.contains(&name.as_str())
}

/// Returns whether an operator may set this header; metamcp sets those of the protocol.
pub(crate) fn is_header(name: &str) -> bool {
    const OURS: [&str; 8] = [
        "accept",
        "connection",
        "content-length",
        "content-type",
        "host",
        "mcp-protocol-version",
        "mcp-session-id",
        "transfer-encoding",
    ];
    name.parse::<hyper::header::HeaderName>().is_ok_and(|name| !OURS.contains(&name.as_str()))
}
