//! The members of parameters that metamcp reads or rewrites.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// The known members as spans of the text; all others are skipped.
#[derive(Default)]
pub(super) struct ParamSpans<'a> {
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

/// The name of a member, matched without a copy.
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

impl<'de: 'a, 'a> Deserialize<'de> for ParamSpans<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParamsVisitor)
    }
}

/// A visitor that reads the members of an object. Other values, such as arrays, yield none.
struct ParamsVisitor;

/// Reads the value of the member `name`, which must not be repeated. Readers differ on which one
/// counts, so metamcp might route by another value than the server uses.
fn once<'de, A: MapAccess<'de>>(
    member: &mut Option<&'de RawValue>,
    map: &mut A,
    name: &'static str,
) -> Result<(), A::Error> {
    match member.replace(map.next_value()?) {
        None => Ok(()),
        Some(_) => Err(Error::duplicate_field(name)),
    }
}

impl<'de> Visitor<'de> for ParamsVisitor {
    type Value = ParamSpans<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("parameters")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut params = ParamSpans::default();
        while let Some(key) = map.next_key()? {
            match key {
                Key::Meta => {
                    once(&mut params.meta, &mut map, "_meta")?;
                    if let Some(meta) = params.meta.filter(|meta| meta.get().starts_with('{')) {
                        let Token(token) =
                            serde_json::from_str(meta.get()).map_err(Error::custom)?;
                        params.meta_token = token;
                    }
                }
                Key::ProgressToken => once(&mut params.token, &mut map, "progressToken")?,
                Key::RequestId => once(&mut params.request_id, &mut map, "requestId")?,
                Key::Name => once(&mut params.name, &mut map, "name")?,
                Key::Uri => once(&mut params.uri, &mut map, "uri")?,
                Key::Cursor => once(&mut params.cursor, &mut map, "cursor")?,
                Key::ProtocolVersion => {
                    once(&mut params.protocol_version, &mut map, "protocolVersion")?;
                }
                Key::Capabilities => once(&mut params.capabilities, &mut map, "capabilities")?,
                Key::Level => once(&mut params.level, &mut map, "level")?,
                Key::Progress => once(&mut params.progress, &mut map, "progress")?,
                Key::RequestState => once(&mut params.request_state, &mut map, "requestState")?,
                Key::InputResponses => {
                    once(&mut params.input_responses, &mut map, "inputResponses")?;
                }
                Key::Reference => once(&mut params.reference, &mut map, "ref")?,
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(params)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(ParamSpans::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(ParamSpans::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(ParamSpans::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(ParamSpans::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(ParamSpans::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(ParamSpans::default())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(ParamSpans::default())
    }
}

/// The progress token of a `_meta` object; other members are skipped.
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
                MetaKey::ProgressToken => once(&mut token, &mut map, "progressToken")?,
                MetaKey::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Token(token))
    }
}
