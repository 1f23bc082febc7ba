//! The failure of a connection in the middle of a request or an answer.

/// The failure of a connection in the middle of a request or an answer.
#[derive(Debug, thiserror::Error)]
pub enum BrokenConnection {
    /// It was a connection over HTTP/1.1.
    #[error(transparent)]
    Http1(hyper::Error),
    /// It was a connection over HTTP/2.
    #[error("{}", in_words(.0))]
    Http2(h2::Error),
}

/// Returns the cause of a failure of HTTP/2. The names in capitals are those of RFC 9113, section 7.
fn in_words(error: &h2::Error) -> String {
    let reason = error.reason().map(|reason| format!(" ({reason:?})")).unwrap_or_default();
    match error {
        error if error.is_reset() && error.is_remote() => format!("the host ended it{reason}"),
        error if error.is_go_away() && error.is_remote() => {
            format!("the host closed the connection{reason}")
        }
        error if error.is_reset() || error.is_go_away() => {
            format!("the host broke the rules of HTTP/2{reason}")
        }
        error => error.to_string(),
    }
}
