//! The tokens of one answer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer};

use super::{scope_selection::ScopeSet, secret_text::SecretText};
use crate::config::defaults;

/// The tokens of one answer of a token endpoint.
#[derive(Clone, Debug)]
pub(super) struct TokenSet {
    pub(super) access_token: SecretText,
    /// The token for the next refresh; `None` if the current one stays valid, or there is none.
    pub(super) refresh_token: Option<SecretText>,
    /// The life of the access token; `None` if unknown.
    pub(super) lifetime: Option<Duration>,
    /// The granted scopes; `None` if they are the requested ones.
    pub(super) scopes: Option<ScopeSet>,
}

/// The answer of a token endpoint, which is a success or an error.
#[derive(Default, Deserialize)]
pub(super) struct TokenAnswer {
    access_token: Option<SecretText>,
    refresh_token: Option<SecretText>,
    token_type: Option<String>,
    #[serde(default, deserialize_with = "seconds")]
    expires_in: Option<f64>,
    scope: Option<String>,
    /// The code of the error.
    pub(super) error: Option<String>,
    /// The description of the error.
    pub(super) error_description: Option<String>,
}

impl TokenAnswer {
    /// Returns the tokens.
    ///
    /// # Errors
    ///
    /// The reason in words if metamcp cannot use them.
    pub(super) fn tokens(self) -> Result<TokenSet, &'static str> {
        let is_sendable = |token: &SecretText| {
            (1..=defaults::OAUTH_TOKEN_BYTES_MAX).contains(&token.expose().len())
                && token.expose().bytes().all(|byte| matches!(byte, b'!'..=b'~'))
        };
        let access_token = self.access_token.ok_or("it has no `access_token`")?;
        if !is_sendable(&access_token) {
            return Err("its `access_token` is too long, or cannot be sent in a header");
        }
        if self.token_type.is_some_and(|found| !found.eq_ignore_ascii_case("bearer")) {
            return Err("its `token_type` is not `Bearer`");
        }
        let is_storable = |token: &SecretText| {
            (1..=defaults::OAUTH_TOKEN_BYTES_MAX).contains(&token.expose().len())
        };
        let scopes = self.scope.map(|text| ScopeSet::parse(&text));
        Ok(TokenSet {
            access_token,
            refresh_token: self.refresh_token.filter(is_storable),
            // Zero stands for an unknown life.
            lifetime: self.expires_in.filter(|seconds| *seconds > 0.0).map(|seconds| {
                Duration::from_secs_f64(seconds.min(defaults::TOKEN_LIFE_MAX.as_secs_f64()))
            }),
            scopes: scopes.filter(|scopes| !scopes.is_empty()),
        })
    }
}

/// Reads a number of seconds, which some servers write as a text. Anything else is unknown.
fn seconds<'de, D: Deserializer<'de>>(found: D) -> Result<Option<f64>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(found)?;
    Ok(value.and_then(|value| value.as_f64().or_else(|| value.as_str()?.parse().ok())))
}

/// Returns a time in seconds since 1970.
pub(super) fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn tokens(answer: Value) -> Result<TokenSet, &'static str> {
        serde_json::from_value::<TokenAnswer>(answer).expect("an answer").tokens()
    }

    #[test]
    fn a_life_is_read_as_servers_write_it() {
        let life = |expires_in: Value| {
            let answer =
                json!({"access_token": "a", "token_type": "bearer", "expires_in": expires_in});
            tokens(answer).expect("tokens").lifetime
        };
        assert_eq!(life(json!(3600)), Some(Duration::from_secs(3600)));
        assert_eq!(life(json!("3600")), Some(Duration::from_secs(3600)));
        assert_eq!(life(json!(1.5)), Some(Duration::from_millis(1500)));
        assert_eq!(life(json!(1e300)), Some(defaults::TOKEN_LIFE_MAX));
        for unknown in [json!(null), json!(0), json!(-5), json!("soon"), json!([])] {
            assert_eq!(life(unknown.clone()), None, "{unknown}");
        }
    }

    #[test]
    fn a_token_that_cannot_be_sent_is_refused() {
        for token in ["", "a b", "a\nb", "ä", &"x".repeat(defaults::OAUTH_TOKEN_BYTES_MAX + 1)] {
            tokens(json!({ "access_token": token, "token_type": "Bearer" })).expect_err(token);
        }
        tokens(json!({ "token_type": "Bearer" })).expect_err("no token");
        tokens(json!({ "access_token": "a", "token_type": "DPoP" })).expect_err("another type");
        tokens(json!({ "access_token": "a" })).expect("the type may be missing");
    }
}
