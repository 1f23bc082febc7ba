//! The result of a tool in readable form.

use serde_json::Value;

use crate::cli::{output, quantity, terminal::escape};

/// One part of the printed result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum OutputPart {
    /// A text of the server, printed unchanged.
    Text(String),
    /// A line that stands for content that cannot be shown.
    Line(String),
    /// JSON text, printed with indentation.
    Json(String),
}

/// Returns the printed parts of a result: its texts, one line for each other block, and the
/// structured value if there is no text.
pub(in crate::cli) fn parts(result: &Value) -> Vec<OutputPart> {
    let mut parts: Vec<OutputPart> = output::items(&result["content"]).iter().map(block).collect();
    let has_text = parts.iter().any(|part| matches!(part, OutputPart::Text(_)));
    if let Some(structured) = result.get("structuredContent").filter(|_| !has_text) {
        parts.push(OutputPart::Json(structured.to_string()));
    }
    parts
}

/// Returns the printed part for one content block.
pub(in crate::cli) fn block(block: &Value) -> OutputPart {
    let text = |name: &str| escape(block[name].as_str().unwrap_or_default());
    match block["type"].as_str() {
        Some("text") => OutputPart::Text(block["text"].as_str().unwrap_or_default().to_owned()),
        Some(kind @ ("image" | "audio")) => {
            let size = encoded_size(&block["data"]);
            OutputPart::Line(format!("[{kind} {}, {size}]", text("mimeType")))
        }
        Some("resource_link") => {
            let name = block["title"].as_str().or(block["name"].as_str()).unwrap_or_default();
            OutputPart::Line(format!("[resource {}: {}]", text("uri"), escape(name)))
        }
        Some("resource") => contents(&block["resource"]),
        Some(_) | None => OutputPart::Line(format!("[{}]", escape(&block.to_string()))),
    }
}

/// Returns the printed part for an embedded resource.
fn contents(resource: &Value) -> OutputPart {
    let [uri, mime_type] =
        ["uri", "mimeType"].map(|name| escape(resource[name].as_str().unwrap_or_default()));
    let kind = if mime_type.is_empty() { String::new() } else { format!(" {mime_type},") };
    let size = match (&resource["text"], &resource["blob"]) {
        (Value::String(text), _) => quantity::size(text.len() as u64),
        (_, blob) => encoded_size(blob),
    };
    OutputPart::Line(format!("[resource {uri},{kind} {size}]"))
}

pub(in crate::cli) fn encoded_size(data: &Value) -> String {
    let text = data.as_str().unwrap_or_default();
    let n_characters = text.trim_end_matches('=').len() as u64;
    quantity::size(n_characters * 3 / 4)
}

pub(in crate::cli) fn print(parts: &[OutputPart]) {
    for part in parts {
        match part {
            OutputPart::Text(text) => output::content(text),
            OutputPart::Line(line) => output::print(&format!("{line}\n")),
            OutputPart::Json(text) => output::json(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_printed_and_other_content_is_described_in_one_line() {
        let result = json!({ "content": [
            { "type": "text", "text": "a\nb" },
            { "type": "image", "mimeType": "image/png", "data": "AAAAAA==" },
            { "type": "resource_link", "uri": "file:///a", "name": "a\u{1b}" },
            { "type": "resource", "resource": { "uri": "file:///b", "mimeType": "text/plain", "text": "xyz" } },
            { "type": "hologram" },
        ], "structuredContent": { "a": 1 } });
        let expected = [
            OutputPart::Text("a\nb".to_owned()),
            OutputPart::Line("[image image/png, 4 B]".to_owned()),
            OutputPart::Line("[resource file:///a: a\\u{1b}]".to_owned()),
            OutputPart::Line("[resource file:///b, text/plain, 3 B]".to_owned()),
            OutputPart::Line(r#"[{"type":"hologram"}]"#.to_owned()),
        ];
        assert_eq!(parts(&result), expected);
    }

    #[test]
    fn the_structured_value_is_printed_if_a_result_has_no_text() {
        let result = json!({ "content": [], "structuredContent": { "a": 1 } });
        assert_eq!(parts(&result), [OutputPart::Json(r#"{"a":1}"#.to_owned())]);
    }
}
