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
    checked(table, is_variable, is_text, "an environment variable")
}

/// Returns the headers for an endpoint.
pub(super) fn of_headers(
    table: Option<VariableTable>,
) -> Result<BTreeMap<String, SecretValue>, ConfigProblem> {
    checked(table, is_header, is_header_text, "a header to set")
}

fn checked(
    table: Option<VariableTable>,
    is_name: fn(&str) -> bool,
    is_value: fn(&str) -> bool,
    what: &str,
) -> Result<BTreeMap<String, SecretValue>, ConfigProblem> {
    let Some(table) = table else { return Ok(BTreeMap::new()) };
    let mut checked = BTreeMap::new();
    for (name, value) in table.into_inner() {
        let problem = |message: String| ConfigProblem::at(name.span(), message);
        if !is_name(name.get_ref()) {
            return Err(problem(format!("`{}` is not the name of {what}", name.get_ref())));
        }
        match &value {
            SecretValue::Literal(text) if !is_value(text) => {
                let message =
                    format!("the value of `{}` has characters that cannot be sent", name.get_ref());
                return Err(problem(message).help("remove line breaks and NUL characters"));
            }
            SecretValue::Credential(credential) if !SecretValue::is_credential_name(credential) => {
                return Err(problem(format!("`credential:{credential}` is not a credential name"))
                    .help("write the plain name of a file, as in \"credential:token\""));
            }
            _ => {}
        }
        // HTTP ignores the case of header names: one of the two would be lost.
        if what.contains("header")
            && checked.keys().any(|known: &String| known.eq_ignore_ascii_case(name.get_ref()))
        {
            return Err(problem(format!("`{}` is there twice", name.get_ref())));
        }
        checked.insert(name.into_inner(), value);
    }
    Ok(checked)
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn is_text(value: &str) -> bool {
    !value.contains('\0')
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

fn is_header_text(value: &str) -> bool {
    hyper::header::HeaderValue::from_str(value).is_ok()
}
