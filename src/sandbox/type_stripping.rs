//! The removal of types from a script, so that TypeScript runs as JavaScript.
//!
//! Types become spaces: every other character keeps its line and its column. Positions of errors
//! are therefore those of the script as written. The parser is tree-sitter with its TypeScript
//! grammar. Where TypeScript and JavaScript read a text differently, this module decides:
//!
//! | text | reading |
//! |---|---|
//! | `f<T>(x)` | a call with type arguments |
//! | `a < b > (c)` | comparisons, as in JavaScript: there is white space on both sides of `<` |
//! | `interface`, `abstract`, … before a line break | a name: the whole script stays as it is |
//!
//! The engine runs the result, and reports errors of syntax. A script that tree-sitter cannot read
//! without an error therefore stays as it is.
//!
//! Pure.

use std::{
    borrow::Cow,
    cell::Cell,
    collections::{BTreeMap, HashSet},
    iter,
    ops::{ControlFlow, Range},
};

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Point, Tree};
use tree_sitter_typescript::LANGUAGE_TYPESCRIPT;

use super::message::CodePlace;

#[cfg(test)]
mod tests;

/// The longest script, in bytes. The memory of the parser grows with the length.
const SOURCE_BYTES_MAX: usize = 96 * 1024;

/// The maximum number of `<` in a script. After `a<b,` the parser keeps two readings, and at an
/// error it combines all of them: 12,800 pairs of readings took 2.7 GB, 1,000 take 35 MB.
const ANGLE_BRACKETS_MAX: usize = 1000;

/// The maximum number of progress reports of the parser, which makes one for every hundred actions.
/// A usual script of the greatest length needs 900. Each takes up to 55 KiB of memory.
const PROGRESS_REPORTS_MAX: usize = 1500;

/// The number of bytes that the lexer may read. It looks far ahead in white space and comments, and
/// reads them again for the next token.
const BYTES_READ_MAX: usize = 8 * 1024 * 1024;

/// The length of the pieces in which the lexer reads the script, in bytes.
const PIECE_BYTES: usize = 1024;

/// TypeScript that cannot be removed: it has an effect at run time, or a space in its place would
/// change the meaning.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{construct} is not supported in a script: {advice}")]
pub(super) struct UnsupportedSyntax {
    /// The construct, as the subject of a sentence.
    pub(super) construct: &'static str,
    /// The reason, and the text to write instead.
    pub(super) advice: &'static str,
    /// The place of the construct.
    pub(super) place: CodePlace,
}

/// A construct as the subject of a sentence, and an advice: the reason, and the text to write
/// instead.
type Explanation = (&'static str, &'static str);

const ENUM: Explanation = (
    "an `enum`",
    "it is an object at run time, not only a type; write \
     `const Color = { Red: 0, Green: 1 } as const` instead",
);
const NAMESPACE: Explanation = (
    "a `namespace` with values",
    "it is an object at run time; write its functions and constants without it",
);
const PARAMETER_PROPERTY: Explanation = (
    "a parameter property such as `constructor(private name: string)`",
    "it assigns a field at run time; declare the field in the class, and write \
     `this.name = name` in the constructor",
);
const DECORATOR: Explanation = (
    "a decorator",
    "the engine does not know it; call the function instead: `const Wrapped = wrap(Original)`",
);
const IMPORT: Explanation =
    ("an `import` statement", "a script has no modules; remove the statement");
const EXPORT: Explanation =
    ("an `export` statement", "a script has no modules; remove `export`, and `return` the result");
const ASSERTION: Explanation = (
    "a type assertion `<T>value` at this place",
    "without the type, the text after it has another meaning; write `value as T` instead",
);
const REGROUPING: Explanation = (
    "`as` or `satisfies` between these operators",
    "without the type, the operators group differently; put the part before it in parentheses",
);

/// Returns `source` with spaces in place of its types. JavaScript is returned unchanged, and so is
/// text that the parser cannot read.
///
/// `source` is the body of an asynchronous function. The result has its length in characters and
/// its line breaks. In a few places a semicolon or a parenthesis takes the place of a type, where
/// the script would otherwise mean something else.
///
/// # Errors
///
/// Returns the first construct that is more than a type.
pub(super) fn strip_types(source: &str) -> Result<Cow<'_, str>, UnsupportedSyntax> {
    let Some(tree) = parse(source) else { return Ok(Cow::Borrowed(source)) };
    let mut edits = Edits { source, ..Edits::default() };
    match edits.collect(&tree) {
        Ok(()) => Ok(edits.apply()),
        Err(Stop::Misread) => Ok(Cow::Borrowed(source)),
        Err(Stop::Unsupported(unsupported)) => Err(unsupported),
    }
}

/// Returns the syntax tree of `source`, if it has no error and the parser stays within its bounds.
pub(super) fn parse(source: &str) -> Option<Tree> {
    let angle_brackets = source.bytes().filter(|byte| *byte == b'<').count();
    if source.len() > SOURCE_BYTES_MAX || angle_brackets > ANGLE_BRACKETS_MAX {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(&LANGUAGE_TYPESCRIPT.into()).ok()?;
    let bytes_read = Cell::new(0_usize);
    let mut reports = 0_usize;
    // The parser takes most of its time and memory to recover from errors.
    let mut check = |state: &ParseState| {
        reports += 1;
        let is_bounded = reports <= PROGRESS_REPORTS_MAX && bytes_read.get() <= BYTES_READ_MAX;
        if is_bounded && !state.has_error() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    let mut read = |start: usize, _: Point| {
        let rest = source.as_bytes().get(start..).unwrap_or_default();
        let piece = &rest[..rest.len().min(PIECE_BYTES)];
        bytes_read.set(bytes_read.get() + piece.len());
        if bytes_read.get() > BYTES_READ_MAX { &[] } else { piece }
    };
    let options = ParseOptions::new().progress_callback(&mut check);
    let tree = parser.parse_with_options(&mut read, None, Some(options))?;
    (bytes_read.get() <= BYTES_READ_MAX && !tree.root_node().has_error()).then_some(tree)
}

/// A reason for which the tree is not read to its end.
#[derive(Debug)]
enum Stop {
    /// TypeScript reads the text differently from the parser.
    Misread,
    Unsupported(UnsupportedSyntax),
}

type Visited = Result<(), Stop>;

/// The changes that remove the types of a script.
#[derive(Debug, Default)]
struct Edits<'a> {
    source: &'a str,
    /// The ranges that become spaces.
    blanks: Vec<Range<usize>>,
    /// The characters that take the place of others, by position.
    replacements: BTreeMap<usize, char>,
    /// The ends of statements and class fields without a semicolon.
    open_ends: HashSet<usize>,
    /// The end of the last node of which the parts need no visit.
    visited_end: usize,
    /// The end of the last `this` parameter.
    this_end: usize,
}

impl<'a> Edits<'a> {
    /// Adds the changes for all nodes of a tree, in the order of the text.
    fn collect(&mut self, tree: &Tree) -> Visited {
        let mut cursor = tree.walk();
        let mut ancestors: Vec<Node<'_>> = Vec::new();
        loop {
            let node = cursor.node();
            if node.start_byte() >= self.visited_end {
                self.visit(node, &ancestors)?;
            } else if matches!(node.kind(), "array_type" | "lookup_type" | "generic_type") {
                self.check_line(node)?;
            }
            if cursor.goto_first_child() {
                ancestors.push(node);
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return Ok(());
                }
                ancestors.pop();
            }
        }
    }

    /// Adds the changes for one node.
    fn visit(&mut self, node: Node<'_>, ancestors: &[Node<'_>]) -> Visited {
        let parent = ancestors.last().copied().unwrap_or(node);
        match (node.kind(), parent.kind()) {
            ("type_annotation", "parenthesized_expression") => return Err(Stop::Misread),
            ("type_arguments", _) => self.visit_type_arguments(node, ancestors)?,
            ("as", "as_expression") | ("satisfies", "satisfies_expression") => {
                self.visit_assertion_tail(node, ancestors)?;
            }
            ("type_annotation" | "type_predicate_annotation" | "asserts_annotation", _)
            | ("type_parameters" | "implements_clause", _)
            | ("?", "optional_parameter" | "method_definition" | "public_field_definition")
            | ("!", "variable_declarator" | "public_field_definition") => {
                self.blank(node.byte_range());
            }
            ("!", "non_null_expression") | ("abstract", "abstract_class_declaration") => {
                self.check_line(parent)?;
                self.blank(node.byte_range());
            }
            ("accessibility_modifier" | "override_modifier" | "readonly", _) => {
                self.visit_modifier(node, parent);
            }
            ("required_parameter" | "optional_parameter", _) => self.visit_parameter(node)?,
            (",", "formal_parameters") => self.visit_comma(node),
            ("arrow_function", _) => self.visit_arrow_function(node),
            ("internal_module" | "module", _) => self.visit_namespace(node)?,
            ("interface_declaration" | "type_alias_declaration" | "ambient_declaration", _) => {
                self.check_line(node)?;
                self.blank_statement(node);
            }
            ("function_signature" | "abstract_method_signature", _)
            | ("method_signature" | "index_signature", _) => self.blank_statement(node),
            ("public_field_definition", _) if has_token(node, &["declare", "abstract"]) => {
                self.blank_statement(node);
            }
            ("public_field_definition" | "expression_statement", _)
            | ("lexical_declaration" | "variable_declaration", _)
            | ("return_statement" | "throw_statement", _) => self.add_open_end(node),
            ("import_statement" | "import_alias", _) => self.visit_module_item(node, IMPORT)?,
            ("export_statement", _) => self.visit_module_item(node, EXPORT)?,
            ("enum_declaration", _) => self.unsupported(ENUM, node)?,
            ("decorator", _) => self.unsupported(DECORATOR, node)?,
            _ => {}
        }
        Ok(())
    }

    /// Checks that the second part of `node` is on the line on which the first one ends.
    /// TypeScript requires this of some nodes, unlike the parser.
    fn check_line(&self, node: Node<'_>) -> Visited {
        let mut cursor = node.walk();
        let mut parts = node.children(&mut cursor).filter(|part| part.kind() != "comment");
        let (Some(first), Some(second)) = (parts.next(), parts.next()) else { return Ok(()) };
        let is_split = self.has_line_break(first.end_byte()..second.start_byte());
        if is_split { Err(Stop::Misread) } else { Ok(()) }
    }

    fn unsupported(&self, (construct, advice): Explanation, node: Node<'_>) -> Visited {
        let place = CodePlace::after(self.source.get(..node.start_byte()).unwrap_or_default());
        Err(Stop::Unsupported(UnsupportedSyntax { construct, advice, place }))
    }

    fn blank(&mut self, range: Range<usize>) {
        self.visited_end = range.end;
        self.blanks.push(range);
    }

    /// Replaces a statement or a member of a class by an empty one.
    fn blank_statement(&mut self, node: Node<'_>) {
        self.replacements.insert(node.start_byte(), ';');
        self.blank(node.start_byte()..text_end(node));
    }

    fn add_open_end(&mut self, node: Node<'_>) {
        let end = text_end(node);
        if !self.source[..end].ends_with(';') && !self.source[end..].trim_start().starts_with(';') {
            self.open_ends.insert(end);
        }
    }

    fn has_line_break(&self, range: Range<usize>) -> bool {
        self.source.get(range).is_some_and(|text| text.contains(is_line_break))
    }

    fn visit_type_arguments(&mut self, node: Node<'_>, ancestors: &[Node<'_>]) -> Visited {
        // The parser reads `a<b||c>(d)` as a call with a union.
        let text = &self.source[node.byte_range()];
        if text.contains("||") || text.contains("&&") {
            return Err(Stop::Misread);
        }
        let (before, after) = (&self.source[..node.start_byte()], &self.source[node.end_byte()..]);
        let is_spaced =
            before.ends_with(char::is_whitespace) && text[1..].starts_with(char::is_whitespace);
        let mut kinds = ancestors.iter().rev().map(Node::kind);
        let (kind, outer) = (kinds.next().unwrap_or_default(), kinds.next().unwrap_or_default());
        // Otherwise, `<` and `>` are operators.
        let is_type = match kind {
            "instantiation_expression" => !is_spaced && outer != "subscript_expression",
            "call_expression" => !is_spaced,
            _ => true,
        };
        if kind == "type_assertion" {
            let value = after.trim_start();
            let is_statement = matches!(outer, "arrow_function" | "expression_statement")
                && ["{", "function", "class"].iter().any(|word| value.starts_with(word));
            let value_start = self.source.len() - value.len();
            if is_statement || self.has_line_break(node.start_byte()..value_start) {
                return self.unsupported(ASSERTION, node);
            }
        }
        self.visited_end = node.end_byte();
        self.blanks.extend(is_type.then(|| node.byte_range()));
        Ok(())
    }

    /// Adds the changes for the end of an assertion, from its `as` or `satisfies`.
    fn visit_assertion_tail(&mut self, word: Node<'_>, ancestors: &[Node<'_>]) -> Visited {
        let [.., outer, assertion] = ancestors else { return Ok(()) };
        let tail = word.start_byte()..assertion.end_byte();
        if outer.child(0).is_some_and(|first| first.id() == assertion.id()) {
            match outer.kind() {
                "binary_expression" if regroups(*assertion, *outer) => {
                    return self.unsupported(REGROUPING, word);
                }
                // TypeScript ends the statement before the parenthesis.
                "call_expression" => {
                    let arguments = outer.child_by_field_name("arguments");
                    let start = arguments.map_or(tail.end, |arguments| arguments.start_byte());
                    if !self.has_line_break(tail.end..start) {
                        return Err(Stop::Misread);
                    }
                    self.replacements.insert(tail.start, ';');
                }
                "member_expression" | "subscript_expression" => return Err(Stop::Misread),
                _ => {}
            }
        }
        self.blank(tail);
        Ok(())
    }

    fn visit_modifier(&mut self, node: Node<'_>, member: Node<'_>) {
        let words = |character: char| character.is_alphabetic() || character.is_whitespace();
        let name = self.source[node.end_byte()..].trim_start_matches(words);
        // Without the modifier, such a member would continue the field before it.
        if node.start_byte() == member.start_byte() && name.starts_with(['[', '*']) {
            self.replacements.insert(node.start_byte(), ';');
        }
        self.blank(node.byte_range());
    }

    fn visit_parameter(&mut self, node: Node<'_>) -> Visited {
        if has_token(node, &["accessibility_modifier", "override_modifier", "readonly"]) {
            return self.unsupported(PARAMETER_PROPERTY, node);
        }
        if node.child_by_field_name("pattern").is_some_and(|pattern| pattern.kind() == "this") {
            self.blank(node.byte_range());
            self.this_end = node.end_byte();
        }
        Ok(())
    }

    fn visit_comma(&mut self, node: Node<'_>) {
        let gap = self.source.get(self.this_end..node.start_byte());
        if gap.is_some_and(|gap| gap.trim_start().is_empty()) {
            self.blank(node.byte_range());
        }
    }

    /// Moves the parentheses of an arrow function to the other end of its types, if there is a line
    /// break between. JavaScript forbids one before the arrow and after `async` and `return`.
    fn visit_arrow_function(&mut self, node: Node<'_>) {
        let Some(parameters) = node.child_by_field_name("parameters") else { return };
        let (open, close) = (parameters.start_byte(), parameters.end_byte() - 1);
        if let Some(types) = node.child_by_field_name("type_parameters")
            && self.has_line_break(types.start_byte()..open)
        {
            self.blanks.push(types.start_byte()..open + 1);
            self.replacements.insert(types.start_byte(), '(');
        }
        if let Some(kind) = node.child_by_field_name("return_type")
            && self.has_line_break(close..kind.end_byte())
            && let Some(last) = self.source[..kind.end_byte()].char_indices().next_back()
        {
            self.blanks.push(close..kind.end_byte());
            self.replacements.insert(last.0, ')');
        }
    }

    fn visit_namespace(&mut self, node: Node<'_>) -> Visited {
        let mut namespaces = vec![node];
        while let Some(namespace) = namespaces.pop() {
            let Some(body) = namespace.child_by_field_name("body") else { continue };
            for statement in body.named_children(&mut body.walk()) {
                let inner = match statement.kind() {
                    "export_statement" => statement.child_by_field_name("declaration"),
                    "expression_statement" => statement.child(0),
                    _ => None,
                };
                let declaration = inner.unwrap_or(statement);
                match declaration.kind() {
                    "internal_module" | "module" => namespaces.push(declaration),
                    "interface_declaration" | "type_alias_declaration" | "comment" => {}
                    "ambient_declaration" | "empty_statement" => {}
                    _ => return self.unsupported(NAMESPACE, namespace),
                }
            }
        }
        self.blank_statement(node);
        Ok(())
    }

    /// Adds the changes for an import or export, which must name no value.
    fn visit_module_item(&mut self, node: Node<'_>, explanation: Explanation) -> Visited {
        let types = ["type_alias_declaration", "interface_declaration", "ambient_declaration"];
        let is_type = has_token(node, &["type"]) && !has_token(node, &["import_require_clause"])
            || has_only_type_specifiers(node)
            || has_token(node, &types);
        self.blank_statement(node);
        if is_type { Ok(()) } else { self.unsupported(explanation, node) }
    }

    /// Returns the script after its changes.
    fn apply(mut self) -> Cow<'a, str> {
        if self.blanks.is_empty() {
            return Cow::Borrowed(self.source);
        }
        self.blanks.sort_unstable_by_key(|blank| blank.start);
        for blank in self.blanks.iter().filter(|blank| self.open_ends.contains(&blank.end)) {
            self.replacements.insert(blank.start, ';');
        }
        let mut stripped = String::with_capacity(self.source.len());
        let mut blanks = self.blanks.iter().peekable();
        let mut blank_end = 0;
        for (at, character) in self.source.char_indices() {
            while let Some(blank) = blanks.next_if(|blank| blank.start <= at) {
                blank_end = blank_end.max(blank.end);
            }
            let is_kept = at >= blank_end || is_line_break(character);
            let default = if is_kept { character } else { ' ' };
            stripped.push(self.replacements.get(&at).copied().unwrap_or(default));
        }
        Cow::Owned(stripped)
    }
}

fn is_line_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// Returns whether a child of `node` has one of `kinds`.
fn has_token(node: Node<'_>, kinds: &[&str]) -> bool {
    node.children(&mut node.walk()).any(|child| kinds.contains(&child.kind()))
}

/// Returns the end of `node` without the comments that the parser adds to it.
fn text_end(node: Node<'_>) -> usize {
    let mut cursor = node.walk();
    let mut has_child = cursor.goto_last_child();
    while has_child && cursor.node().kind() == "comment" {
        has_child = cursor.goto_previous_sibling();
    }
    if has_child { cursor.node().end_byte() } else { node.end_byte() }
}

/// Returns whether an import or export has a list in which each name follows the word `type`.
fn has_only_type_specifiers(statement: Node<'_>) -> bool {
    let kinds = ["import_clause", "named_imports", "export_clause"];
    let mut list = statement;
    while let Some(inner) = list.named_child(0).filter(|inner| kinds.contains(&inner.kind())) {
        list = inner;
    }
    list.id() != statement.id()
        && (list.named_child_count() > 0 || list.kind() == "export_clause")
        && list.named_children(&mut list.walk()).all(|specifier| has_token(specifier, &["type"]))
}

/// Returns whether the operation inside `assertion` and the one around it group differently without
/// the type between them.
fn regroups(assertion: Node<'_>, outer: Node<'_>) -> bool {
    let precedence = |operation: Node<'_>| {
        let operator = operation.child_by_field_name("operator");
        match operator.map_or("", |operator| operator.kind()) {
            _ if operation.kind() != "binary_expression" => 5,
            "**" => 4,
            "*" | "/" | "%" => 3,
            "+" | "-" => 2,
            "<<" | ">>" | ">>>" => 1,
            _ => 0,
        }
    };
    let is_assertion = |kind: &str| matches!(kind, "as_expression" | "satisfies_expression");
    let mut values = iter::successors(Some(assertion), |value| value.child(0));
    let value = values.find(|value| !is_assertion(value.kind()));
    value.is_some_and(|inner| precedence(outer) > precedence(inner))
}
