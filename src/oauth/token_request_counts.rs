//! The numbers of requests for tokens.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::server_name::ServerName;

/// The kind of a request for tokens, by the name of its grant. Source: RFC 6749.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GrantType {
    /// A person has logged in.
    AuthorizationCode,
    /// metamcp has logged in by itself.
    ClientCredentials,
    /// The tokens continue earlier ones.
    RefreshToken,
}

/// The numbers of requests for the tokens of one server.
#[derive(Debug, Default)]
pub(super) struct TokenRequestCounts([OutcomeCounts; 3]);

#[derive(Debug, Default)]
struct OutcomeCounts {
    ok: AtomicU64,
    error: AtomicU64,
}

/// The number of requests for tokens of one kind and one outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRequestCount {
    /// The server that the tokens are for.
    pub server: ServerName,
    /// `authorization_code`, `client_credentials` or `refresh_token`.
    pub grant: &'static str,
    /// `ok` or `error`.
    pub outcome: &'static str,
    /// The number since the server was declared at its address.
    pub n_requests: u64,
}

impl GrantType {
    const ALL: [Self; 3] = [Self::AuthorizationCode, Self::ClientCredentials, Self::RefreshToken];

    fn name(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::ClientCredentials => "client_credentials",
            Self::RefreshToken => "refresh_token",
        }
    }
}

impl TokenRequestCounts {
    /// Counts a request that has ended.
    pub(super) fn add<T, E>(&self, grant: GrantType, outcome: &Result<T, E>) {
        let counts = &self.0[grant as usize];
        let count = if outcome.is_ok() { &counts.ok } else { &counts.error };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the numbers so far; `server` is the one that the tokens are for.
    pub(super) fn all(&self, server: &ServerName) -> impl Iterator<Item = TokenRequestCount> {
        GrantType::ALL.into_iter().flat_map(move |grant| {
            let counts = &self.0[grant as usize];
            [("ok", &counts.ok), ("error", &counts.error)].map(|(outcome, count)| {
                TokenRequestCount {
                    server: server.clone(),
                    grant: grant.name(),
                    outcome,
                    n_requests: count.load(Ordering::Relaxed),
                }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_grant_and_outcome() {
        let counts = TokenRequestCounts::default();
        counts.add(GrantType::RefreshToken, &Ok::<_, ()>(()));
        counts.add(GrantType::RefreshToken, &Err::<(), _>(()));
        counts.add(GrantType::RefreshToken, &Err::<(), _>(()));
        let server = ServerName::new("git").expect("a name");
        let found: Vec<_> = counts
            .all(&server)
            .filter(|count| count.n_requests > 0)
            .map(|count| (count.grant, count.outcome, count.n_requests))
            .collect();
        assert_eq!(found, [("refresh_token", "ok", 1), ("refresh_token", "error", 2)]);
    }
}
