//! Checks for malformed items, on which some clients would drop the whole list.
//!
//! They find defects that are cheap to detect and known to break clients. They interpret no schema.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::list_page::ListKind;

/// A list item that is withheld from clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedItem {
    /// The position on its page, from 0.
    pub position: usize,
    /// The name, URI or URI template, or the item's number if it has none.
    pub item: String,
    /// The defect, as a sentence about "it".
    pub reason: &'static str,
}

/// The members of an item that are checked.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ItemScan<'a> {
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) uri: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) uri_template: Option<&'a RawValue>,
    #[serde(borrow)]
    input_schema: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "super::jsonrpc::present")]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl<'a> ItemScan<'a> {
    /// Parses an item, given as JSON text.
    ///
    /// # Errors
    ///
    /// The defect, as in [`RejectedItem::reason`].
    pub(super) fn read(json: &'a str) -> Result<Self, &'static str> {
        // serde would also accept an array, as the members in declaration order.
        if !json.starts_with('{') {
            return Err("it is not an object");
        }
        // The text is valid JSON, so a member is repeated, which readers interpret differently.
        serde_json::from_str(json).map_err(|_| "one of its members appears twice")
    }

    /// Returns the member that identifies the item.
    pub(super) fn key(&self, list: ListKind) -> Option<&'a RawValue> {
        match list {
            ListKind::Tools | ListKind::Prompts => self.name,
            ListKind::Resources => self.uri,
            ListKind::ResourceTemplates => self.uri_template,
        }
    }

    /// Returns the defect of an item of `list` with the key `key`.
    pub(super) fn defect(&self, list: ListKind, key: &str) -> Option<&'static str> {
        if key.is_empty() {
            return Some(match list {
                ListKind::Tools | ListKind::Prompts => "it has an empty `name`",
                ListKind::Resources => "it has an empty `uri`",
                ListKind::ResourceTemplates => "it has an empty `uriTemplate`",
            });
        }
        match list {
            ListKind::Tools => self.tool_defect(),
            ListKind::Prompts => match self.arguments {
                Some(arguments) if !is_array_of::<&RawValue>(arguments) => {
                    Some("its `arguments` are not an array")
                }
                _ => None,
            },
            ListKind::Resources | ListKind::ResourceTemplates => match self.name {
                Some(name) if is_string(name) => None,
                _ => Some("it has no `name`"),
            },
        }
    }

    fn tool_defect(&self) -> Option<&'static str> {
        #[derive(Deserialize)]
        struct Schema<'a> {
            #[serde(borrow)]
            r#type: Option<Cow<'a, str>>,
            #[serde(default, borrow, deserialize_with = "super::jsonrpc::present")]
            properties: Option<&'a RawValue>,
            #[serde(default, borrow, deserialize_with = "super::jsonrpc::present")]
            required: Option<&'a RawValue>,
        }
        let schema = self.input_schema.filter(|schema| is_object(schema));
        let schema =
            schema.and_then(|schema| serde_json::from_str::<Schema<'_>>(schema.get()).ok());
        let Some(schema) = schema.filter(|schema| schema.r#type.as_deref() == Some("object"))
        else {
            return Some("it has no `inputSchema` of type object");
        };
        if schema.properties.is_some_and(|properties| !is_object(properties)) {
            return Some("the `properties` of its `inputSchema` are not an object");
        }
        if schema.required.is_some_and(|required| !is_array_of::<Cow<'_, str>>(required)) {
            return Some("the `required` of its `inputSchema` is not an array of strings");
        }
        if self.output_schema.is_some_and(|schema| !is_object(schema)) {
            return Some("its `outputSchema` is not an object");
        }
        None
    }
}

fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

fn is_string(value: &RawValue) -> bool {
    value.get().starts_with('"')
}

fn is_array_of<'a, T: Deserialize<'a>>(value: &'a RawValue) -> bool {
    value.get().starts_with('[') && serde_json::from_str::<Vec<T>>(value.get()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defect_of(list: ListKind, json: &str) -> Option<&'static str> {
        let scan = match ItemScan::read(json) {
            Ok(scan) => scan,
            Err(reason) => return Some(reason),
        };
        let key: String = serde_json::from_str(scan.key(list)?.get()).expect("a string");
        scan.defect(list, &key)
    }

    #[test]
    fn each_defect_is_named_and_unusual_items_are_accepted() {
        let (tools, prompts) = (ListKind::Tools, ListKind::Prompts);
        let (resources, templates) = (ListKind::Resources, ListKind::ResourceTemplates);
        let object = r#""inputSchema":{"type":"object"}"#;
        let input =
            |more: &str| format!(r#"{{"name":"a","inputSchema":{{"type":"object",{more}}}}}"#);
        for (list, item, expected) in [
            (tools, format!(r#"{{"name":"a",{object}}}"#), None),
            (tools, format!(r#"{{"name":"a b/ü",{object},"annotations":null,"x":[]}}"#), None),
            (tools, format!(r#"{{"name":"",{object}}}"#), Some("it has an empty `name`")),
            (tools, "7".to_owned(), Some("it is not an object")),
            (tools, r#"["a"]"#.to_owned(), Some("it is not an object")),
            (
                tools,
                format!(r#"{{"name":"a","name":"b",{object}}}"#),
                Some("one of its members appears twice"),
            ),
            (tools, r#"{"name":"a"}"#.to_owned(), Some("it has no `inputSchema` of type object")),
            (
                tools,
                r#"{"name":"a","inputSchema":{"type":["object"]}}"#.to_owned(),
                Some("it has no `inputSchema` of type object"),
            ),
            (tools, input(r#""properties":{"x":true},"required":["x"],"$defs":{}"#), None),
            (
                tools,
                input(r#""properties":null"#),
                Some("the `properties` of its `inputSchema` are not an object"),
            ),
            (
                tools,
                input(r#""required":[1]"#),
                Some("the `required` of its `inputSchema` is not an array of strings"),
            ),
            (tools, format!(r#"{{"name":"a",{object},"outputSchema":{{"anyOf":[]}}}}"#), None),
            (
                tools,
                format!(r#"{{"name":"a",{object},"outputSchema":null}}"#),
                Some("its `outputSchema` is not an object"),
            ),
            (prompts, r#"{"name":"a"}"#.to_owned(), None),
            (prompts, r#"{"name":"a","arguments":[{"name":"b"}]}"#.to_owned(), None),
            (
                prompts,
                r#"{"name":"a","arguments":{}}"#.to_owned(),
                Some("its `arguments` are not an array"),
            ),
            (resources, r#"{"uri":"a:b","name":""}"#.to_owned(), None),
            (resources, r#"{"uri":"a:b"}"#.to_owned(), Some("it has no `name`")),
            (resources, r#"{"uri":"","name":"a"}"#.to_owned(), Some("it has an empty `uri`")),
            (templates, r#"{"uriTemplate":"a:{b}","name":"a"}"#.to_owned(), None),
            (
                templates,
                r#"{"uriTemplate":"","name":"a"}"#.to_owned(),
                Some("it has an empty `uriTemplate`"),
            ),
        ] {
            assert_eq!(defect_of(list, &item), expected, "{list:?} {item}");
        }
    }
}
