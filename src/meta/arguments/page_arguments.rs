//! The arguments for one page of a list.

use super::{error::ArgumentError, field_reader::FieldReader};
use crate::config::defaults;

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageArguments {
    /// The maximum number of entries: 1 to [`defaults::DISCOVER_LIMIT_MAX`].
    pub limit: usize,
    /// The position at which it begins.
    pub cursor: Option<String>,
}

impl PageArguments {
    /// Reads `limit` and `cursor`.
    pub(in crate::meta) fn read(fields: &FieldReader<'_>) -> Result<Self, ArgumentError> {
        let limit = fields.count("limit", 1, defaults::DISCOVER_LIMIT_MAX)?;
        Ok(Self {
            limit: limit.unwrap_or(defaults::DISCOVER_LIMIT),
            cursor: fields.text("cursor")?,
        })
    }
}
