//! Tables of names and values to pass on: the environment of a child, the headers of a request.

use std::collections::BTreeMap;

use toml::Spanned;

use super::{SecretValue, diagnostic::ConfigProblem};

/// The table as written in the file.
pub(super) type VariableTable = Spanned<BTreeMap<Spanned<String>, SecretValue>>;

/// Returns the variables for a child.
pub(super) fn of_environment(
    table: Option<VariableTable>,
) -> Result<BTreeMap<String, SecretValue>, ConfigProblem> {
    let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
    let is_value = |value: &str| !value.contains('\0');
    let mut checked = BTreeMap::new();
    for (name, value) in table.map(Spanned::into_inner).unwrap_or_default() {
        if !is_name(name.get_ref()) {
            let message =
                format!("`{}` is not the name of an environment variable", name.get_ref());
            return Err(ConfigProblem::at(name.span(), message).help("write a name without `=`"));
        }
        check_value(&name, &value, is_value)?;
        checked.insert(name.into_inner(), value);
    }
    Ok(checked)
}

/// Returns the headers for an endpoint.
pub(super) fn of_headers(
    table: Option<VariableTable>,
) -> Result<BTreeMap<String, SecretValue>, ConfigProblem> {
    let is_value = |value: &str| hyper::header::HeaderValue::from_str(value).is_ok();
    let mut checked = BTreeMap::new();
    for (name, value) in table.map(Spanned::into_inner).unwrap_or_default() {
        let problem = |message: String| ConfigProblem::at(name.span(), message);
        if !is_header(name.get_ref()) {
            return Err(problem(format!(
                "`{}` is not the name of a header to set",
                name.get_ref()
            ))
            .help("write a valid name; metamcp sets the headers of the protocol itself"));
        }
        check_value(&name, &value, is_value)?;
        let is_same = |known: &String| known.eq_ignore_ascii_case(name.get_ref());
        if checked.keys().any(is_same) {
            return Err(problem(format!("`{}` is declared twice", name.get_ref()))
                .help("remove one: HTTP ignores the case of header names"));
        }
        checked.insert(name.into_inner(), value);
    }
    Ok(checked)
}

/// Checks that a literal can be passed on, and that a credential has a valid name.
fn check_value(
    name: &Spanned<String>,
    value: &SecretValue,
    is_value: fn(&str) -> bool,
) -> Result<(), ConfigProblem> {
    if let SecretValue::Literal(text) = value
        && !is_value(text)
    {
        let message =
            format!("the value of `{}` has characters that cannot be sent", name.get_ref());
        return Err(
            ConfigProblem::at(name.span(), message).help("remove line breaks and NUL characters")
        );
    }
    value.check_name().map_err(|refusal| ConfigProblem::refused(name.span(), refusal))
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
