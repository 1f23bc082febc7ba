//! The items of a JSON array as text.
//!
//! An array of tiny items takes many times the size of its text once parsed. Each reader therefore
//! bounds the number of items.

use std::fmt;

use serde::{
    Deserializer as _,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// The largest number of items read from one page of a list: twice what a stored list may have.
pub const LIST_ITEMS_MAX: usize = 20_000;

/// The largest number of content blocks in a result that is still inspected. A parsed block takes
/// 100 bytes beside its text; no tool is known to return a thousand blocks.
pub const RESULT_BLOCKS_MAX: usize = 10_000;

/// Returns the first `n_max` items of the JSON text `array`, and the number of all items.
///
/// # Errors
///
/// The error of the JSON parser if `array` is not an array.
pub fn first_items(array: &str, n_max: usize) -> serde_json::Result<(Vec<&RawValue>, usize)> {
    let mut deserializer = serde_json::Deserializer::from_str(array);
    let found = deserializer.deserialize_seq(Reader { n_max })?;
    deserializer.end()?;
    Ok(found)
}

/// Returns all items of the JSON text `array`, or `None` if it is not an array or exceeds `n_max`.
pub fn all_items(array: &str, n_max: usize) -> Option<Vec<&RawValue>> {
    first_items(array, n_max).ok().filter(|(_, n_items)| *n_items <= n_max).map(|(items, _)| items)
}

/// Returns the JSON text `array` with `item` added at the start, or `None` if it is not an array.
pub fn with_first(array: &str, item: &str) -> Option<String> {
    let (_, n_items) = first_items(array, 0).ok()?;
    let rest = array.trim_ascii_start().strip_prefix('[')?;
    let comma = if n_items == 0 { "" } else { "," };
    Some(["[", item, comma, rest].concat())
}

/// Returns the JSON text `array` with `item` added at the end, or `None` if it is not an array.
pub fn with_last(array: &str, item: &str) -> Option<String> {
    let (_, n_items) = first_items(array, 0).ok()?;
    let rest = array.trim_ascii_end().strip_suffix(']')?;
    let comma = if n_items == 0 { "" } else { "," };
    Some([rest, comma, item, "]"].concat())
}

struct Reader {
    n_max: usize,
}

impl<'de> Visitor<'de> for Reader {
    type Value = (Vec<&'de RawValue>, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while items.len() < self.n_max
            && let Some(item) = seq.next_element()?
        {
            items.push(item);
        }
        let mut n_items = items.len();
        while seq.next_element::<IgnoredAny>()?.is_some() {
            n_items += 1;
        }
        Ok((items, n_items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_beyond_the_bound_are_only_counted() {
        let (first, n_items) = first_items(" [1, [2] ,{}] ", 2).expect("an array");
        let first: Vec<&str> = first.into_iter().map(RawValue::get).collect();
        assert_eq!((first, n_items), (vec!["1", "[2]"], 3));
        assert_eq!(all_items("[1,2,3]", 3).map(|items| items.len()), Some(3));
        for (array, n_max) in [("[1,2,3]", 2), ("{}", 2), ("[1", 2), ("[1]]", 2)] {
            assert!(all_items(array, n_max).is_none(), "{array}");
        }
    }

    #[test]
    fn an_item_is_added_at_either_end() {
        for (array, first, last) in [
            ("[]", "[0]", "[0]"),
            (" [ ] ", "[0 ] ", " [ 0]"),
            ("[1, 2]", "[0,1, 2]", "[1, 2,0]"),
            (" [1 ] ", "[0,1 ] ", " [1 ,0]"),
        ] {
            assert_eq!(with_first(array, "0").as_deref(), Some(first));
            assert_eq!(with_last(array, "0").as_deref(), Some(last));
        }
        assert_eq!((with_first("{}", "0"), with_last("7", "0")), (None, None));
    }
}
