//! Endpoints behind `mcp-remote`, a program that connects to one endpoint and logs in there.
//!
//! Pure. metamcp connects to the endpoint itself, so that one login serves all clients. Source: the
//! README of mcp-remote.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    declaration_origin::ImportContext,
    endpoint_conversion::shown_url,
    foreign_server::ImportedEndpoint,
    secret_detection::looks_secret,
    server_members::shown,
    variable_syntax::{ForeignText, TextPiece, VariableSyntax},
};

/// The programs that fetch or start a package, and their words before its name.
const RUNNERS: [&str; 14] = [
    "bun", "bunx", "cmd", "deno", "dlx", "exec", "node", "npm", "npx", "pnpm", "pnpx", "run", "x",
    "yarn",
];

/// The options with a value and without a counterpart.
const IGNORED_WITH_VALUE: [&str; 5] =
    ["--auth-timeout", "--callback-path", "--host", "--ignore-tool", "--resource"];

/// The first of the characters that stand for references within a JSON text. They are private to
/// each program, so a JSON text of a client has none.
const PLACEHOLDER: u32 = 0xE000;

/// An endpoint that was behind `mcp-remote`.
pub(super) struct UnwrappedBridge {
    pub(super) endpoint: ImportedEndpoint,
    /// The options without a counterpart.
    pub(super) ignored: Vec<String>,
}

/// Returns the endpoint that a program connects to, if the program is `mcp-remote`. A program stays
/// one if its URL contains a secret or a variable, because only a program can receive these.
pub(super) fn unwrapped(
    command: &ForeignText,
    args: &[ForeignText],
    env: &BTreeMap<String, ForeignText>,
) -> Option<UnwrappedBridge> {
    let mut words = std::iter::once(command).chain(args);
    find_bridge(&mut words)?;
    let mut reader =
        BridgeReader { env, used: BTreeSet::new(), endpoint: None, ignored: Vec::new() };
    let mut endpoint = ImportedEndpoint::default();
    while let Some(word) = words.next() {
        reader.read(word, &mut words, &mut endpoint);
    }
    endpoint.url = reader.endpoint.take()?;
    let url = endpoint.url.as_plain()?;
    let is_url = url.starts_with("http://") || url.starts_with("https://");
    if !is_url || shown_url(&endpoint.url) != url {
        return None;
    }
    let is_https = url.starts_with("https://");
    endpoint.ca = reader.variable("NODE_EXTRA_CA_CERTS", |path| is_https && path.starts_with('/'));
    let unused = env.keys().filter(|name| !reader.used.contains(*name));
    let unused = unused.map(|name| format!("{} of `env`", shown(name)));
    reader.ignored.extend(unused);
    Some(UnwrappedBridge { endpoint, ignored: reader.ignored })
}

/// Advances `words` behind the name of the package.
fn find_bridge<'a>(words: &mut impl Iterator<Item = &'a ForeignText>) -> Option<()> {
    let mut is_value = false;
    for word in words {
        let word = word.as_plain()?;
        let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
        let is_bridge = |name: &str| name == "mcp-remote" || name.starts_with("mcp-remote@");
        let name = name.strip_prefix("npm:").unwrap_or(name);
        if !is_value && (is_bridge(name) || word.ends_with("/mcp-remote/dist/proxy.js")) {
            return Some(());
        }
        let runner = name.trim_end_matches(".exe").trim_end_matches(".cmd");
        let is_option = word.starts_with('-') || word.eq_ignore_ascii_case("/c");
        if !is_value && !is_option && !RUNNERS.contains(&runner) {
            return None;
        }
        is_value = matches!(word, "-p" | "--package");
    }
    None
}

/// The reading of the words after the name of the package.
struct BridgeReader<'a> {
    env: &'a BTreeMap<String, ForeignText>,
    /// The variables that have a counterpart.
    used: BTreeSet<String>,
    /// The URL.
    endpoint: Option<ForeignText>,
    ignored: Vec<String>,
}

impl BridgeReader<'_> {
    fn read<'w>(
        &mut self,
        word: &ForeignText,
        rest: &mut impl Iterator<Item = &'w ForeignText>,
        endpoint: &mut ImportedEndpoint,
    ) {
        match word.as_plain() {
            // metamcp detects the transport, and connects to each declared URL.
            Some("--transport") => drop(rest.next()),
            Some("--allow-http" | "--") => {}
            Some(flag @ "--header") => match rest.next().and_then(|header| self.header(header)) {
                Some((name, value)) => drop(endpoint.headers.insert(name, value)),
                None => self.ignored.push(shown(flag)),
            },
            Some("--disable-resource-parameter") => endpoint.login.omits_resource = true,
            Some("--enable-proxy") => {
                let is_plain = |proxy: &str| proxy.starts_with("http://") && !looks_secret(proxy);
                let names = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];
                let proxy = names.into_iter().find_map(|name| self.variable(name, is_plain));
                endpoint.proxy = Some(proxy.unwrap_or_else(|| "environment".to_owned()));
            }
            Some(flag @ "--static-oauth-client-info") => {
                let mut info = rest.next().and_then(object).unwrap_or_default();
                endpoint.login.client_id = info.remove("client_id");
                endpoint.login.client_secret = info.remove("client_secret");
                if endpoint.login.client_id.is_none() || !info.is_empty() {
                    self.ignored.push(shown(flag));
                }
            }
            Some(flag @ "--static-oauth-client-metadata") => {
                let mut metadata = rest.next().and_then(object).unwrap_or_default();
                let scope = metadata.remove("scope");
                let scopes = scope.as_ref().and_then(ForeignText::as_plain).unwrap_or_default();
                endpoint.login.scopes = scopes.split_whitespace().map(str::to_owned).collect();
                if scopes.is_empty() || !metadata.is_empty() {
                    self.ignored.push(shown(flag));
                }
            }
            Some(flag) if IGNORED_WITH_VALUE.contains(&flag) => {
                rest.next();
                self.ignored.push(shown(flag));
            }
            Some(flag) if flag.starts_with('-') => self.ignored.push(shown(flag)),
            _ if self.endpoint.is_none() => self.endpoint = Some(word.clone()),
            Some(port) if port.parse::<u16>().is_ok() => {
                self.ignored.push("the port of its redirect address".to_owned());
            }
            _ => self.ignored.push("an unknown argument".to_owned()),
        }
    }

    /// Returns the plain value of a variable that `is_usable`, which then has a counterpart.
    fn variable(&mut self, name: &str, is_usable: impl Fn(&str) -> bool) -> Option<String> {
        let value = self.env.get(name)?.as_plain().filter(|value| is_usable(value))?;
        self.used.insert(name.to_owned());
        Some(value.to_owned())
    }

    /// Returns the name and the value of `NAME: VALUE`. `mcp-remote` inserts the variables that
    /// `${…}` names, from `env` before those of the client.
    fn header(&mut self, header: &ForeignText) -> Option<(String, ForeignText)> {
        let mut value = ForeignText::default();
        let mut name = None;
        for piece in &header.0 {
            let mut piece = piece.clone();
            if name.is_none() {
                let TextPiece::Text(text) = &piece else { return None };
                let (before, after) = text.split_once(':')?;
                name = Some(before.trim().to_owned());
                piece = TextPiece::Text(after.trim_start().to_owned());
            }
            let pieces = match piece {
                TextPiece::Text(text) => {
                    let context = ImportContext::default();
                    ForeignText::read(&text, VariableSyntax::Dollar, &context).0
                }
                piece => vec![piece],
            };
            for piece in pieces {
                match &piece {
                    TextPiece::Variable { name, .. } if self.env.contains_key(name) => {
                        self.used.insert(name.clone());
                        self.env[name].0.iter().for_each(|piece| value.push(piece.clone()));
                    }
                    _ => value.push(piece),
                }
            }
        }
        name.map(|name| (name, value))
    }
}

/// Reads a JSON object of texts, which may contain references of the client.
fn object(text: &ForeignText) -> Option<BTreeMap<String, ForeignText>> {
    let placeholders = (PLACEHOLDER..).filter_map(char::from_u32).zip(&text.0);
    let placeholders: Vec<(char, &TextPiece)> = placeholders.collect();
    let show = |(placeholder, piece): &(char, &TextPiece)| match piece {
        TextPiece::Text(text) => text.clone(),
        _ => placeholder.to_string(),
    };
    let json: String = placeholders.iter().map(show).collect();
    let members: Map<String, Value> = serde_json::from_str(&json).ok()?;
    let restore =
        |value: &str| {
            let mut text = ForeignText::default();
            for found in value.chars() {
                let is_it = |(placeholder, piece): &&(char, &TextPiece)| {
                    *placeholder == found && !matches!(piece, TextPiece::Text(_))
                };
                let known = placeholders.iter().find(is_it);
                text.push(known.map_or_else(
                    || TextPiece::Text(found.to_string()),
                    |(_, piece)| (*piece).clone(),
                ));
            }
            text
        };
    let texts = members.into_iter();
    Some(texts.filter_map(|(name, value)| Some((name, restore(value.as_str()?)))).collect())
}
