//! The address that browsers return to after a login.

use std::net::SocketAddr;

use crate::config::{CALLBACK_PATH, Config, defaults};

/// Returns the address that browsers return to: the declared one, or that of the listener.
pub(super) fn redirect_url(config: &Config, address: Option<SocketAddr>) -> String {
    if let Some(url) = &config.auth.redirect_url {
        return url.to_string();
    }
    let scheme = if config.listen.tls.is_some() { "https" } else { "http" };
    // With port 0, the system chooses another one each time, but an address must last.
    let port = match address.unwrap_or(config.listen.http).port() {
        0 => defaults::HTTP_ADDRESS.port(),
        port => port,
    };
    format!("{scheme}://127.0.0.1:{port}{CALLBACK_PATH}")
}
