//! The declarations of tools in the form in which a script calls them: `servers.git.log({ … })`.
//!
//! A model pays for each line, so comments are short, and a type without comments is on one line.
//! The text is complete without the library of a browser, which a script does not have.
//!
//! Pure.

use serde_json::Value;

use super::{
    Tool, declared,
    type_names::TypeNames,
    type_shape::{NamedType, TypeShape},
    writer::{TypeStyle, TypeWriter, brief_comment, key, quoted},
};
use crate::config::defaults;

/// The functions of a script besides the tools.
const HELPERS: &str = include_str!("script_helpers.d.ts");

/// The members of a server that are not its tools. `call` calls any tool. A value with one of the
/// others would pass for a promise, or write itself as JSON.
const NO_METHODS: [&str; 3] = ["call", "then", "toJSON"];

/// The largest number of steps that decide whether a tool needs arguments. People's schemas take
/// one or two.
const STEPS_MAX: usize = 256;

/// The declarations of several tools.
#[derive(Debug, Default)]
pub struct ScriptTypes {
    names: TypeNames,
    /// The methods of each server, in the order in which their first tools came.
    servers: Vec<(String, String)>,
    types: String,
}

/// The declaration of one tool.
#[derive(Debug)]
pub struct ScriptDeclaration {
    server: String,
    method: String,
    /// The named types that the method refers to.
    types: String,
}

impl ScriptDeclaration {
    /// Returns the number of bytes that it takes in a JSON text.
    pub fn n_bytes(&self) -> usize {
        let texts = [&self.server, &self.method, &self.types];
        texts.into_iter().map(|text| Value::from(text.as_str()).to_string().len()).sum()
    }
}

impl ScriptTypes {
    /// Returns the declaration of a tool whose name no other tool of its server has. If it takes
    /// more than `bytes_max` bytes, the last parts of its types are left open.
    pub fn declare(&mut self, tool: &Tool, bytes_max: usize) -> ScriptDeclaration {
        let mut n_parts_max = defaults::TYPEGEN_PARTS_MAX;
        loop {
            let (declaration, names) = self.declaration(tool, n_parts_max);
            if n_parts_max == 0 || declaration.n_bytes() <= bytes_max {
                return declaration;
            }
            names.iter().for_each(|name| self.names.release(name));
            n_parts_max /= 10;
        }
    }

    /// Adds a declaration.
    pub fn add(&mut self, declaration: ScriptDeclaration) {
        let ScriptDeclaration { server, method, types } = declaration;
        match self.servers.iter_mut().find(|(name, _)| *name == server) {
            Some((_, methods)) => methods.push_str(&method),
            None => self.servers.push((server, method)),
        }
        self.types.push_str(&types);
    }

    /// Returns the text of all declarations.
    pub fn text(&self) -> String {
        let servers = self
            .servers
            .iter()
            .map(|(name, methods)| format!("  {}: {{\n{methods}  }};\n", key(name)));
        let servers: String = servers.collect();
        format!("declare const servers: {{\n{servers}}};\n{}{HELPERS}", self.types)
    }

    /// Returns the declaration of a tool with at most so many parts in each of its two types, and
    /// the names that it takes.
    fn declaration(&mut self, tool: &Tool, n_parts_max: usize) -> (ScriptDeclaration, Vec<String>) {
        let mut names = Vec::new();
        let mut types = String::new();
        let mut read = |schema: &Option<Value>, part: &str| {
            let schema = schema.as_ref()?;
            let name = self.names.of_tool_alone(&tool.server, &tool.name, part);
            let named = declared(name, schema, &mut self.names, n_parts_max);
            names.extend(named.iter().map(|one| one.name.clone()));
            Some(named)
        };
        let (input, output) = (read(&tool.input, "Input"), read(&tool.output, "Output"));
        let argument = argument(&input.unwrap_or_default(), &mut types);
        let result = result(&output.unwrap_or_default(), &mut types);
        let about = brief_comment(tool.description.as_deref(), &[], 2);
        let call = match tool.name.as_str() {
            name if NO_METHODS.contains(&name) => {
                format!("call(tool: {}, {argument})", quoted(name))
            }
            // An unquoted `new` would declare a constructor.
            "new" => format!("\"new\"({argument})"),
            name => format!("{}({argument})", key(name)),
        };
        let method = format!("{about}    {call}: Promise<{result}>;\n");
        (ScriptDeclaration { server: tool.server.clone(), method, types }, names)
    }
}

/// Returns the parameter for the arguments of a tool, and adds the types that it refers to.
fn argument(named: &[NamedType], types: &mut String) -> String {
    let writer = TypeWriter { style: TypeStyle::SCRIPT_INPUT, named };
    let Some(root) = named.first().filter(|root| root.kind != TypeShape::Unknown) else {
        return format!("args?: {}", writer.text(&TypeShape::any_object(), 2));
    };
    let mark = if accepts_nothing(&root.kind, named, &mut { STEPS_MAX }) { "?" } else { "" };
    // A type that refers to itself needs its name.
    let is_recursive = named.iter().any(|one| refers_to_root(&one.kind));
    for one in named.iter().skip(usize::from(!is_recursive)) {
        types.push_str(&writer.declaration("type", one));
    }
    let kind = if is_recursive { &TypeShape::Reference(0) } else { &root.kind };
    format!("args{mark}: {}", writer.text(kind, 2))
}

/// Returns the type of a tool's result, and adds the types that it refers to.
fn result(named: &[NamedType], types: &mut String) -> String {
    let writer = TypeWriter { style: TypeStyle::SCRIPT_OUTPUT, named };
    let Some(root) = named.first().filter(|root| root.kind != TypeShape::Unknown) else {
        return writer.text(&TypeShape::Unknown, 0);
    };
    for one in named {
        types.push_str(&writer.declaration("type", one));
    }
    root.name.clone()
}

/// Returns whether an object without members is of this type; `false` if that takes too many steps.
fn accepts_nothing(kind: &TypeShape, named: &[NamedType], n_steps_left: &mut usize) -> bool {
    // Types may refer to each other in very many ways.
    if *n_steps_left == 0 {
        return false;
    }
    *n_steps_left -= 1;
    let mut accepts = |kind: &TypeShape| accepts_nothing(kind, named, n_steps_left);
    match kind {
        TypeShape::Unknown => true,
        TypeShape::Object { members, .. } => members.iter().all(|member| member.is_optional),
        TypeShape::Reference(to) => accepts(&named[*to].kind),
        TypeShape::Union(all) => all.iter().any(accepts),
        TypeShape::Intersection(all) => all.iter().all(accepts),
        TypeShape::Never
        | TypeShape::Word(_)
        | TypeShape::Literal(_)
        | TypeShape::Array(_)
        | TypeShape::Tuple { .. } => false,
    }
}

/// Returns whether a type refers to the first of the named types.
fn refers_to_root(kind: &TypeShape) -> bool {
    match kind {
        TypeShape::Reference(to) => *to == 0,
        TypeShape::Array(element) => refers_to_root(element),
        TypeShape::Tuple { required, optional, rest } => {
            required.iter().chain(optional).chain(rest.as_deref()).any(refers_to_root)
        }
        TypeShape::Object { members, others } => {
            let members = members.iter().map(|member| &member.kind);
            members.chain(others.as_deref()).any(refers_to_root)
        }
        TypeShape::Union(all) | TypeShape::Intersection(all) => all.iter().any(refers_to_root),
        TypeShape::Unknown | TypeShape::Never | TypeShape::Word(_) | TypeShape::Literal(_) => false,
    }
}
