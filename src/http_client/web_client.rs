//! A client of the web: single requests, each with one timeout and one limit on its answer.

use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use hyper::{
    Method, Request, Response, StatusCode, Uri,
    header::{HOST, HeaderValue, LOCATION, USER_AGENT},
};
use tokio::time;

use super::{
    Connector, HttpPool, HttpSendError, Origin, ResponseBody, WebError, origin::resolve_reference,
};
use crate::http_body::{self, BodyReadError, MemoryPressurePolicy, OutgoingBody};

const AGENT: HeaderValue = HeaderValue::from_static(concat!("metamcp/", env!("CARGO_PKG_VERSION")));

/// The largest number of origins that one client keeps connections to: a server, its authorization
/// servers, and their redirects.
const ORIGINS_MAX: usize = 8;

/// The largest number of redirects that one request follows.
const REDIRECTS_MAX: u32 = 3;

/// The limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebLimits {
    /// The time from the start of the request to the last byte of its answer.
    pub timeout: Duration,
    /// The maximum length of the answer, in bytes.
    pub body_bytes_max: usize,
}

/// A client of the web, with the trust, the proxy and the policy for addresses of its connector.
pub struct WebClient {
    connector: Arc<Connector>,
    limits: WebLimits,
    /// The pools; the one used last is at the end.
    pools: Mutex<Vec<Arc<HttpPool>>>,
}

impl WebClient {
    /// Returns a client that connects with `connector`. Nothing is sent yet.
    pub fn new(connector: Arc<Connector>, limits: WebLimits) -> Self {
        Self { connector, limits, pools: Mutex::default() }
    }

    /// Sends a request to its absolute URL, and reads the whole answer, regardless of its status. A
    /// GET follows a few redirects within its origin. If dropped, the request ends.
    ///
    /// # Errors
    ///
    /// [`WebError`]; [`WebError::Redirected`] for any other redirect.
    pub async fn fetch(&self, request: Request<Bytes>) -> Result<Response<Bytes>, WebError> {
        let origin = required_origin(request.uri())?;
        // Boxed, so that the future of a waiting caller stays small.
        let work = Box::pin(self.follow(&origin, request));
        self.in_time(&origin, work).await
    }

    /// Limits the time of one request.
    pub(super) async fn in_time<T>(
        &self,
        origin: &Origin,
        work: impl Future<Output = Result<T, WebError>>,
    ) -> Result<T, WebError> {
        let after = self.limits.timeout;
        let timeout = |_| WebError::Timeout { origin: origin.clone(), after };
        time::timeout(after, work).await.map_err(timeout)?
    }

    async fn follow(
        &self,
        origin: &Origin,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, WebError> {
        let (mut head, body) = request.into_parts();
        for n_left in (0..=REDIRECTS_MAX).rev() {
            let request = Request::from_parts(head.clone(), body.clone());
            let answer = self.exchange(origin, &request).await?;
            if !is_redirect(answer.status()) {
                return self.read(origin, answer).await;
            }
            let target = redirect_target(&head.uri, answer.headers().get(LOCATION));
            let may_follow = |target: &Uri| {
                n_left > 0
                    && head.method == Method::GET
                    && Origin::of(target).as_ref() == Some(origin)
            };
            match target {
                Some(target) if may_follow(&target) => head.uri = target,
                target => return Err(redirected(origin, target.as_ref())),
            }
        }
        Err(redirected(origin, None))
    }

    /// Sends a request, and waits for the head of the answer.
    pub(super) async fn exchange(
        &self,
        origin: &Origin,
        request: &Request<Bytes>,
    ) -> Result<Response<ResponseBody>, WebError> {
        let target = request.uri().path_and_query().cloned();
        let target = target.map_or_else(|| Uri::from_static("/"), Uri::from);
        let build = || {
            let mut built = Request::new(OutgoingBody::from(request.body().clone()));
            *built.method_mut() = request.method().clone();
            *built.uri_mut() = target.clone();
            *built.headers_mut() = request.headers().clone();
            if let Some(host) = origin.host_header() {
                built.headers_mut().insert(HOST, host);
            }
            built.headers_mut().entry(USER_AGENT).or_insert(AGENT);
            built
        };
        self.pool(origin).send(build).await.map_err(|error| match error {
            HttpSendError::Dial(error) => WebError::Dial(error),
            HttpSendError::BrokenOff(error) => WebError::broken_off(origin.clone(), error),
        })
    }

    /// Reads the whole body of an answer.
    pub(super) async fn read(
        &self,
        origin: &Origin,
        answer: Response<ResponseBody>,
    ) -> Result<Response<Bytes>, WebError> {
        let (head, mut body) = answer.into_parts();
        let bytes_max = self.limits.body_bytes_max;
        let read =
            http_body::read_whole(&mut body, bytes_max, MemoryPressurePolicy::Refuse(None)).await;
        let body = read.map_err(|error| match error {
            BodyReadError::NoMemory(source) => WebError::broken_off(origin.clone(), source),
            BodyReadError::TooLong => WebError::TooLarge { origin: origin.clone(), bytes_max },
            BodyReadError::Broken(source) => WebError::broken_off(origin.clone(), source),
        })?;
        Ok(Response::from_parts(head, body))
    }

    /// Returns the pool of an origin.
    fn pool(&self, origin: &Origin) -> Arc<HttpPool> {
        // Held for statements on plain data.
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = match pools.iter().position(|pool| pool.origin() == origin) {
            Some(at) => pools.remove(at),
            None => HttpPool::new(Arc::clone(&self.connector), origin.clone()),
        };
        if pools.len() >= ORIGINS_MAX {
            pools.remove(0);
        }
        pools.push(Arc::clone(&pool));
        pool
    }
}

impl fmt::Debug for WebClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebClient").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Returns the origin of an absolute URL.
pub(super) fn required_origin(url: &Uri) -> Result<Origin, WebError> {
    Origin::of(url).ok_or(WebError::NoOrigin)
}

fn redirected(origin: &Origin, target: Option<&Uri>) -> WebError {
    let target = target.and_then(Origin::of);
    WebError::Redirected { origin: origin.clone(), target }
}

/// Returns whether an answer with this status names another URL to ask.
pub fn is_redirect(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}

/// Returns the URL that a redirect from `url` names in `Location`.
pub fn redirect_target(url: &Uri, location: Option<&HeaderValue>) -> Option<Uri> {
    resolve_reference(url, location?.to_str().ok()?)
}
