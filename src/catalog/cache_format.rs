//! The cache file of one server, as bytes. Pure.
//!
//! ```text
//!  {"format":1,"server":"git","declared":"5d41…","checksum":"7b2c…","read":1767225600}
//!  {"protocolVersion":"2025-11-25","profile":{…},"tools":[…],"prompts":[…]}
//! ```
//!
//! The second part holds the items as the server wrote them. The file is not trusted: its content
//! passes the same checks as a server's answer.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    Listing,
    definition_hash::CatalogDigest,
    server_lists::{KnownLists, LISTS},
};
use crate::{
    config::defaults,
    protocol::{
        Era,
        list_page::{ListKind, ListPage},
        nesting_depth::is_too_deep,
        payloads::ServerProfile,
    },
    server_name::ServerName,
};

/// The version of the file format. A file of any other version is not read.
const FORMAT: u32 = 1;

#[derive(Deserialize, Serialize)]
struct Header<'a> {
    format: u32,
    server: &'a str,
    declared: &'a str,
    checksum: &'a str,
    /// Seconds since 1970.
    read: u64,
}

/// The members that every version of the format has.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// The reason why a file is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CacheFileError {
    /// The file is for another declaration or in another format. That is not a fault.
    #[error("it belongs to another declaration or format")]
    Foreign,
    /// The file is not as metamcp writes it.
    #[error("{0}")]
    Corrupt(&'static str),
}

/// Returns the file for a server, and the digest of its body.
pub(super) fn write(server: &ServerName, known: &KnownLists) -> (Vec<u8>, CatalogDigest) {
    let mut body = String::from("{");
    if let Some(profile) = known.profile() {
        let version = serde_json::json!(profile.protocol_version);
        let result = serde_json::Value::Object(profile.result.clone());
        body += &format!(r#""protocolVersion":{version},"profile":{result}"#);
    }
    for list in LISTS {
        let Some(reading) = known.reading(list) else { continue };
        let comma = if body.len() > 1 { "," } else { "" };
        body += &format!("{comma}{:?}:[", list.member());
        for (at, item) in reading.listing.iter().enumerate() {
            body += if at == 0 { "\n" } else { ",\n" };
            body += item.json();
        }
        body.push(']');
    }
    body += "}\n";
    let digest = CatalogDigest::of(body.as_bytes());
    let since = known.read().unwrap_or(SystemTime::UNIX_EPOCH);
    let header = Header {
        format: FORMAT,
        server: server.as_str(),
        declared: &known.declared.map(|declared| declared.to_string()).unwrap_or_default(),
        checksum: &digest.to_string(),
        read: since.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()),
    };
    let mut bytes = serde_json::to_vec(&header).unwrap_or_default();
    bytes.push(b'\n');
    bytes.extend_from_slice(body.as_bytes());
    // The digest leaves out the header: the time of the read is not a part of the content.
    (bytes, digest)
}

/// Reads what [`write()`] wrote for this server.
///
/// # Errors
///
/// [`CacheFileError`] if the file is anything else.
pub(super) fn read(
    server: &ServerName,
    declared: CatalogDigest,
    bytes: &[u8],
) -> Result<KnownLists, CacheFileError> {
    use CacheFileError::{Corrupt, Foreign};
    let text = std::str::from_utf8(bytes).map_err(|_| Corrupt("it is not UTF-8"))?;
    let (header, body) = text.split_once('\n').ok_or(Corrupt("it has no header"))?;
    let Format { format } =
        serde_json::from_str(header).map_err(|_| Corrupt("it has no header"))?;
    if format != FORMAT {
        return Err(Foreign);
    }
    let header: Header<'_> =
        serde_json::from_str(header).map_err(|_| Corrupt("it has no header"))?;
    if header.server != server.as_str() {
        return Err(Corrupt("it belongs to another server"));
    }
    if header.declared != declared.to_string() {
        return Err(Foreign);
    }
    let checksum = CatalogDigest::of(body.as_bytes());
    if header.checksum != checksum.to_string() {
        return Err(Corrupt("its checksum is wrong"));
    }
    if is_too_deep(body.as_bytes()) {
        return Err(Corrupt("it is nested too deep"));
    }
    let members: Members<'_> = serde_json::from_str(body).map_err(|_| Corrupt("it is not JSON"))?;
    let mut lists = Vec::new();
    for list in LISTS {
        if let Some(items) = members.get(list.member()) {
            lists.push((list, listing(list, items.get())?));
        }
    }
    let now = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(header.read));
    let since = now.unwrap_or(SystemTime::UNIX_EPOCH);
    Ok(KnownLists::restored(declared, profile(&members)?, lists, since, checksum))
}

/// Writes again what it reads from `body` below a valid header, and returns the new body; `None` if
/// `body` is not understood. For the fuzz targets.
#[doc(hidden)]
pub fn rewritten(body: &str) -> Option<String> {
    let server = ServerName::new("a").expect("it is a name");
    let (declared, checksum) =
        (CatalogDigest::of(b""), CatalogDigest::of(body.as_bytes()).to_string());
    let header = Header {
        format: FORMAT,
        server: server.as_str(),
        declared: &declared.to_string(),
        checksum: &checksum,
        read: 0,
    };
    let header = serde_json::to_string(&header).ok()?;
    let known = read(&server, declared, format!("{header}\n{body}").as_bytes()).ok()?;
    let (written, _) = write(&server, &known);
    let (_, body) = std::str::from_utf8(&written).ok()?.split_once('\n')?;
    Some(body.to_owned())
}

/// The members of the body, each as JSON text.
type Members<'a> = HashMap<&'a str, &'a RawValue>;

/// Returns one of the lists, which has these items, JSON text.
fn listing(list: ListKind, items: &str) -> Result<Listing, CacheFileError> {
    let page = ListPage::of_items(list, items)
        .map_err(|_| CacheFileError::Corrupt("one of its lists is not an array"))?;
    if !page.rejected.is_empty() {
        return Err(CacheFileError::Corrupt(
            "one of its lists has items that are not shown to clients",
        ));
    }
    if page.items.len() > defaults::CACHED_ITEMS_MAX {
        return Err(CacheFileError::Corrupt("one of its lists is too long"));
    }
    Ok(Listing::new(page.items))
}

fn profile(members: &Members<'_>) -> Result<Option<ServerProfile>, CacheFileError> {
    let corrupt = || CacheFileError::Corrupt("its profile of the server is malformed");
    let version = members.get("protocolVersion").map(|version| serde_json::from_str(version.get()));
    let version: Option<String> = version.transpose().map_err(|_| corrupt())?;
    let (Some(version), Some(result)) = (version, members.get("profile")) else {
        return Ok(None);
    };
    let profile = match Era::of(&version) {
        Some(Era::Modern) => ServerProfile::discovered(result.get()),
        Some(Era::Legacy) | None => ServerProfile::read(result.get()),
    };
    match profile {
        Ok(profile) if profile.protocol_version == version => Ok(Some(profile)),
        _ => Err(corrupt()),
    }
}

#[cfg(test)]
mod tests;
