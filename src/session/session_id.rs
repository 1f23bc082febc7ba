//! Session ids that contain the state that must survive a restart, and cannot be forged.
//!
//! ```text
//!  m1.BODY.TAG     BODY and TAG in URL-safe Base64, without padding
//!     │    └────── HMAC-SHA-256 of everything before it
//!     └─────────── number 16 | issued, Unix seconds 8 | protocol version 10 | capabilities, JSON
//! ```
//!
//! Any process with the same key can read an id that it has never seen: after a restart, or as
//! another replica. The body is not secret, because the client knows it.
//!
//! A forged id would gain little. metamcp serves clients without an id too, and servers' questions
//! go only to the client's own streams. An id protects the session's stream, questions and running
//! requests. An attack on these needs another client's id, which has 122 random bits; that needs no
//! signature. The signature ensures that a strict service accepts only ids that it has issued.
//!
//! Pure: no clock and no I/O.

use std::{borrow::Cow, fmt};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Map, Value, json};
use sha2::Sha256;

use crate::{
    config::defaults,
    protocol::{mcp_apps, version},
};

/// The format version of an id.
const PREFIX: &str = "m1.";

/// The purpose in each tag, so that another use of the same key never signs a session id.
const PURPOSE: &[u8] = b"metamcp session id\0";

const TAG_BYTES: usize = 32;
const VERSION_BYTES: usize = 10;

/// The content of a session id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionTicket {
    /// The unique number of the session.
    pub number: u128,
    /// The time of issue, in seconds since 1970.
    pub issued: u64,
    /// The negotiated protocol version.
    pub version: &'static str,
    /// The client's capabilities, JSON text.
    pub capabilities: Box<str>,
}

/// A signer that issues and verifies session ids.
#[derive(Clone)]
pub struct SessionSigner(Hmac<Sha256>);

impl fmt::Debug for SessionSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionSigner")
    }
}

impl SessionTicket {
    /// Returns a ticket for a new session.
    pub fn new(issued: u64, version: &'static str, capabilities: &str) -> Self {
        let number = uuid::Uuid::new_v4().as_u128();
        Self { number, issued, version, capabilities: fitted(capabilities).into() }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut body = self.number.to_be_bytes().to_vec();
        body.extend(self.issued.to_be_bytes());
        body.extend(self.version.as_bytes());
        body.extend(self.capabilities.as_bytes());
        body
    }

    fn from_bytes(body: &[u8]) -> Option<Self> {
        let (number, rest) = body.split_first_chunk()?;
        let (issued, rest) = rest.split_first_chunk()?;
        let (version, capabilities) = rest.split_first_chunk::<VERSION_BYTES>()?;
        // An unsupported version: the client must repeat the handshake.
        let version =
            version::LEGACY.into_iter().find(|known| known.as_bytes() == version.as_slice())?;
        Some(Self {
            number: u128::from_be_bytes(*number),
            issued: u64::from_be_bytes(*issued),
            version,
            capabilities: std::str::from_utf8(capabilities).ok()?.into(),
        })
    }
}

impl SessionSigner {
    /// Returns a signer with this key.
    pub fn new(key: &[u8]) -> Self {
        let mut mac = Hmac::new_from_slice(key).expect("HMAC takes keys of any length");
        mac.update(PURPOSE);
        Self(mac)
    }

    /// Returns the session id for this ticket.
    pub fn issue(&self, ticket: &SessionTicket) -> String {
        let mut id = PREFIX.to_owned();
        URL_SAFE_NO_PAD.encode_string(ticket.to_bytes(), &mut id);
        let tag = self.0.clone().chain_update(&id).finalize().into_bytes();
        id.push('.');
        URL_SAFE_NO_PAD.encode_string(tag, &mut id);
        id
    }

    /// Returns the ticket in a session id that was signed with this key, whatever its age.
    pub fn read(&self, id: &str) -> Option<SessionTicket> {
        let (signed, tag) = id.rsplit_once('.')?;
        let body = signed.strip_prefix(PREFIX)?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok().filter(|tag| tag.len() == TAG_BYTES)?;
        // Compares in constant time.
        self.0.clone().chain_update(signed).verify_slice(&tag).ok()?;
        SessionTicket::from_bytes(&URL_SAFE_NO_PAD.decode(body).ok()?)
    }
}

/// Returns the capabilities to put into an id: unchanged if they fit, else only those that servers
/// use.
fn fitted(capabilities: &str) -> Cow<'_, str> {
    if capabilities.len() <= defaults::SESSION_CAPABILITIES_BYTES_MAX {
        return capabilities.into();
    }
    // Source: MCP 2025-11-25, `ClientCapabilities`, and the extensions that metamcp uses.
    let known = json!({
        "elicitation": { "form": {}, "url": {} },
        "extensions": { mcp_apps::EXTENSION: {} },
        "roots": { "listChanged": {} },
        "sampling": { "context": {}, "tools": {} },
        "tasks": {
            "cancel": {}, "list": {},
            "requests": { "elicitation": { "create": {} }, "sampling": { "createMessage": {} } },
        },
    });
    let declared: Value = serde_json::from_str(capabilities).unwrap_or_default();
    let both = (declared.as_object(), known.as_object());
    let (Some(declared), Some(known)) = both else { return "{}".into() };
    Value::Object(intersection(declared, known)).to_string().into()
}

/// Returns the members of `declared` that `known` contains, recursively.
fn intersection(declared: &Map<String, Value>, known: &Map<String, Value>) -> Map<String, Value> {
    let both = known.iter().filter_map(|(name, known)| Some((name, declared.get(name)?, known)));
    let kept = both.filter_map(|(name, declared, known)| {
        let kept = match (declared, known) {
            (Value::Object(declared), Value::Object(known)) => intersection(declared, known).into(),
            (Value::Bool(declared), _) => (*declared).into(),
            // Other values have no meaning.
            _ => return None,
        };
        Some((name.clone(), kept))
    });
    kept.collect()
}

#[cfg(test)]
mod tests;
