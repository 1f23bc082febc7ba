//! The one HTTP client, for everything that leaves the process: upstreams, authorization servers,
//! the registry, embeddings.
//!
//! ```text
//!  upstream ─────────────────────────▶ HttpPool ──▶ Connector ──▶ HttpStream
//!  JsonClient ──▶ WebClient ──▶ one per origin        │ resolve, connect,
//!                                 │ HTTP/1.1 or 2     │ tunnel, TLS
//!                                 ▼                   ▼
//!                            ResponseBody      AddressPolicy, proxy
//! ```
//!
//! A [`Connector`] has the trust, the proxy and the policy of one server. It makes connections to
//! an [`Origin`]; an [`HttpPool`] keeps them. No redirect to another origin is followed.

mod address_policy;
mod broken_connection;
mod certificate_expiry;
mod connector;
mod dial_error;
mod dial_trace;
mod error;
mod http1_connection;
mod http2_connection;
mod http_pool;
mod http_stream;
mod json_client;
mod origin;
mod owned_tasks;
mod proxy_route;
mod response_body;
mod tls_failure;
mod tls_trust;
mod web_client;

pub use address_policy::{AddressPolicy, AddressRefusal, AddressScope};
pub use broken_connection::BrokenConnection;
pub use connector::{Connector, ConnectorSettings};
pub use dial_error::{DialError, DialStep, HttpSendError};
pub use dial_trace::{DialTrace, TlsSummary};
pub use error::WebError;
pub use http_pool::HttpPool;
pub use json_client::JsonClient;
pub use origin::{Origin, resolve_reference};
pub use owned_tasks::OwnedTasks;
pub use proxy_route::ProxyRefusal;
pub use response_body::ResponseBody;
pub use tls_failure::TlsFailure;
pub use web_client::{WebClient, WebLimits, is_redirect, redirect_target};

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::test_site;
