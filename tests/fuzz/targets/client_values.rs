//! The fuzz targets for values that clients send: session ids, cursors, field paths, schemas, URIs.

use std::sync::atomic::AtomicBool;

use metamcp::{
    capacity_holder::Account,
    meta::CursorScope,
    protocol::{ObjectMembers, mcp_apps},
    session::{SessionSigner, SessionTicket},
    tool::{FieldSelection, SchemaCache},
};
use serde_json::value::RawValue;

use super::two_texts;

/// Checks that only a signed session id is accepted, and that it returns its content.
pub(super) fn session(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let seal = SessionSigner::new(b"a key");
    assert_eq!(seal.read(text), None, "an unsigned text is refused");
    let id = seal.issue(&SessionTicket::new(7, "2025-11-25", text));
    let read = seal.read(&id).expect("its signature is valid");
    assert_eq!(seal.issue(&read), id);
    let (place, other) = (data.first().map_or(0, |at| usize::from(*at)), b'~');
    let mut forged = id.clone().into_bytes();
    let at = place % forged.len();
    forged[at] = other;
    assert_eq!(seal.read(&String::from_utf8_lossy(&forged)), None);
}

/// Checks that a cursor made by metamcp leads to its page, and any other text to no distant one.
pub(super) fn cursor(data: &[u8]) {
    let Some((text, question)) = two_texts(data) else { return };
    let question = CursorScope::new(&[question]);
    question.offset(7, text).ok();
    let offset = data.len() << (data.len() % 32);
    assert_eq!(question.offset(7, &question.cursor(7, offset)), Ok(offset));
    assert!(question.offset(8, &question.cursor(7, offset)).is_err());
}

/// Checks that paths of `fields`, in the first line, applied to a result, give JSON.
pub(super) fn fields(data: &[u8]) {
    let Some((paths, result)) = two_texts(data) else { return };
    let Ok(fields) = FieldSelection::parse(paths.split(',')) else { return };
    if serde_json::from_str::<&RawValue>(result).is_err() {
        return;
    }
    let applied = fields.apply(result, &AtomicBool::new(false));
    serde_json::from_str::<&RawValue>(&applied).expect("it is still JSON");
}

/// Checks that arguments are validated against the schema in the first line within the step limit,
/// twice with the same outcome.
pub(super) fn schema(data: &[u8]) {
    let Some((schema, args)) = two_texts(data) else { return };
    if [schema, args].into_iter().any(|text| serde_json::from_str::<&RawValue>(text).is_err()) {
        return;
    }
    let validators = SchemaCache::default();
    let first = validators.check(Account::Service, schema, args, None);
    if let Some(second) = validators.check_briefly(Account::Service, schema, args) {
        let (first, second) = (format!("{first:?}"), format!("{second:?}"));
        // A brief check has fewer steps.
        assert!(first == second || first.starts_with("Unchecked"), "{first} {second}");
    }
}

/// Checks that the page URI of a tool is prefixed with its server, reversibly.
pub(super) fn page(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Some(exposed) = mcp_apps::exposed("a", text) {
        assert_eq!(mcp_apps::split(&exposed), Some(("a", text.to_owned())));
    }
    mcp_apps::split(text);
    mcp_apps::supports_apps(text);
    mcp_apps::is_app_only(text);
    if let Some(tool) = mcp_apps::with_exposed_page("a", text) {
        serde_json::from_str::<&RawValue>(&tool).expect("it is still JSON");
        assert!(mcp_apps::has_page(text) && mcp_apps::has_page(&tool));
        let name = |tool| ObjectMembers::one(tool, "name").map(str::to_owned);
        assert_eq!(name(text), name(&tool));
    }
}
