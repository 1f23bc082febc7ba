//! The members of parameters that a hop reads or rewrites.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Where they are; the rest is passed over.
#[derive(Default)]
pub(super) struct Params<'a> {
    pub(super) meta: Option<&'a RawValue>,
    pub(super) meta_token: Option<&'a RawValue>,
    pub(super) token: Option<&'a RawValue>,
    pub(super) request_id: Option<&'a RawValue>,
    pub(super) name: Option<&'a RawValue>,
    pub(super) uri: Option<&'a RawValue>,
    pub(super) cursor: Option<&'a RawValue>,
    pub(super) protocol_version: Option<&'a RawValue>,
    pub(super) capabilities: Option<&'a RawValue>,
    pub(super) level: Option<&'a RawValue>,
    pub(super) progress: Option<&'a RawValue>,
    pub(super) request_state: Option<&'a RawValue>,
    pub(super) input_responses: Option<&'a RawValue>,
    pub(super) reference: Option<&'a RawValue>,
}

/// A member of parameters, told by its name without a copy of it.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    #[serde(rename = "_meta")]
    Meta,
    ProgressToken,
    RequestId,
    Name,
    Uri,
    Cursor,
    ProtocolVersion,
    Capabilities,
    Level,
    Progress,
    RequestState,
    InputResponses,
    #[serde(rename = "ref")]
    Reference,
    #[serde(other)]
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Params<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParamsVisitor)
    }
}

/// Picks members out of an object; anything else (JSON-RPC allows arrays) has none of them.
struct ParamsVisitor;

impl<'de> Visitor<'de> for ParamsVisitor {
    type Value = Params<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("parameters")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut params = Params::default();
        while let Some(key) = map.next_key()? {
            match key {
                Key::Meta => {
                    let meta: &RawValue = map.next_value()?;
                    // Which one counts is up to the reader: ours may differ from the server's.
                    if params.meta.replace(meta).is_some() {
                        return Err(Error::duplicate_field("_meta"));
                    }
                    if meta.get().starts_with('{') {
                        let Token(token) =
                            serde_json::from_str(meta.get()).map_err(Error::custom)?;
                        params.meta_token = token;
                    }
                }
                Key::ProgressToken => params.token = Some(map.next_value()?),
                Key::RequestId => params.request_id = Some(map.next_value()?),
                Key::Name => params.name = Some(map.next_value()?),
                Key::Uri => params.uri = Some(map.next_value()?),
                Key::Cursor => params.cursor = Some(map.next_value()?),
                Key::ProtocolVersion => params.protocol_version = Some(map.next_value()?),
                Key::Capabilities => params.capabilities = Some(map.next_value()?),
                Key::Level => params.level = Some(map.next_value()?),
                Key::Progress => params.progress = Some(map.next_value()?),
                Key::RequestState => params.request_state = Some(map.next_value()?),
                Key::InputResponses => params.input_responses = Some(map.next_value()?),
                Key::Reference => params.reference = Some(map.next_value()?),
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(params)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Params::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Params::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Params::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Params::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Params::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Params::default())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Params::default())
    }
}

/// The progress token of a `_meta` object, whatever else is in it.
struct Token<'a>(Option<&'a RawValue>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum MetaKey {
    ProgressToken,
    #[serde(other)]
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Token<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TokenVisitor)
    }
}

struct TokenVisitor;

impl<'de> Visitor<'de> for TokenVisitor {
    type Value = Token<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut token = None;
        while let Some(key) = map.next_key()? {
            match key {
                MetaKey::ProgressToken => token = Some(map.next_value()?),
                MetaKey::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Token(token))
    }
}
