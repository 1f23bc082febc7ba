//! The answer of an authorization server, which the browser carries to the callback.

use std::fmt;

use super::{LoginError, endpoint_client::quote, secret_text::SecretText};
use crate::server_name::ServerName;

/// The longest answer, in bytes: longer URLs pass through few browsers.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// The answer of an authorization server, which the browser carries to the callback. It is checked
/// against the login that it belongs to.
#[derive(Clone)]
pub struct CallbackAnswer {
    state: SecretText,
    code: Option<SecretText>,
    issuer: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

impl CallbackAnswer {
    /// Parses the URL that a browser ended at, or its query.
    ///
    /// # Errors
    ///
    /// [`LoginError::NotAnAnswer`] if the text is not such a URL.
    pub fn parse(url_or_query: &str) -> Result<Self, LoginError> {
        let text = url_or_query.trim();
        if text.len() > ANSWER_BYTES_MAX {
            return Err(LoginError::NotAnAnswer);
        }
        let query = text.split_once('?').map_or(text, |(_, query)| query);
        let query = query.split_once('#').map_or(query, |(query, _)| query);
        let [mut state, mut code, mut issuer, mut error, mut error_description] =
            [const { None }; 5];
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let place = match name.as_ref() {
                "state" => &mut state,
                "code" => &mut code,
                "iss" => &mut issuer,
                "error" => &mut error,
                "error_description" => &mut error_description,
                _ => continue,
            };
            // Source: RFC 6749, section 3.1: no parameter occurs twice.
            if place.replace(value.into_owned()).is_some() {
                return Err(LoginError::NotAnAnswer);
            }
        }
        let state = state.filter(|state| !state.is_empty()).ok_or(LoginError::NotAnAnswer)?;
        Ok(Self {
            state: state.into(),
            code: code.filter(|code| !code.is_empty()).map(SecretText::from),
            issuer,
            error,
            error_description,
        })
    }

    /// Returns the state, which identifies the login.
    pub(super) fn state(&self) -> &SecretText {
        &self.state
    }

    /// Returns the code, if the answer comes from `issuer`. `is_named` if that announces to name
    /// itself. The issuer is checked first of all, because another server may have written the rest.
    /// Source: RFC 9207, section 2.4.
    ///
    /// # Errors
    ///
    /// [`LoginError`] if the answer is forged, or the authorization server refuses the login.
    pub(super) fn code(
        &self,
        server: &ServerName,
        issuer: &str,
        is_named: bool,
    ) -> Result<&SecretText, LoginError> {
        match &self.issuer {
            Some(found) if found != issuer => return Err(LoginError::WrongIssuer(server.clone())),
            None if is_named => return Err(LoginError::MissingIssuer(server.clone())),
            _ => {}
        }
        if let Some(error) = &self.error {
            let description = self.error_description.as_deref().unwrap_or_default();
            return Err(LoginError::Refused {
                server: server.clone(),
                error: quote(error).into(),
                description: quote(description).into(),
            });
        }
        self.code.as_ref().ok_or_else(|| LoginError::NoCode(server.clone()))
    }
}

impl fmt::Debug for CallbackAnswer {
    /// Prints no value: each may be secret or forged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackAnswer")
            .field("has_code", &self.code.is_some())
            .field("has_error", &self.error.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ISSUER: &str = "https://auth.example.com";

    fn code(query: &str, is_named: bool) -> Result<String, &'static str> {
        let server = ServerName::new("git").expect("a name");
        let answer = CallbackAnswer::parse(query).map_err(|error| error.code())?;
        let code = answer.code(&server, ISSUER, is_named);
        code.map(|code| code.expose().to_owned()).map_err(|error| error.code())
    }

    #[test]
    fn a_url_and_its_query_are_the_same_answer() {
        for text in [
            "state=s&code=a%2Fb+c",
            "?state=s&code=a%2Fb+c",
            "  http://127.0.0.1:12011/oauth/callback?code=a%2Fb+c&state=s#fragment\n",
            "/oauth/callback?session_state=x&state=s&code=a%2Fb+c",
        ] {
            assert_eq!(code(text, false).as_deref(), Ok("a/b c"), "{text}");
        }
        for text in ["", "code=a", "state=&code=a", "http://h/callback", "state=s&state=t&code=a"] {
            assert_eq!(code(text, false), Err("NOT_AN_ANSWER"), "{text}");
        }
        assert_eq!(code("state=s", false), Err("NO_CODE"));
        assert_eq!(
            code(&format!("state=s&code={}", "x".repeat(ANSWER_BYTES_MAX)), false),
            Err("NOT_AN_ANSWER")
        );
    }

    #[test]
    fn an_answer_is_accepted_as_the_table_of_the_specification_says() {
        let same = "state=s&code=c&iss=https%3A%2F%2Fauth.example.com";
        for (query, is_named, expected) in [
            (same, true, Ok("c")),
            ("state=s&code=c", true, Err("ISSUER_MISSING")),
            (same, false, Ok("c")),
            ("state=s&code=c", false, Ok("c")),
        ] {
            assert_eq!(
                code(query, is_named).as_deref(),
                expected.as_ref().map(|code| *code),
                "{query}"
            );
        }
        for wrong in [
            "https://auth.example.com/",
            "https://AUTH.example.com",
            "https://auth.example.com:443",
            "https://evil.example.com",
            "",
        ] {
            for is_named in [true, false] {
                let query = format!("state=s&code=c&iss={wrong}");
                assert_eq!(code(&query, is_named), Err("ISSUER_WRONG"), "{wrong}");
            }
        }
    }

    #[test]
    fn an_error_of_another_issuer_is_not_shown() {
        let query =
            "state=s&error=access_denied&error_description=Call+0800&iss=https://evil.example.com";
        let server = ServerName::new("git").expect("a name");
        let answer = CallbackAnswer::parse(query).expect("an answer");
        let shown = answer.code(&server, ISSUER, false).expect_err("forged").to_string();
        assert!(!shown.contains("denied") && !shown.contains("0800"), "{shown}");
        let query = "state=s&error=access_denied&error_description=You%0Arefused";
        let answer = CallbackAnswer::parse(query).expect("an answer");
        let shown = answer.code(&server, ISSUER, false).expect_err("refused").to_string();
        assert!(shown.ends_with("access_denied: You refused"), "{shown}");
        assert_eq!(code(query, true), Err("ISSUER_MISSING"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_fail(text in "(state=|code=|iss=|error=|[?&=#%+]|[ -~]|ä){0,40}") {
            let _any = CallbackAnswer::parse(&text);
        }

        #[test]
        fn values_are_read_back(state in "\\PC{1,30}", secret in "\\PC{1,30}", other in "[a-z]{1,5}") {
            let query = form_urlencoded::Serializer::new(String::new())
                .append_pair(&format!("x{other}"), "1")
                .append_pair("code", &secret)
                .append_pair("state", &state)
                .finish();
            let answer = CallbackAnswer::parse(&format!("https://h/cb?{query}")).expect("an answer");
            prop_assert_eq!(answer.state().expose(), state.as_str());
            prop_assert_eq!(code(&query, false), Ok(secret));
        }
    }
}
