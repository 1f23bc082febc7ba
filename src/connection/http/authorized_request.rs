//! The requests to an upstream that may require a login: each carries the current token, and is sent
//! again with another one after a refusal.

use hyper::{HeaderMap, Method, Response, StatusCode, header::WWW_AUTHENTICATE};

use super::{
    super::RequestFailure,
    endpoint::{HttpUpstream, finish},
};
use crate::{
    http_client::ResponseBody,
    oauth::{AuthRefusal, Authorizer},
    protocol::ByteChunks,
};

/// The largest number of tokens that one request tries before its last attempt: one that others have
/// replaced meanwhile, and one that a refresh yields.
const TOKENS_MAX: u32 = 2;

impl HttpUpstream {
    /// Sends a request with the current token, and after a refusal again with another one.
    pub(super) async fn send_authorized(
        &self,
        authorizer: &Authorizer,
        method: &Method,
        headers: &HeaderMap,
        body: &ByteChunks,
    ) -> Result<Response<ResponseBody>, RequestFailure> {
        let mut bearer = authorizer.before_request().await;
        for _ in 0..TOKENS_MAX {
            let answer = self.attempt(method, headers, body, bearer.as_ref()).await?;
            let Some(refusal) = refusal(&answer) else {
                if bearer.is_none() {
                    authorizer.note_open();
                }
                return Ok(answer);
            };
            finish(answer.into_body()).await;
            let next = authorizer.after_refusal(&refusal, bearer.as_ref()).await;
            bearer = Some(next.map_err(RequestFailure::Unauthorized)?);
        }
        Ok(self.attempt(method, headers, body, bearer.as_ref()).await?)
    }
}

/// Returns the refusal in an answer, if another token may help.
fn refusal(answer: &Response<ResponseBody>) -> Option<AuthRefusal> {
    let status = answer.status();
    if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return None;
    }
    let challenges = answer.headers().get_all(WWW_AUTHENTICATE).iter().cloned().collect();
    Some(AuthRefusal { status, challenges }).filter(AuthRefusal::is_about_tokens)
}
