//! The names of types. Pure.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};

use super::HEAD;

/// The maximum length of a part of a name, in characters.
const PART_MAX: usize = 64;

/// The names that are taken.
#[derive(Debug)]
pub(super) struct TypeNames(HashSet<String>);

impl Default for TypeNames {
    /// Returns the names of the declarations that every file has.
    fn default() -> Self {
        let names = HEAD.lines().filter_map(|line| {
            let declared =
                line.strip_prefix("export type ").or(line.strip_prefix("export interface "));
            declared?.split(|found: char| !found.is_ascii_alphanumeric()).next()
        });
        Self(names.chain(["MetamcpTools"]).map(str::to_owned).collect())
    }
}

impl TypeNames {
    /// Returns the name for `part` of a tool: `GitLogInput`.
    ///
    /// If another tool already has that name, the name gets a suffix, which is a hash of the tool's
    /// full name. That tool always comes earlier in the order of names.
    pub(super) fn of_tool(&mut self, server: &str, tool: &str, part: &str) -> String {
        let name = format!("{}{}{part}", pascal(server), pascal(tool));
        // A name cannot begin with a digit.
        let name = if name.starts_with(|found: char| found.is_ascii_digit()) {
            format!("T{name}")
        } else {
            name
        };
        self.take(name, &format!("{server}/{tool}"))
    }

    /// Returns the name for `part` of a tool, without that of its server unless it is taken.
    pub(super) fn of_tool_alone(&mut self, server: &str, tool: &str, part: &str) -> String {
        let name = format!("{}{part}", pascal(tool));
        let is_name = !name.starts_with(|found: char| found.is_ascii_digit());
        if is_name && self.0.insert(name.clone()) {
            return name;
        }
        self.of_tool(server, tool, part)
    }

    /// Gives a name back.
    pub(super) fn release(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Returns the name for the part at `pointer` in the schema of the type `of`.
    pub(super) fn of_part(&mut self, of: &str, pointer: &str) -> String {
        let last = pointer.rsplit('/').next().unwrap_or_default();
        self.take(format!("{of}{}", pascal(last)), pointer)
    }

    fn take(&mut self, name: String, whole: &str) -> String {
        if self.0.insert(name.clone()) {
            return name;
        }
        let hash = Sha256::digest(whole);
        let mark: String = hash[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        let marked = format!("{name}_{mark}");
        let mut found = marked.clone();
        let mut n = 2;
        while !self.0.insert(found.clone()) {
            found = format!("{marked}_{n}");
            n += 1;
        }
        found
    }
}

/// Returns the words of a name, each capitalized: `GetSum` for `get-sum`.
fn pascal(name: &str) -> String {
    let words = name.split(|found: char| !found.is_ascii_alphanumeric());
    let mut joined = String::new();
    for word in words {
        let mut rest = word.chars();
        joined.extend(rest.next().map(|first| first.to_ascii_uppercase()));
        joined.extend(rest);
    }
    joined.chars().take(PART_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_name_is_made_of_the_words_of_the_tool() {
        let mut names = TypeNames::default();
        assert_eq!(names.of_tool("git", "git_log", "Input"), "GitGitLogInput");
        assert_eq!(names.of_tool("7zip", "größe", "Input"), "T7zipGrEInput");
        assert_eq!(names.of_part("GitGitLogInput", "/$defs/a~1b"), "GitGitLogInputA1b");
    }

    #[test]
    fn a_server_called_metamcp_takes_no_name_of_the_common_declarations() {
        let mut names = TypeNames::default();
        for (tool, part) in [("-", "Input"), ("\u{65e5}", "Output")] {
            let name = names.of_tool("metamcp", tool, part);
            assert!(name.starts_with(&format!("Metamcp{part}_")), "{name}");
        }
        assert_eq!(names.of_tool("metamcp", "tools", "Input"), "MetamcpToolsInput");
        assert_eq!(names.0.len(), 10, "seven of ours and three of theirs");
    }

    #[test]
    fn two_tools_with_the_same_type_name_get_different_names() {
        let mut names = TypeNames::default();
        let [first, second, third] = [("a-b", "c"), ("a", "b-c"), ("a", "b_c")]
            .map(|(server, tool)| names.of_tool(server, tool, "Input"));
        assert_eq!(first, "ABCInput");
        assert!(second.starts_with("ABCInput_") && third.starts_with("ABCInput_"));
        assert_ne!(second, third);
        let again = names.of_tool("a", "b_c", "Input");
        assert_eq!(again, format!("{third}_2"), "whatever comes, no name is there twice");
    }
}
