//! Session ids that say themselves what a restart loses, and cannot be forged.
//!
//! ```text
//!  m1.BODY.TAG     BODY and TAG in the URL's alphabet of base 64, without padding
//!     │    └────── HMAC-SHA-256 of all that is before it
//!     └─────────── number 16 | issued, seconds since 1970 8 | protocol version 10 | capabilities, JSON
//! ```
//!
//! Any process with the same key reads an id that it has never seen: after a restart, or as another
//! replica. What the body says is no secret; a client knows it.
//!
//! A forged id would gain little: everybody who reaches the port is served without one, and what
//! servers may ask a client is asked on that client's own streams. What an id protects is the session
//! itself, its stream, its questions, its running requests. That takes the id of somebody else, of
//! which 122 bits are random; no signature is needed for that. It is what holds a strict service to
//! its word that it knows the sessions that it serves.
//!
//! Pure: no clock and no I/O.

use std::{borrow::Cow, fmt};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Map, Value, json};
use sha2::Sha256;

use crate::{
    config::defaults,
    protocol::{apps, version},
};

/// The form of an id. Another form gets another one.
const FORM: &str = "m1.";

/// What a tag is made for, so that a key that signs something else, too, signs no session id.
const PURPOSE: &[u8] = b"metamcp session id\0";

const TAG_BYTES: usize = 32;
const VERSION_BYTES: usize = 10;

/// What a session id says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionTicket {
    /// Tells sessions apart.
    pub number: u128,
    /// When it was issued, in seconds since 1970.
    pub issued: u64,
    /// The protocol version that was negotiated.
    pub version: &'static str,
    /// The client's capabilities, JSON text.
    pub capabilities: Box<str>,
}

/// Signs session ids, and knows those that it has signed.
#[derive(Clone)]
pub struct SessionSigner(Hmac<Sha256>);

impl fmt::Debug for SessionSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl SessionTicket {
    /// Returns one for a session that begins now.
    pub fn new(issued: u64, version: &'static str, capabilities: &str) -> Self {
        let number = uuid::Uuid::new_v4().as_u128();
        Self { number, issued, version, capabilities: carried(capabilities).into() }
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
        // A version that we do not know any more, or not yet: the client has to shake hands again.
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
    /// Returns the one with this key.
    pub fn new(key: &[u8]) -> Self {
        let mut mac = Hmac::new_from_slice(key).expect("HMAC takes keys of any length");
        mac.update(PURPOSE);
        Self(mac)
    }

    /// Returns the session id that says this.
    pub fn issue(&self, ticket: &SessionTicket) -> String {
        let mut id = FORM.to_owned();
        URL_SAFE_NO_PAD.encode_string(ticket.to_bytes(), &mut id);
        let tag = self.0.clone().chain_update(&id).finalize().into_bytes();
        id.push('.');
        URL_SAFE_NO_PAD.encode_string(tag, &mut id);
        id
    }

    /// Returns what a session id says that was signed with our key, however old it is.
    pub fn read(&self, id: &str) -> Option<SessionTicket> {
        let (signed, tag) = id.rsplit_once('.')?;
        let body = signed.strip_prefix(FORM)?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok().filter(|tag| tag.len() == TAG_BYTES)?;
        // In constant time.
        self.0.clone().chain_update(signed).verify_slice(&tag).ok()?;
        SessionTicket::from_bytes(&URL_SAFE_NO_PAD.decode(body).ok()?)
    }
}

/// Returns a client's capabilities as an id carries them: as they are, if they fit, else what servers
/// look at.
fn carried(capabilities: &str) -> Cow<'_, str> {
    if capabilities.len() <= defaults::SESSION_CAPABILITIES_BYTES_MAX {
        return capabilities.into();
    }
    // Source: MCP 2025-11-25, `ClientCapabilities`, and the extensions that we look at.
    let known = json!({
        "elicitation": { "form": {}, "url": {} },
        "extensions": { apps::EXTENSION: {} },
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
    Value::Object(shared(declared, known)).to_string().into()
}

/// Returns the members of `declared` that are known, each as far as it is.
fn shared(declared: &Map<String, Value>, known: &Map<String, Value>) -> Map<String, Value> {
    let both = known.iter().filter_map(|(name, known)| Some((name, declared.get(name)?, known)));
    let kept = both.filter_map(|(name, declared, known)| {
        let kept = match (declared, known) {
            (Value::Object(declared), Value::Object(known)) => shared(declared, known).into(),
            (Value::Bool(declared), _) => (*declared).into(),
            // Nothing that is declared so has a meaning.
            _ => return None,
        };
        Some((name.clone(), kept))
    });
    kept.collect()
}

#[cfg(test)]
mod tests;
