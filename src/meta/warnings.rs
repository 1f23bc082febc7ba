//! What a caller should know of a tool before it is run, as its server declares it.

use std::fmt;

use crate::protocol::ObjectMembers;

/// What a caller should know of a tool. Source: seed 001, "warnings".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolWarning {
    /// It may destroy something.
    Destructive,
    /// To run it twice is not the same as to run it once, as far as is known.
    NotIdempotent,
    /// It changes something.
    NotReadOnly,
}

impl fmt::Display for ToolWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Destructive => "it may delete or overwrite something",
            Self::NotIdempotent => {
                "to run it twice may do more than to run it once: its server does not rule that out"
            }
            Self::NotReadOnly => "it changes something",
        })
    }
}

/// Returns what a caller should know of a tool, whose definition is given as JSON text.
///
/// A tool that is known to read only has none. One that says nothing of being repeated is taken as one
/// that may not be.
pub fn warnings(definition: &str) -> Vec<ToolWarning> {
    let hints = ObjectMembers::one(definition, "annotations")
        .and_then(ObjectMembers::read)
        .unwrap_or_default();
    let (yes, no) = (Some("true"), Some("false"));
    if hints.get("readOnlyHint") == yes {
        return Vec::new();
    }
    let all = [
        (ToolWarning::Destructive, hints.get("destructiveHint") == yes),
        (ToolWarning::NotIdempotent, hints.get("idempotentHint") != yes),
        (ToolWarning::NotReadOnly, hints.get("readOnlyHint") == no),
    ];
    all.into_iter().filter(|(_, applies)| *applies).map(|(warning, _)| warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_warned_of_as_its_server_declares() {
        use ToolWarning::{Destructive, NotIdempotent, NotReadOnly};
        for (annotations, expected) in [
            (r#"{"readOnlyHint":true}"#, &[][..]),
            ("{}", &[NotIdempotent]),
            ("null", &[NotIdempotent]),
            (r#"{"idempotentHint":true}"#, &[]),
            (r#"{"destructiveHint":true,"idempotentHint":true}"#, &[Destructive]),
            (
                r#"{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false}"#,
                &[Destructive, NotIdempotent, NotReadOnly],
            ),
        ] {
            let definition = format!(r#"{{"name":"a","annotations":{annotations}}}"#);
            assert_eq!(warnings(&definition), expected, "{annotations}");
        }
        assert_eq!(warnings(""), [NotIdempotent]);
    }
}
