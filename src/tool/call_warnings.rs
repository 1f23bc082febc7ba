//! The warnings before a tool runs, from its server's declarations. Pure.

use std::fmt;

use crate::protocol::ObjectMembers;

/// A warning about a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolWarning {
    /// It may delete or overwrite something.
    Destructive,
    /// A second run may do more than one run.
    NotIdempotent,
    /// It changes something.
    NotReadOnly,
}

impl fmt::Display for ToolWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Destructive => "it may delete or overwrite something",
            Self::NotIdempotent => {
                "a second call may have another effect: its server does not declare it idempotent"
            }
            Self::NotReadOnly => "it changes something",
        })
    }
}

/// Returns the warnings about a tool, given its definition as JSON text.
///
/// A read-only tool has none. A tool that declares nothing about repetition counts as not
/// idempotent.
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
    fn warnings_follow_the_declarations_of_the_server() {
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
