//! The parts of a tool's input schema that the command line uses.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// A place in a schema. A lookup searches all forms of the place: referenced schemas, and every
/// part of a union.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct SchemaCursor<'a> {
    root: &'a Value,
    here: &'a Value,
}

/// The types that a value may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct ValueTypes {
    /// `null`.
    pub(in crate::cli) null: bool,
    /// `true` and `false`.
    pub(in crate::cli) boolean: bool,
    /// A whole number.
    pub(in crate::cli) integer: bool,
    /// Any number.
    pub(in crate::cli) number: bool,
    /// A string.
    pub(in crate::cli) string: bool,
    /// A list.
    pub(in crate::cli) array: bool,
    /// An object.
    pub(in crate::cli) object: bool,
}

/// The largest number of forms of one place, and the largest depth of references and unions. A
/// schema may refer to itself; these bounds exceed any arguments typed by hand.
const FORMS_MAX: usize = 64;
const FORM_DEPTH_MAX: usize = 16;

impl<'a> SchemaCursor<'a> {
    pub(in crate::cli) fn root(schema: &'a Value) -> Self {
        Self { root: schema, here: schema }
    }

    pub(in crate::cli) fn properties(self) -> Vec<(&'a str, Self)> {
        let mut seen = BTreeSet::new();
        self.members("properties")
            .filter(|(name, _)| seen.insert(name.as_str()))
            .map(|(name, here)| (name.as_str(), self.at(here)))
            .collect()
    }

    pub(in crate::cli) fn required(self) -> BTreeSet<&'a str> {
        // A property that one part of a union requires is not required by all parts.
        let named = self.here["required"].as_array().into_iter().flatten();
        named.filter_map(Value::as_str).collect()
    }

    /// Returns the schema of undeclared properties, if there is one.
    pub(in crate::cli) fn others(self) -> Option<Self> {
        let found = |form: &'a Value| {
            let patterned = form["patternProperties"].as_object();
            let first = patterned.and_then(|patterned| patterned.values().next());
            form.get("additionalProperties").filter(|others| others.is_object()).or(first)
        };
        self.forms().into_iter().find_map(found).map(|here| self.at(here))
    }

    /// Returns `true` if the schema does not restrict its members.
    pub(in crate::cli) fn is_open(self) -> bool {
        let is_open = |form: &&Value| {
            form["additionalProperties"] != false && form.get("patternProperties").is_none()
        };
        self.members("properties").next().is_none() && self.forms().iter().all(is_open)
    }

    /// Returns the schema of the items of a list.
    pub(in crate::cli) fn items(self) -> Option<Self> {
        let found = |form: &'a Value| form.get("items").filter(|items| items.is_object());
        self.forms().into_iter().find_map(found).map(|here| self.at(here))
    }

    /// Returns the allowed values, if the schema lists them.
    pub(in crate::cli) fn values(self) -> Vec<&'a Value> {
        let mut values: Vec<&Value> = Vec::new();
        for form in self.forms() {
            values.extend(form["enum"].as_array().into_iter().flatten());
            values.extend(form.get("const"));
        }
        values
    }

    /// Returns `true` if only the listed values are allowed.
    pub(in crate::cli) fn is_listed(self) -> bool {
        let is_listed = |form: &Value| form.get("enum").or(form.get("const")).is_some();
        let forms = self.forms();
        forms.iter().any(|form| is_listed(form))
            && forms.iter().all(|form| is_listed(form) || form.get("type").is_none())
    }

    /// Returns the first value of a keyword among the forms.
    pub(in crate::cli) fn keyword(self, name: &str) -> Option<&'a Value> {
        self.forms().into_iter().find_map(|form| form.get(name))
    }

    /// Returns the types that a value may have, or all types if the schema declares none.
    pub(in crate::cli) fn types(self) -> ValueTypes {
        let mut types = ValueTypes::default();
        for form in self.forms() {
            match &form["type"] {
                Value::Array(names) => names.iter().for_each(|name| types.add(name)),
                name => types.add(name),
            }
            let listed = form["enum"].as_array().into_iter().flatten();
            listed.chain(form.get("const")).for_each(|value| types.add_type_of(value));
            if form["properties"].is_object() {
                types.object = true;
            }
            if form["items"].is_object() {
                types.array = true;
            }
        }
        if types == ValueTypes::default() { ValueTypes::ANY } else { types }
    }

    fn at(self, here: &'a Value) -> Self {
        Self { root: self.root, here }
    }

    fn members(self, keyword: &'static str) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let objects = self.forms().into_iter().filter_map(move |form| form[keyword].as_object());
        objects.flat_map(Map::iter)
    }

    /// Returns this schema and the schemas that it refers to or combines.
    fn forms(self) -> Vec<&'a Value> {
        let mut forms = Vec::new();
        self.collect(self.here, FORM_DEPTH_MAX, &mut forms);
        forms
    }

    fn collect(self, here: &'a Value, depth: usize, forms: &mut Vec<&'a Value>) {
        if depth == 0 || forms.len() == FORMS_MAX {
            return;
        }
        forms.push(here);
        // Only a reference within the schema can be resolved: `#/$defs/Name`.
        let pointer = here["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        if let Some(found) = pointer.and_then(|pointer| self.root.pointer(pointer)) {
            self.collect(found, depth - 1, forms);
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            for part in here[keyword].as_array().into_iter().flatten() {
                self.collect(part, depth - 1, forms);
            }
        }
    }
}

impl ValueTypes {
    pub(in crate::cli) const ANY: Self = Self {
        null: true,
        boolean: true,
        integer: true,
        number: true,
        string: true,
        array: true,
        object: true,
    };

    pub(in crate::cli) fn names(self) -> Vec<&'static str> {
        if self == Self::ANY {
            return vec!["any"];
        }
        let all = [
            (self.string, "string"),
            (self.integer && !self.number, "integer"),
            (self.number, "number"),
            (self.boolean, "boolean"),
            (self.array, "array"),
            (self.object, "object"),
            (self.null, "null"),
        ];
        all.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect()
    }

    fn add(&mut self, name: &Value) {
        match name.as_str() {
            Some("null") => self.null = true,
            Some("boolean") => self.boolean = true,
            Some("integer") => self.integer = true,
            Some("number") => (self.integer, self.number) = (true, true),
            Some("string") => self.string = true,
            Some("array") => self.array = true,
            Some("object") => self.object = true,
            Some(_) | None => {}
        }
    }

    fn add_type_of(&mut self, value: &Value) {
        match value {
            Value::Null => self.null = true,
            Value::Bool(_) => self.boolean = true,
            Value::Number(number) if number.is_f64() => self.number = true,
            Value::Number(_) => self.integer = true,
            Value::String(_) => self.string = true,
            Value::Array(_) => self.array = true,
            Value::Object(_) => self.object = true,
        }
    }
}
