//! Arguments that spend a step at each look at them.
//!
//! A validator sees the arguments only through the traits of [`jsonschema::json`]. So no keyword
//! can look at a value, compare it or report it without spending the cost.

use std::{
    borrow::Cow,
    cell::Cell,
    collections::HashMap,
    hash::{BuildHasher as _, Hash as _, Hasher, RandomState},
};

use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object, SerdeJson, cmp},
};
use serde_json::{Map, Number, Value};

use super::step_budget::spend;

/// The number of bytes of text that one step compares, counts or copies.
const STEP_BYTES: usize = 16;

/// The steps that building one error takes, memory included: an error has about 500 bytes.
const ERROR_STEPS: u64 = 500;

thread_local! {
    /// The costs of the check that runs on this thread.
    static COSTS: Cell<StepCosts> = const { Cell::new(StepCosts { text: 0, name: 0, repeated_bytes: 0 }) };
}

/// The costs of looks that depend on the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StepCosts {
    /// The weight of the heaviest pattern that a text is matched against.
    pub(super) text: u64,
    /// The weight of the patterns that the name of a member is matched against.
    pub(super) name: u64,
    /// The bytes that an error repeats from the schema.
    pub(super) repeated_bytes: usize,
}

/// The representation of arguments that spend steps.
pub(super) struct MeteredArguments;

/// A value of the arguments.
#[derive(Clone, Copy)]
pub(super) struct MeteredValue<'a> {
    value: &'a Value,
    /// The length of its path, in bytes, which an error repeats.
    path_bytes: usize,
}

/// A value that is an object.
pub(super) struct MeteredObject<'a> {
    members: &'a Map<String, Value>,
    of: MeteredValue<'a>,
}

/// A value that is an array.
pub(super) struct MeteredArray<'a> {
    items: &'a [Value],
    of: MeteredValue<'a>,
}

/// The members of an object, one after the other.
pub(super) struct MeteredMembers<'a> {
    members: serde_json::map::Iter<'a>,
    of: MeteredValue<'a>,
}

/// The items of an array, one after the other.
pub(super) struct MeteredItems<'a> {
    items: std::slice::Iter<'a, Value>,
    of: MeteredValue<'a>,
}

fn pass(bytes: usize) -> u64 {
    (bytes / STEP_BYTES) as u64
}

/// Returns the steps for matching `bytes` bytes against patterns of this weight.
fn matching(bytes: usize, weight: u64) -> u64 {
    (bytes as u64).saturating_mul(weight) / 8 + pass(bytes)
}

impl<'a> MeteredValue<'a> {
    /// Returns the arguments as a whole. Looks at values on this thread have these `costs` until
    /// the next call.
    pub(super) fn root(value: &'a Value, costs: StepCosts) -> Self {
        COSTS.set(costs);
        Self { value, path_bytes: 0 }
    }

    fn within(self, value: &'a Value, name_bytes: usize) -> Self {
        Self { value, path_bytes: self.path_bytes + name_bytes + 1 }
    }
}

impl Json for MeteredArguments {
    type Node<'a> = MeteredValue<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    const KEYS_PER_LOOKUP: usize = SerdeJson::KEYS_PER_LOOKUP;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut Value,
        string: &str,
        f: impl FnOnce(MeteredValue<'_>) -> T,
    ) -> T {
        spend(1 + pass(string.len()));
        SerdeJson::with_string_node(buffer, string, |value| {
            f(MeteredValue { value, path_bytes: string.len() })
        })
    }
}

impl<'a> Node<'a, MeteredArguments> for MeteredValue<'a> {
    type Object = MeteredObject<'a>;
    type Array = MeteredArray<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<MeteredObject<'a>> {
        spend(1);
        self.value.as_object().map(|members| MeteredObject { members, of: *self })
    }

    fn as_array(&self) -> Option<MeteredArray<'a>> {
        spend(1);
        self.value.as_array().map(|items| MeteredArray { items, of: *self })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.value.as_str();
        spend(1 + matching(text.map_or(0, str::len), COSTS.get().text));
        text.map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        spend(1);
        self.value.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        spend(1);
        self.value.as_bool()
    }

    fn is_null(&self) -> bool {
        spend(1);
        self.value.is_null()
    }

    fn json_type(&self) -> JsonType {
        spend(1);
        JsonType::from(self.value)
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.value.as_str();
        spend(1 + pass(text.map_or(0, str::len)));
        text.map(|text| text.chars().count() as u64)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        equal(self.value, expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        spend(ERROR_STEPS + pass(self.path_bytes + COSTS.get().repeated_bytes));
        Cow::Borrowed(self.value)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        spend(1);
        Some(NodeIdentity::new(std::ptr::from_ref(self.value) as usize))
    }
}

impl<'a> Object<'a, MeteredArguments> for MeteredObject<'a> {
    type Node = MeteredValue<'a>;
    type MemberName = &'a str;
    type MembersIter = MeteredMembers<'a>;

    fn len(&self) -> usize {
        self.members.len()
    }

    fn get(&self, key: &String) -> Option<MeteredValue<'a>> {
        spend(1 + pass(key.len()));
        self.members.get(key).map(|value| self.of.within(value, key.len()))
    }

    fn members(&self) -> MeteredMembers<'a> {
        spend(1);
        MeteredMembers { members: self.members.iter(), of: self.of }
    }
}

impl<'a> Iterator for MeteredMembers<'a> {
    type Item = (&'a str, MeteredValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.next()?;
        spend(1 + matching(name.len(), COSTS.get().name));
        Some((name, self.of.within(value, name.len())))
    }
}

impl<'a> Array<'a, MeteredArguments> for MeteredArray<'a> {
    type Node = MeteredValue<'a>;
    type ElementsIter = MeteredItems<'a>;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn elements(&self) -> MeteredItems<'a> {
        spend(1);
        MeteredItems { items: self.items.iter(), of: self.of }
    }

    /// Compares all values with equal digests, which a server or a client may force.
    fn is_unique(&self) -> bool {
        let state = RandomState::new();
        let mut seen: HashMap<u64, Vec<&Value>> = HashMap::with_capacity(self.items.len());
        self.items.iter().all(|item| {
            let mut hasher = state.build_hasher();
            digest(item, &mut hasher);
            let same = seen.entry(hasher.finish()).or_default();
            let is_new = !same.iter().any(|other| equal(other, item));
            same.push(item);
            is_new
        })
    }
}

impl<'a> Iterator for MeteredItems<'a> {
    type Item = MeteredValue<'a>;

    fn next(&mut self) -> Option<MeteredValue<'a>> {
        let item = self.items.next()?;
        spend(1);
        // An index has up to seven digits.
        Some(self.of.within(item, 7))
    }
}

/// Returns whether two values are equal by JSON Schema: `1` equals `1.0`.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(ones), Value::Array(others)) => {
            spend(1);
            ones.len() == others.len()
                && ones.iter().zip(others).all(|(one, other)| equal(one, other))
        }
        (Value::Object(ones), Value::Object(others)) => {
            spend(1);
            let same = |(name, one): (&String, &Value)| {
                spend(pass(name.len()));
                others.get(name).is_some_and(|other| equal(one, other))
            };
            ones.len() == others.len() && ones.iter().all(same)
        }
        (Value::String(one), Value::String(other)) => {
            spend(1 + if one.len() == other.len() { pass(one.len()) } else { 0 });
            one == other
        }
        (one, other) => {
            spend(1);
            cmp::equal(one, other)
        }
    }
}

/// Feeds a hasher with a value, so that equal values have equal digests.
fn digest(value: &Value, hasher: &mut impl Hasher) {
    spend(1);
    match value {
        Value::Null => hasher.write_u8(0),
        Value::Bool(value) => value.hash(hasher),
        Value::Number(number) => {
            // Zero has two signs, but is one number.
            let number = number.as_f64().unwrap_or_default() + 0.0;
            number.to_bits().hash(hasher);
        }
        Value::String(text) => {
            spend(pass(text.len()));
            text.hash(hasher);
        }
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().for_each(|item| digest(item, hasher));
        }
        // `Map` is sorted by name.
        Value::Object(members) => {
            members.len().hash(hasher);
            for (name, member) in members {
                spend(pass(name.len()));
                name.hash(hasher);
                digest(member, hasher);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::step_budget::run_with, *};

    fn is_unique(items: &Value) -> bool {
        let of = MeteredValue::root(items, StepCosts::default());
        let array = MeteredArray { items: items.as_array().expect("an array"), of };
        run_with(u64::MAX, None, || Array::<MeteredArguments>::is_unique(&array))
            .0
            .expect("enough steps")
    }

    #[test]
    fn items_are_compared_by_the_rules_of_json_schema() {
        for (items, expected) in [
            (json!([]), true),
            (json!([1, 1.0]), false),
            (json!([0, -0.0]), false),
            (json!([1, "1", true, null, [1], {"a": 1}]), true),
            (json!([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]), false),
            (json!([[1], [[1]], [[[1]]]]), true),
            (json!([u64::MAX, u64::MAX - 1]), true),
        ] {
            assert_eq!(is_unique(&items), expected, "{items}");
        }
    }

    #[test]
    fn comparing_items_with_equal_digests_spends_steps() {
        // These have the same digest: a float cannot tell them apart.
        let items: Vec<u64> = (0..1000).map(|n| u64::MAX - n).collect();
        let items = json!(items);
        let of = MeteredValue::root(&items, StepCosts::default());
        let array = MeteredArray { items: items.as_array().expect("an array"), of };
        let (_, spent) = run_with(u64::MAX, None, || Array::<MeteredArguments>::is_unique(&array));
        assert!(spent > 300_000, "{spent}");
    }
}
