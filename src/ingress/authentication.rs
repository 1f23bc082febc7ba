//! The check of the token that clients must send if `listen.token` is set. Source: RFC 6750.

use std::sync::PoisonError;

use http_body_util::Limited;
use hyper::{
    HeaderMap, Method, Request,
    body::{Body as _, Incoming},
    header::{AUTHORIZATION, EXPECT},
};

use tokio::time::{self, Instant};

use super::{IngressContext, error::IngressError, token_failures::TokenSource};
use crate::{
    bearer_token::BearerToken,
    config::{CALLBACK_PATH, defaults},
    http_body,
    peer_process::ConnectedClient,
};

/// The authentication scheme of the header, whose case does not matter.
const SCHEME: &str = "Bearer";

/// The challenge to the client. It needs a parameter: RFC 6750, section 3.
const CHALLENGE: &str = "Bearer realm=\"metamcp\"";
const CHALLENGE_AGAIN: &str = "Bearer realm=\"metamcp\", error=\"invalid_token\"";

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BearerError {
    #[error("the request has no bearer token, which this service requires")]
    Missing,
    #[error("the bearer token of the request is not the token of this service")]
    Wrong,
}

impl BearerError {
    /// Returns the value of `WWW-Authenticate`.
    pub(super) fn challenge(self) -> &'static str {
        match self {
            Self::Missing => CHALLENGE,
            Self::Wrong => CHALLENGE_AGAIN,
        }
    }
}

/// Returns whether a request needs no token: the liveness check, and the browser after a login.
pub(super) fn is_open(request: &Request<Incoming>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
        && matches!(request.uri().path(), "/healthz" | CALLBACK_PATH)
}

/// Checks that a request has exactly one token, equal to `token`.
pub(super) fn check(headers: &HeaderMap, token: &BearerToken) -> Result<(), BearerError> {
    let mut sent = headers.get_all(AUTHORIZATION).iter().map(|value| value.as_bytes());
    match (sent.next().map(bearer), sent.next()) {
        (Some(Some(sent)), None) if token.matches(sent) => Ok(()),
        (Some(Some(_)), _) | (Some(None), Some(_)) => Err(BearerError::Wrong),
        // Credentials of another scheme count as none.
        (Some(None) | None, _) => Err(BearerError::Missing),
    }
}

/// Returns the token in a header's value.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    let is_bearer = scheme.eq_ignore_ascii_case(SCHEME.as_bytes()) && token.first() == Some(&b' ');
    is_bearer.then(|| token.trim_ascii())
}

/// Refuses a request because of its token. Repeated wrong tokens of one source are answered late.
/// Cancel safe. The wrong token may already be counted.
pub(super) async fn refuse(
    context: &IngressContext,
    denied: BearerError,
    caller: &ConnectedClient,
    request: Request<Incoming>,
) -> IngressError {
    let is_read = skip(request).await;
    if denied == BearerError::Missing {
        return IngressError::Unauthorized { denied, is_read };
    }
    match delay_wrong_token(context, caller).await {
        true => IngressError::Unauthorized { denied, is_read },
        false => IngressError::TooManyWrongTokens { is_read },
    }
}

/// Counts a wrong token of `caller`, and delays the answer to it. Returns `false` if there were too
/// many. Cancel safe. The wrong token may already be counted.
pub(super) async fn delay_wrong_token(context: &IngressContext, caller: &ConnectedClient) -> bool {
    let source = TokenSource::of(caller);
    let refused = context
        .token_failures
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .note_wrong_token(source, Instant::now());
    if refused.n_logged > 0 {
        tracing::warn!(%source, n_tokens = refused.n_logged, "wrong token: refused {} requests of a client ({source}). Give the client the right token, or find out who runs it.", refused.n_logged);
    }
    let Some(pause) = refused.pause else { return false };
    tokio::select! {
        () = time::sleep(pause) => {}
        () = context.stop.cancelled() => {}
    }
    true
}

/// Reads and discards the body of a refused request. Otherwise a client that still writes might
/// never see the answer; a client that has written everything can reuse the connection. A long body
/// is not read, nor a body that is sent only on demand: the connection then closes.
///
/// Returns whether the connection can be used again. Cancel safe.
async fn skip(request: Request<Incoming>) -> bool {
    let waits = request.headers().contains_key(EXPECT);
    let body = request.into_body();
    let length_max = defaults::DENIED_BODY_BYTES_SKIPPED;
    if waits || body.size_hint().lower() > length_max as u64 {
        return false;
    }
    http_body::discard(&mut Limited::new(body, length_max), defaults::DENIED_BODY_TIMEOUT).await
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;
    use crate::config::load::parsed;

    const TOKEN: &str = "0123456789abcdef";

    #[track_caller]
    fn verdict(values: &[&str]) -> Result<(), BearerError> {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("t"), TOKEN).expect("written");
        let place = parsed("[listen]\ntoken = \"credential:t\"\n").listen.token;
        let token =
            BearerToken::load_configured(place.as_ref(), Some(directory.path())).expect("good");
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).expect("a header"));
        }
        check(&headers, &token.expect("asked for"))
    }

    #[test]
    fn a_request_with_the_right_token_is_admitted() {
        for value in ["Bearer ", "bearer ", "BEARER   "] {
            assert_eq!(verdict(&[&format!("{value}{TOKEN}")]), Ok(()), "{value}");
        }
    }

    #[test]
    fn a_missing_token_and_a_wrong_token_are_refused_with_different_errors() {
        let basic = format!("Basic {TOKEN}");
        for none in [&[][..], &[""], &["Basic YTpi"], &[&basic], &[TOKEN], &["Bearer"]] {
            assert_eq!(verdict(none), Err(BearerError::Missing), "{none:?}");
        }
        let right = format!("Bearer {TOKEN}");
        for wrong in [
            &["Bearer "][..],
            &["Bearer 0123456789abcde"],
            &["Bearer 0123456789abcdef0"],
            &["Bearer 0123456789abcdef, Bearer 0123456789abcdef"],
            &[&right, &right],
            &[&right, "Basic YTpi"],
            &["Basic YTpi", &right],
        ] {
            assert_eq!(verdict(wrong), Err(BearerError::Wrong), "{wrong:?}");
        }
        assert_eq!(BearerError::Missing.challenge(), "Bearer realm=\"metamcp\"");
        assert!(BearerError::Wrong.challenge().ends_with("error=\"invalid_token\""));
    }
}
