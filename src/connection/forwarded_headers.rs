//! The headers of a client's request that go on to a server.

use std::sync::Arc;

use hyper::{HeaderMap, header::HeaderName};

use super::RequestFailure;
use crate::config::defaults;

/// The headers of one client's request that are passed on. Their values are never shown.
#[derive(Clone, Debug)]
pub struct ForwardedHeaders(HeaderMap);

impl ForwardedHeaders {
    /// Returns the headers among `headers` that have one of these names; `None` without any.
    pub fn select(names: &[HeaderName], headers: &HeaderMap) -> Option<Arc<Self>> {
        let mut selected = HeaderMap::new();
        for name in names {
            for value in headers.get_all(name) {
                let mut value = value.clone();
                value.set_sensitive(true);
                selected.append(name, value);
            }
        }
        (!selected.is_empty()).then(|| Arc::new(Self(selected)))
    }

    /// Returns those for a server that gets these names.
    ///
    /// # Errors
    ///
    /// [`RequestFailure::HeadersTooLarge`] when they exceed the bound for one server.
    pub fn for_server(&self, names: &[HeaderName]) -> Result<Option<Arc<Self>>, RequestFailure> {
        let Some(selected) = Self::select(names, &self.0) else { return Ok(None) };
        let n_bytes = selected.n_bytes();
        match n_bytes <= defaults::FORWARDED_HEADER_BYTES_MAX {
            true => Ok(Some(selected)),
            false => Err(RequestFailure::HeadersTooLarge(n_bytes)),
        }
    }

    /// Adds the headers to those of a request. metamcp's own take precedence.
    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        let forwarded = self.0.keys().filter(|name| !headers.contains_key(*name));
        for name in forwarded.cloned().collect::<Vec<_>>() {
            for value in self.0.get_all(&name) {
                headers.append(&name, value.clone());
            }
        }
    }

    fn n_bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    const PROJECT: HeaderName = HeaderName::from_static("x-project");
    const TENANT: HeaderName = HeaderName::from_static("x-tenant");

    fn sent(pairs: &[(HeaderName, &[u8])]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, HeaderValue::from_bytes(value).expect("a value"));
        }
        headers
    }

    #[test]
    fn a_server_gets_all_values_of_its_own_headers_and_no_other_header() {
        let headers = sent(&[(PROJECT, b"a"), (TENANT, b"t"), (PROJECT, "b\u{e9}".as_bytes())]);
        let all = ForwardedHeaders::select(&[PROJECT, TENANT], &headers).expect("two names");
        let own = all.for_server(&[PROJECT]).expect("short").expect("one name");
        let mut request = sent(&[(TENANT, b"metamcp")]);
        own.add_to(&mut request);
        let values: Vec<&[u8]> =
            request.get_all(PROJECT).iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(values, [b"a", "b\u{e9}".as_bytes()]);
        assert_eq!(request.get_all(TENANT).iter().count(), 1);
        all.add_to(&mut request);
        assert_eq!(request[TENANT], "metamcp", "a header of metamcp is not replaced");
        assert!(all.for_server(&[]).expect("none").is_none());
        assert!(ForwardedHeaders::select(&[TENANT], &HeaderMap::new()).is_none());
    }

    #[test]
    fn only_the_headers_of_the_server_count_against_its_bound() {
        let long = vec![b'x'; defaults::FORWARDED_HEADER_BYTES_MAX];
        let headers = sent(&[(PROJECT, &long), (TENANT, b"t")]);
        let all = ForwardedHeaders::select(&[PROJECT, TENANT], &headers).expect("two names");
        assert!(all.for_server(&[TENANT]).is_ok());
        let failure = all.for_server(&[PROJECT]).expect_err("too long");
        assert_eq!(failure.code(), "HEADERS_TOO_LARGE");
    }

    #[test]
    fn the_values_are_never_shown() {
        let headers = sent(&[(PROJECT, b"canary")]);
        let shown = format!("{:?}", ForwardedHeaders::select(&[PROJECT], &headers));
        assert!(shown.contains("x-project") && !shown.contains("canary"), "{shown}");
    }
}
