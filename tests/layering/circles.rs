//! The circles of files, read from the `use` declarations and the paths in their text.
//!
//! A name that a module passes on counts as a use of the file that defines it. A file's use of the
//! modules that contain it does not count: it stands inside them.

use std::collections::{BTreeMap, BTreeSet};

/// A module, as the names from the crate's root to it.
type ModulePath = Vec<String>;

/// The text of one file, as far as arrows depend on it.
#[derive(Default)]
struct Module {
    imports: Vec<Import>,
    /// The names of its items.
    defined: BTreeSet<String>,
    /// The paths in its code, outside `use` declarations.
    paths: Vec<Vec<String>>,
    /// The words of its code, outside `use` declarations.
    words: BTreeSet<String>,
}

/// One name that a `use` declaration brings into scope.
struct Import {
    path: Vec<String>,
    name: String,
    is_public: bool,
}

/// The files of the crate, by module.
pub(crate) struct Sources(BTreeMap<ModulePath, Module>);

impl Sources {
    /// Reads files: each a path from `src/` on, and its text without tests.
    pub(crate) fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(
            files.into_iter().map(|(path, text)| (module_path(path), Module::read(text))).collect(),
        )
    }

    /// Returns the circles, each as the modules in it.
    pub(crate) fn circles(&self) -> BTreeSet<Vec<String>> {
        let arrows: BTreeMap<_, _> = self.0.keys().map(|from| (from, self.arrows(from))).collect();
        let reached: BTreeMap<_, BTreeSet<&ModulePath>> = arrows
            .keys()
            .map(|from| {
                let (mut reached, mut open) = (BTreeSet::new(), vec![*from]);
                while let Some(next) = open.pop() {
                    open.extend(arrows[next].iter().filter(|found| reached.insert(*found)));
                }
                (*from, reached)
            })
            .collect();
        let circle = |from: &&ModulePath| -> Vec<String> {
            let is_back = |to: &&&ModulePath| reached[**to].contains(*from);
            reached[*from].iter().filter(is_back).map(|module| module.join("::")).collect()
        };
        reached.keys().map(circle).filter(|circle| circle.len() > 1).collect()
    }

    /// Returns the modules that `from` uses, without those that contain it.
    fn arrows(&self, from: &ModulePath) -> BTreeSet<ModulePath> {
        let module = &self.0[from];
        let is_used = |import: &&Import| !import.is_public || module.words.contains(&import.name);
        let imported = module.imports.iter().filter(is_used).map(|import| &import.path);
        let mut found = BTreeSet::new();
        for path in imported.chain(&module.paths) {
            let Some(path) = self.absolute(from, path, true) else { continue };
            // A module in scope is used only by the paths that begin with it.
            if let Some(used) = self.definition(&path, 0).filter(|used| *used != path.as_slice())
                && used.first() == from.first()
                && !from.starts_with(used)
            {
                found.insert(used.to_vec());
            }
        }
        found
    }

    /// Returns a path from the crate's root on, if it is one inside the crate.
    fn absolute(&self, from: &[String], path: &[String], has_scope: bool) -> Option<ModulePath> {
        let joined = |base: &[String], rest: &[String]| [base, rest].concat();
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some(joined(from, &path[1..])),
            "super" => {
                let n_up = path.iter().take_while(|name| *name == "super").count();
                Some(joined(&from[..from.len().checked_sub(n_up)?], &path[n_up..]))
            }
            first => {
                let child = joined(from, &path[..1]);
                if self.0.contains_key(&child) {
                    return Some(joined(from, path));
                }
                let imports = has_scope.then(|| &self.0[from].imports)?;
                let import = imports.iter().find(|import| import.name == first)?;
                Some(joined(&self.absolute(from, &import.path, false)?, &path[1..]))
            }
        }
    }

    /// Returns the module that defines what `path` names, through all that pass it on.
    fn definition<'a>(&'a self, path: &[String], depth: usize) -> Option<&'a [String]> {
        let n = (0..=path.len()).rev().find(|n| self.0.contains_key(&path[..*n]))?;
        let (at, module) = self.0.get_key_value(&path[..n])?;
        let Some(name) = path.get(n).filter(|name| !module.defined.contains(*name)) else {
            return Some(at);
        };
        let passes = |import: &&Import| import.name == *name || import.name == "*";
        let passed_on = module.imports.iter().filter(passes).filter(|_| depth < 8);
        let mut sources = passed_on.filter_map(|import| {
            let mut source = self.absolute(at, &import.path, false)?;
            if source.last().is_some_and(|last| last == "*") {
                *source.last_mut()? = name.clone();
            }
            source.extend_from_slice(&path[n + 1..]);
            self.definition(&source, depth + 1).filter(|found| *found != at.as_slice())
        });
        Some(sources.next().unwrap_or(at))
    }
}

/// Returns the module of a file.
fn module_path(path: &str) -> ModulePath {
    let path = path.trim_start_matches("src/").trim_end_matches(".rs");
    let path = path.trim_end_matches("/mod");
    path.split('/').filter(|name| *name != "lib").map(str::to_owned).collect()
}

impl Module {
    fn read(text: &str) -> Self {
        let tokens = tokens(text);
        let word = |at: usize| tokens.get(at).filter(|token| is_word(token)).map(String::as_str);
        let is = |at: usize, token: &str| tokens.get(at).is_some_and(|found| found == token);
        let mut module = Self::default();
        let mut at = 0;
        while at < tokens.len() {
            match word(at) {
                Some("use") if word(at + 1).is_some() => {
                    let is_public = at > 0 && (is(at - 1, "pub") || is(at - 1, ")"));
                    at += 1;
                    module.read_use(&tokens, &mut at, &[], is_public);
                }
                Some("struct" | "enum" | "trait" | "fn" | "const" | "static" | "type") => {
                    module.defined.extend(word(at + 1).map(str::to_owned));
                    at += 1;
                }
                Some(first) => {
                    module.words.insert(first.to_owned());
                    let mut path = vec![first.to_owned()];
                    while is(at + 1, "::")
                        && let Some(next) = word(at + 2)
                    {
                        path.push(next.to_owned());
                        at += 2;
                    }
                    if path.len() > 1 {
                        module.paths.push(path);
                    }
                    at += 1;
                }
                None => at += 1,
            }
        }
        module
    }

    /// Reads the tree of a `use` declaration below `outer`, up to the mark that ends it.
    fn read_use(&mut self, tokens: &[String], at: &mut usize, outer: &[String], is_public: bool) {
        let mut path = outer.to_vec();
        let mut name = None;
        while let Some(token) = tokens.get(*at).filter(|token| !";,}".contains(token.as_str())) {
            *at += 1;
            match token.as_str() {
                "{" => {
                    while tokens.get(*at).is_some_and(|token| token != "}") {
                        self.read_use(tokens, at, &path, is_public);
                        *at += usize::from(tokens.get(*at).is_some_and(|token| token == ","));
                    }
                    *at += 1;
                    return;
                }
                "as" => path.extend(name.take()),
                "::" => path.extend(name.take()),
                _ => name = Some(token.clone()),
            }
        }
        // The name after `as`, the last part of the path, or the module that a list begins with.
        let renamed =
            name.clone().filter(|_| tokens.get(*at - 2).is_some_and(|token| token == "as"));
        let Some(last) = name else { return };
        if renamed.is_none() && last != "self" {
            path.push(last);
        }
        let Some(name) = renamed.or_else(|| path.last().cloned()) else { return };
        self.imports.push(Import { path, name, is_public });
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphanumeric() || first == '_')
}

/// Splits code into words, `::` and single marks, without comments and texts.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_part = |found: char| found.is_alphanumeric() || found == '_';
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            'r' if rest.starts_with("r\"") || rest.starts_with("r#\"") => {
                let end = if rest.starts_with("r#") { "\"#" } else { "\"" };
                let start = 1 + end.len();
                rest[start..].find(end).map_or(rest.len(), |length| start + length + end.len())
            }
            '"' => {
                let mut is_escaped = false;
                let is_end = |found: char| {
                    let ends = found == '"' && !is_escaped;
                    is_escaped = found == '\\' && !is_escaped;
                    ends
                };
                rest[1..].find(is_end).map_or(rest.len(), |length| length + 2)
            }
            // A character, not a lifetime.
            '\'' if rest.starts_with("'\\") => rest[3..].find('\'').map_or(1, |length| length + 4),
            '\'' if rest.starts_with("'\"'") => 3,
            _ if is_part(first) => rest.find(|found| !is_part(found)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        let token = &rest[..length];
        if !first.is_whitespace() && !token.starts_with("//") && !token.contains('"') {
            tokens.push(token.to_owned());
        }
        rest = &rest[length..];
    }
    tokens
}
