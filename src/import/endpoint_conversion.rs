//! The conversion of an endpoint over HTTP: its URL, headers, login, TLS and proxy.
//!
//! Pure.

use std::collections::BTreeMap;

use super::{
    foreign_server::{ForeignLogin, ImportedEndpoint},
    secret_detection::{HIDDEN, is_secret_name, looks_secret},
    server_conversion::{Converter, ServerSetting},
    variable_syntax::{ForeignText, TextPiece},
};
use crate::config::{CALLBACK_PATH, defaults, variables};

impl Converter<'_> {
    pub(super) fn endpoint(&mut self, endpoint: &ImportedEndpoint) {
        let ImportedEndpoint { url, headers, login, ca, proxy } = endpoint;
        let shown = shown_url(url);
        if url.as_plain().is_none() {
            self.refuse("its `url` contains variables: write their values instead".to_owned());
        } else if url.as_plain() != Some(&shown) {
            self.refuse("its `url` contains a secret: send it in a header instead".to_owned());
        }
        self.set("url", ServerSetting::Text(shown));
        let mut table = BTreeMap::new();
        for (name, value) in headers {
            if !variables::is_header(name) {
                self.out.changes.push("a header that only metamcp may set is left out".to_owned());
                continue;
            }
            let value = self.reference(name, value, false);
            table.insert(name.clone(), value);
        }
        let has_authorization = table.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        self.set("headers", ServerSetting::Table(table));
        self.login(login, has_authorization);
        if let Some(ca) = ca {
            let keys = BTreeMap::from([("ca", ServerSetting::Text(ca.clone()))]);
            self.set("tls", ServerSetting::Keys(keys));
        }
        if let Some(proxy) = proxy {
            self.set("proxy", ServerSetting::Text(proxy.clone()));
        }
    }

    /// Sets `auth`. metamcp never logs in where the headers have an `Authorization`.
    fn login(&mut self, login: &ForeignLogin, has_authorization: bool) {
        let mut change = |text: &str| self.out.changes.push(text.to_owned());
        if has_authorization {
            if login.client_id.is_some() || !login.scopes.is_empty() {
                change("its login is left out, because its headers have an `Authorization`");
            }
            return;
        }
        if login.is_off {
            return self.set("auth", ServerSetting::Text("none".to_owned()));
        }
        let mut keys = BTreeMap::new();
        let id = login.client_id.as_ref().filter(|id| **id != ForeignText::default());
        match (id.map(ForeignText::as_plain), &login.client_secret) {
            (Some(Some(id)), secret) => {
                change(&format!(
                    "its client id needs the redirect address `http://{}{CALLBACK_PATH}`, or the one in `auth.redirect_url`",
                    defaults::HTTP_ADDRESS
                ));
                keys.insert("client_id", ServerSetting::Text(id.to_owned()));
                if let Some(secret) = secret {
                    let reference = self.reference("client_secret", secret, true);
                    keys.insert("client_secret", ServerSetting::Text(reference));
                }
            }
            (Some(None), _) => {
                change(
                    "its client id contains variables, so metamcp registers itself: write the id into `auth.client_id`",
                );
            }
            (None, Some(_)) => change("its client secret is left out, because it has no client id"),
            (None, None) => {}
        }
        if !login.scopes.is_empty() {
            keys.insert("scopes", ServerSetting::List(login.scopes.clone()));
        }
        if login.omits_resource {
            keys.insert("resource", ServerSetting::Switch(false));
        }
        self.set("auth", ServerSetting::Keys(keys));
    }
}

/// Returns a URL for display: with the names of variables, and without secrets.
pub(super) fn shown_url(url: &ForeignText) -> String {
    let show = |piece: &TextPiece| match piece {
        TextPiece::Text(text) => text.clone(),
        TextPiece::Variable { name, .. } => format!("${{{name}}}"),
        TextPiece::Input(_) | TextPiece::File(_) | TextPiece::Foreign(_) => HIDDEN.to_owned(),
    };
    let whole: String = url.0.iter().map(show).collect();
    let (scheme, rest) = whole.split_once("://").unwrap_or(("", &whole));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (mut authority, rest) = (rest[..end].to_owned(), &rest[end..]);
    // A password may contain a slash; then the rest is not a path.
    let mut rest = rest.to_owned();
    if let Some(at) = rest.rfind('@')
        && looks_secret(&whole)
        && authority.contains(':')
        && !authority.contains('@')
    {
        (authority, rest) = (HIDDEN.to_owned(), rest[at..].to_owned());
    }
    if let Some((_, host)) = authority.rsplit_once('@') {
        authority = format!("{HIDDEN}@{host}");
    }
    let mut shown = match scheme {
        "" => authority,
        scheme => format!("{scheme}://{authority}"),
    };
    for part in rest.split_inclusive(['/', '?', '#', '&']) {
        let border = part.find(['/', '?', '#', '&']).unwrap_or(part.len());
        let (word, border) = part.split_at(border);
        match word.split_once('=') {
            Some((name, value))
                if !value.is_empty() && (is_secret_name(name) || looks_secret(value)) =>
            {
                shown.push_str(&format!("{name}={HIDDEN}"));
            }
            _ if looks_secret(word) => shown.push_str(HIDDEN),
            _ => shown.push_str(word),
        }
        shown.push_str(border);
    }
    // If a secret remains, nothing of the URL is shown.
    match looks_secret(&shown) {
        true => HIDDEN.to_owned(),
        false => shown,
    }
}
