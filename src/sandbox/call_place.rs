//! The place of a call in the code of a script. Pure.
//!
//! The engine gives a call the place of what it evaluated last. That may be an argument, lines below
//! the name of the tool.

use tree_sitter::{Node, Point};

use super::{message::CodePlace, type_stripping::parse};

/// Returns the place of the name in the call of `tool` whose arguments contain `place`, or `None` if
/// there is no such call.
pub(super) fn call_place(code: &str, place: CodePlace, tool: &str) -> Option<CodePlace> {
    let row = (place.line as usize).checked_sub(1)?;
    let line = code.split('\n').nth(row)?;
    let column = line.char_indices().nth((place.column as usize).checked_sub(1)?)?.0;
    let point = Point { row, column };
    let tree = parse(code)?;
    let mut node = tree.root_node().descendant_for_point_range(point, point)?;
    loop {
        if let Some(name) = called_name(node, code, tool)
            && node.child_by_field_name("arguments")?.start_position() <= point
        {
            return code.get(..name.start_byte()).map(CodePlace::after);
        }
        node = node.parent()?;
    }
}

/// Returns the name in a call, if it can be one of `tool`.
fn called_name<'t>(node: Node<'t>, code: &str, tool: &str) -> Option<Node<'t>> {
    let function = (node.kind() == "call_expression").then(|| node.child_by_field_name("function"));
    let function = function.flatten()?;
    let name = match function.kind() {
        "member_expression" => function.child_by_field_name("property"),
        "subscript_expression" => function.child_by_field_name("index"),
        _ => Some(function),
    }?;
    let text = code.get(name.byte_range())?.trim_matches(['"', '\'', '`']);
    (text == tool || text == "call").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the place in `code` of a failure of `tool` that the engine places at the mark `^`.
    fn placed(code: &str, tool: &str) -> Option<(u32, u32)> {
        let (before, after) = code.split_once('^').expect("a mark");
        let line = before.lines().count().max(1);
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let [line, column] = [line, column].map(|it| u32::try_from(it).expect("small"));
        let found = call_place(&format!("{before}{after}"), CodePlace { line, column }, tool);
        found.map(|place| (place.line, place.column))
    }

    #[test]
    fn a_call_has_the_place_of_its_name_and_not_of_an_argument() {
        let code = "const é = 'ä';\nreturn await servers.git.log({\n  path: é,\n  n: 1 + ^n,\n})";
        assert_eq!(placed(code, "log"), Some((2, 26)));
        let code = "return servers.git.call('log', {\n  path: ^root })";
        assert_eq!(placed(code, "log"), Some((1, 20)));
        let code = "return servers['my git']['log-all']({\n  path: `${^root}` })";
        assert_eq!(placed(code, "log-all"), Some((1, 26)));
        let code = "const { log } = servers.git;\nreturn log(\n ^root)";
        assert_eq!(placed(code, "log"), Some((2, 8)));
    }

    #[test]
    fn the_innermost_call_of_the_tool_counts() {
        let code = "await servers.a.outer({ b: await servers.a.inner({ c: f(^d) }) })";
        assert_eq!(placed(code, "inner"), Some((1, 44)));
        assert_eq!(placed(code, "outer"), Some((1, 17)));
        assert_eq!(placed(code, "other"), None);
        assert_eq!(placed("await servers.a.^log({})", "log"), None, "it is the name already");
        assert_eq!(placed("await servers.a.log({ ^", "log"), None, "it cannot be read");
    }
}
