//! The challenges in `WWW-Authenticate` headers. Source: RFC 9110, section 11.6.1, and RFC 6750,
//! section 3.

use hyper::header::HeaderValue;

use super::scope_selection::ScopeSet;

/// The largest number of parameters that are read. Each challenge has a handful.
const PARAMETERS_MAX: usize = 64;

/// The challenge of a server that wants a bearer token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BearerChallenge {
    /// The URL of the metadata of the protected resource.
    pub(super) resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub(super) scopes: Option<ScopeSet>,
    /// The code of the error.
    pub(super) error: Option<String>,
}

impl BearerChallenge {
    /// Returns the bearer challenge of `headers`, if there is one. Of several, the first one that
    /// has a value counts for that value. Text after a mistake is ignored.
    pub(super) fn parse<'a>(headers: impl IntoIterator<Item = &'a HeaderValue>) -> Option<Self> {
        let mut found: Option<Self> = None;
        for header in headers {
            let text = String::from_utf8_lossy(header.as_bytes());
            let mut parser = Parser { rest: &text, n_parameters: 0 };
            while let Some(scheme) = parser.scheme() {
                if !scheme.eq_ignore_ascii_case("bearer") {
                    while parser.parameter().is_some() {}
                    continue;
                }
                let bearer = found.get_or_insert_default();
                while let Some((name, value)) = parser.parameter() {
                    bearer.set(name, value);
                }
            }
        }
        found
    }

    /// Returns whether the token lacks a scope.
    pub(super) fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    fn set(&mut self, name: &str, value: String) {
        let place = match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => &mut self.resource_metadata,
            "error" => &mut self.error,
            "scope" => {
                let scopes = ScopeSet::parse(&value);
                if self.scopes.is_none() && !scopes.is_empty() {
                    self.scopes = Some(scopes);
                }
                return;
            }
            _ => return,
        };
        place.get_or_insert(value);
    }
}

/// The rest of a header that is yet to be read.
struct Parser<'a> {
    rest: &'a str,
    n_parameters: usize,
}

impl<'a> Parser<'a> {
    /// Reads the scheme of the next challenge.
    fn scheme(&mut self) -> Option<&'a str> {
        self.skip_separators();
        let scheme = self.token()?;
        // A scheme alone, or with parameters after a space.
        (self.rest.is_empty() || self.rest.starts_with([' ', '\t', ','])).then_some(scheme)
    }

    /// Reads the next parameter of the current challenge; `None` if the next challenge begins.
    fn parameter(&mut self) -> Option<(&'a str, String)> {
        loop {
            self.skip_separators();
            let before = self.rest;
            let name = self.token();
            let after = self.rest.trim_start_matches([' ', '\t']);
            let Some(value) = name.and_then(|_| after.strip_prefix('=')) else {
                self.rest = before;
                return None;
            };
            self.n_parameters += 1;
            if self.n_parameters > PARAMETERS_MAX {
                self.rest = "";
                return None;
            }
            self.rest = value.trim_start_matches([' ', '\t']);
            if let Some(value) = self.value() {
                return name.zip(Some(value));
            }
            // The credentials of another scheme, such as `Negotiate dG9rZW4=`.
            self.rest = self.rest.trim_start_matches('=');
            if !self.rest.is_empty() && !self.rest.starts_with([',', ' ', '\t']) {
                self.rest = "";
            }
        }
    }

    /// Reads a token or a quoted text.
    fn value(&mut self) -> Option<String> {
        let Some(quoted) = self.rest.strip_prefix('"') else {
            return self.token().map(str::to_owned);
        };
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        while let Some((at, found)) = characters.next() {
            match found {
                '"' => {
                    self.rest = &quoted[at + 1..];
                    return Some(value);
                }
                '\\' => value.push(characters.next()?.1),
                found => value.push(found),
            }
        }
        // The quotation has no end.
        None
    }

    fn token(&mut self) -> Option<&'a str> {
        let is_token =
            |found: char| found.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/".contains(found);
        let end = self.rest.find(|found| !is_token(found)).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!token.is_empty()).then_some(token)
    }

    fn skip_separators(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', ',']);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(headers: &[&str]) -> Option<BearerChallenge> {
        let headers: Vec<_> = headers
            .iter()
            .map(|text| HeaderValue::from_bytes(text.as_bytes()).expect("a header"))
            .collect();
        BearerChallenge::parse(&headers)
    }

    #[test]
    fn a_challenge_is_read_from_any_place_and_in_any_style() {
        let expected = BearerChallenge {
            resource_metadata: Some("https://h/.well-known/oauth-protected-resource".into()),
            scopes: Some(ScopeSet::parse("files:read files:write")),
            error: Some("insufficient_scope".into()),
        };
        let url = "resource_metadata=\"https://h/.well-known/oauth-protected-resource\"";
        let scope = "scope=\"files:read files:write\"";
        for headers in [
            vec![format!("Bearer error=\"insufficient_scope\", {scope}, {url}")],
            vec![format!("bearer {url},{scope} ,error = insufficient_scope")],
            vec![format!("Negotiate dG9rZW4==, Bearer {scope},{url}, error=insufficient_scope")],
            vec![format!(
                "Basic realm=\"a, Bearer error=x\", BEARER {scope}, {url}, Error=\"insufficient_scope\", DPoP algs=\"ES256\", error=\"use_dpop_nonce\""
            )],
            vec![
                "Basic realm=x".into(),
                format!("Bearer {scope}, error=\"insufficient\\_scope\""),
                format!("Bearer {url}, error=\"other\""),
            ],
        ] {
            let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
            assert_eq!(parse(&headers).as_ref(), Some(&expected), "{headers:?}");
        }
        assert!(expected.is_insufficient_scope());
    }

    #[test]
    fn a_header_without_a_bearer_challenge_yields_none() {
        for headers in [vec![], vec![""], vec!["Basic realm=\"Bearer\""], vec!["=,=", ",,,"]] {
            assert_eq!(parse(&headers), None, "{headers:?}");
        }
        assert_eq!(parse(&["Bearer"]), Some(BearerChallenge::default()));
        assert_eq!(parse(&["Bearer scope=\"\""]), Some(BearerChallenge::default()));
    }

    #[test]
    fn a_mistake_ends_a_header_and_keeps_what_came_before() {
        let found = parse(&["Bearer error=\"invalid_token\", scope=\"never ends"]).expect("one");
        assert_eq!((found.error.as_deref(), found.scopes), (Some("invalid_token"), None));
    }

    proptest! {
        #[test]
        fn no_header_makes_the_parser_fail(text in "[ -~\\x80-\\xff]{0,80}", more in "[Bearer ,=\"\\\\a]{0,60}") {
            let headers = [text, more].map(|text| HeaderValue::from_bytes(text.as_bytes()).expect("a header"));
            let _any = BearerChallenge::parse(&headers);
        }

        #[test]
        fn a_quoted_value_is_read_back(value in "[ -~]{1,40}", before in "[a-z]{1,8}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let header = format!("{before} a=b, Bearer x=y, resource_metadata=\"{quoted}\", z=1");
            let found = parse(&[&header]).expect("a challenge");
            prop_assert_eq!(found.resource_metadata, Some(value));
        }
    }
}
