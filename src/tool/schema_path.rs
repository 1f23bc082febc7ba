//! The part of a schema at a path.
//!
//! A path goes through properties, `items`, `additionalProperties`, the number of a choice in
//! `anyOf`, `oneOf` or `allOf`, `patternProperties` and `$defs`. Pure.

use serde_json::Value;

/// The maximum number of references followed to one part: they may form a circle.
const REFERENCES_MAX: usize = 20;

/// Returns the part of `schema` at `path`, which is names separated by dots, or `None` if there is
/// none. A reference within the schema is followed.
pub fn part_of<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    let mut part = schema;
    for step in path.split('.').map(|step| step.trim_end_matches("[]")) {
        part = within(resolved(schema, part)?, step)?;
    }
    resolved(schema, part)
}

/// Follows a reference, if `part` is one.
fn resolved<'a>(whole: &'a Value, mut part: &'a Value) -> Option<&'a Value> {
    for _ in 0..REFERENCES_MAX {
        let Some(reference) = part.get("$ref").and_then(Value::as_str) else { return Some(part) };
        // A reference to another document is shown unchanged.
        let Some(pointer) = reference.strip_prefix('#') else { return Some(part) };
        part = whole.pointer(pointer)?;
    }
    None
}

fn within<'a>(part: &'a Value, step: &str) -> Option<&'a Value> {
    let named = |keyword: &str| part.get(keyword).and_then(|all| all.get(step));
    let inner = ["items", "additionalProperties"].contains(&step).then(|| part.get(step)).flatten();
    let choice = || {
        let number: usize = step.parse().ok()?;
        let all = ["anyOf", "oneOf", "allOf"];
        all.iter().find_map(|keyword| part.get(keyword)?.get(number))
    };
    named("properties")
        .or(inner)
        .or_else(choice)
        .or_else(|| named("patternProperties"))
        .or_else(|| named("$defs"))
        // `rows.name` is a field of each item.
        .or_else(|| part.get("items")?.get("properties")?.get(step))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_path_leads_through_every_kind_of_part() {
        let schema = json!({
            "properties": {
                "rows": { "items": { "properties": { "name": { "type": "string" } } } },
                "any": { "anyOf": [{ "type": "null" }, { "const": 7 }] },
                "map": { "additionalProperties": { "const": 8 }, "patternProperties": { "^x": { "const": 9 } } },
                "tree": { "$ref": "#/$defs/node" },
                "circle": { "$ref": "#/properties/circle" },
            },
            "$defs": { "node": { "properties": { "next": { "$ref": "#/$defs/node" }, "v": { "const": 1 } } } },
        });
        for (path, expected) in [
            ("rows.items.name", json!({ "type": "string" })),
            ("rows[].name", json!({ "type": "string" })),
            ("any.1", json!({ "const": 7 })),
            ("map.additionalProperties", json!({ "const": 8 })),
            ("map.^x", json!({ "const": 9 })),
            ("tree.next.next.v", json!({ "const": 1 })),
        ] {
            assert_eq!(part_of(&schema, path), Some(&expected), "{path}");
        }
        for path in ["", "row", "any.2", "circle", "rows.items.name.x"] {
            assert_eq!(part_of(&schema, path), None, "{path}");
        }
    }
}
