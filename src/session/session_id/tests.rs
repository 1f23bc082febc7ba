use proptest::prelude::*;

use super::*;

const EVERYTHING: &str =
    r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}}"#;

fn signer() -> SessionSigner {
    SessionSigner::new(&[7; defaults::SESSION_KEY_BYTES])
}

fn capabilities() -> impl Strategy<Value = String> {
    let names = proptest::collection::vec("[a-z]{1,40}|é", 0..40);
    names.prop_map(|names| {
        let all: Map<String, Value> = names.into_iter().map(|name| (name, json!({}))).collect();
        Value::Object(all).to_string()
    })
}

fn ticket() -> impl Strategy<Value = SessionTicket> {
    (any::<u128>(), any::<u64>(), 0..version::LEGACY.len(), capabilities()).prop_map(
        |(number, issued, version, capabilities)| SessionTicket {
            number,
            issued,
            version: version::LEGACY[version],
            capabilities: fitted(&capabilities).into(),
        },
    )
}

proptest! {
    #[test]
    fn an_issued_ticket_is_read_back_unchanged(ticket in ticket()) {
        let id = signer().issue(&ticket);
        prop_assert_eq!(signer().read(&id), Some(ticket));
    }

    #[test]
    fn a_session_id_fits_into_a_header_and_a_url(ticket in ticket()) {
        let id = signer().issue(&ticket);
        let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        prop_assert!(id.bytes().all(is_safe), "{}", id);
        prop_assert!(id.len() <= 605, "{}", id.len());
    }

    #[test]
    fn a_session_id_with_any_flipped_bit_is_refused(ticket in ticket(), at: prop::sample::Index, bit in 0..7_u8) {
        let mut id = signer().issue(&ticket).into_bytes();
        let at = at.index(id.len());
        id[at] ^= 1 << bit;
        let id = String::from_utf8(id).expect("still ASCII");
        prop_assert_eq!(signer().read(&id), None);
    }

    #[test]
    fn a_shortened_or_extended_session_id_is_refused(ticket in ticket(), at: prop::sample::Index, more in "[ -~]{1,8}") {
        let id = signer().issue(&ticket);
        prop_assert_eq!(signer().read(&id[..at.index(id.len())]), None);
        prop_assert_eq!(signer().read(&id[at.index(id.len() - 1) + 1..]), None);
        prop_assert_eq!(signer().read(&(id.clone() + &more)), None);
        prop_assert_eq!(signer().read(&(more + &id)), None);
    }

    #[test]
    fn a_session_id_of_another_key_is_refused(ticket in ticket(), key: [u8; 32]) {
        prop_assume!(key != [7; 32]);
        prop_assert_eq!(signer().read(&SessionSigner::new(&key).issue(&ticket)), None);
    }

    #[test]
    fn no_unsigned_text_is_a_session_id(text in ".{0,300}|m1\\.[A-Za-z0-9_-]{0,300}\\.[A-Za-z0-9_-]{43}") {
        prop_assert_eq!(signer().read(&text), None);
    }

    #[test]
    fn capabilities_in_a_ticket_are_a_bounded_object(text in capabilities()) {
        let fitted = fitted(&text);
        prop_assert!(fitted.len() <= defaults::SESSION_CAPABILITIES_BYTES_MAX);
        let value: Value = serde_json::from_str(&fitted).expect("JSON");
        prop_assert!(value.is_object());
    }
}

#[test]
fn a_ticket_keeps_the_apps_extension_of_a_client_with_large_capabilities() {
    let large = json!({ "extensions": {
        mcp_apps::EXTENSION: { "mimeTypes": ["text/html;profile=mcp-app"] },
        "com.example/more": "x".repeat(defaults::SESSION_CAPABILITIES_BYTES_MAX),
    } });
    let fitted = fitted(&large.to_string()).into_owned();
    assert!(fitted.contains(mcp_apps::EXTENSION) && !fitted.contains("com.example"), "{fitted}");
}

#[test]
fn each_flipped_bit_of_a_session_id_is_detected() {
    let id = signer().issue(&SessionTicket::new(1, version::LEGACY_LATEST, EVERYTHING));
    for at in 0..id.len() {
        for bit in 0..7 {
            let mut forged = id.clone().into_bytes();
            forged[at] ^= 1 << bit;
            let forged = String::from_utf8(forged).expect("still ASCII");
            assert_eq!(signer().read(&forged), None, "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn the_format_of_session_ids_is_stable() {
    // Made with another implementation: an upgraded service must accept the ids of older versions.
    let ticket = SessionTicket {
        number: 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef,
        issued: 1_700_000_000,
        version: "2025-06-18",
        capabilities: r#"{"sampling":{}}"#.into(),
    };
    let id = "m1.ASNFZ4mrze8BI0VniavN7wAAAABlU_EAMjAyNS0wNi0xOHsic2FtcGxpbmciOnt9fQ.Cph5uxVffqLtwNclTvFpRkfExk0nRno9wAxGFT05PZ0";
    assert_eq!(signer().issue(&ticket), id);
    assert_eq!(signer().read(id), Some(ticket));
}

#[test]
fn two_sessions_never_have_the_same_id() {
    let issue = || signer().issue(&SessionTicket::new(1, version::LEGACY_LATEST, "{}"));
    assert_ne!(issue(), issue());
}

#[test]
fn a_ticket_carries_small_capabilities_exactly_as_the_client_wrote_them() {
    for text in [EVERYTHING, "{}", r#"{ "x-own" : {"a":[1,2]} }"#] {
        assert_eq!(&*SessionTicket::new(1, version::LEGACY_LATEST, text).capabilities, text);
    }
}

#[test]
fn a_ticket_reduces_large_capabilities_to_the_members_that_servers_read() {
    let mut declared: Value = serde_json::from_str(EVERYTHING).expect("JSON");
    declared["tasks"] = json!({ "list": {}, "requests": { "sampling": { "createMessage": {} } } });
    let meant = declared.clone();
    declared["experimental"] = json!({ "long": "x".repeat(1000) });
    declared["sampling"]["own"] = json!("x".repeat(1000));
    let fitted: Value = serde_json::from_str(&fitted(&declared.to_string())).expect("JSON");
    assert_eq!(fitted, meant);
    let none = format!("[{}]", "1,".repeat(500) + "1");
    assert_eq!(super::fitted(&none), "{}");
}

#[test]
fn a_key_is_never_shown() {
    assert_eq!(format!("{:?}", signer()), "SessionSigner");
}
