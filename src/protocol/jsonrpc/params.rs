//! The members of parameters that metamcp reads or rewrites.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

use super::present;

/// The known members as spans of the text; all others are skipped.
///
/// A repeated member is an error. Readers differ on which one counts, so metamcp might route by
/// another value than the server uses.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ParamSpans<'a> {
    #[serde(borrow, rename = "_meta", deserialize_with = "present")]
    pub(super) meta: Option<&'a RawValue>,
    /// The progress token in `_meta`.
    #[serde(skip)]
    pub(super) meta_token: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) progress_token: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) request_id: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) uri: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) cursor: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) protocol_version: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) capabilities: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) level: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) progress: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) request_state: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) input_responses: Option<&'a RawValue>,
    #[serde(borrow, rename = "ref", deserialize_with = "present")]
    pub(super) reference: Option<&'a RawValue>,
}

/// Reads parameters of any type. Other values than objects, such as arrays, have no members.
pub(super) fn members<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ParamSpans<'de>>, D::Error> {
    deserializer.deserialize_any(ParamsVisitor).map(Some)
}

/// The member of a `_meta` object that metamcp reads.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetaSpans<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    progress_token: Option<&'a RawValue>,
}

struct ParamsVisitor;

impl<'de> Visitor<'de> for ParamsVisitor {
    type Value = ParamSpans<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("parameters")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let mut params = ParamSpans::deserialize(MapAccessDeserializer::new(map))?;
        if let Some(meta) = params.meta.filter(|meta| meta.get().starts_with('{')) {
            let meta: MetaSpans<'_> = serde_json::from_str(meta.get()).map_err(Error::custom)?;
            params.meta_token = meta.progress_token;
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
