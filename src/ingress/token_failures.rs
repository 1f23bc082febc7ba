//! The sources of wrong tokens, and the delay of their refusals.
//!
//! Pure: the caller supplies the time, waits and logs. Each source has a bucket of refusals that
//! are sent at once; later ones wait until the bucket refills. The right token is accepted at once,
//! even from an address with many failures.

use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    capacity_holder::Account,
    config::defaults::{
        WRONG_TOKEN_DELAY_MAX, WRONG_TOKEN_LOG_LINES_MAX, WRONG_TOKEN_LOG_PAUSE, WRONG_TOKEN_PAUSE,
        WRONG_TOKEN_SOURCES_MAX, WRONG_TOKENS_BURST,
    },
    peer_process::{ClientSocket, ConnectedClient},
};

/// The source of a wrong token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TokenSource {
    /// A user of this host.
    User(u32),
    /// Another host, or an IPv6 /64 network, all of whose addresses one host can use.
    Host(IpAddr),
    /// A client that the kernel does not identify.
    Unknown,
}

/// The handling of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FailureVerdict {
    /// The delay before the refusal, or `None` if too many are waiting.
    pub(super) pause: Option<Duration>,
    /// The number of wrong tokens of the source to log now, including this one; 0 for no log line.
    pub(super) n_logged: u64,
}

/// The recent sources of wrong tokens.
#[derive(Debug, Default)]
pub(super) struct TokenFailures {
    offenders: HashMap<TokenSource, Offender>,
    /// The start of the current logging period, and its number of log lines.
    logged: Option<(Instant, u32)>,
}

#[derive(Debug)]
struct Offender {
    /// The time at which the bucket is full again.
    full_at: Instant,
    seen: Instant,
    /// The time of the last log line; `n_unlogged` counts the tokens since then.
    logged_at: Option<Instant>,
    n_unlogged: u64,
}

impl TokenSource {
    /// Returns the source of a client, as identified by the kernel.
    pub(super) fn of(caller: &ConnectedClient) -> Self {
        match (caller.socket, caller.holder.account) {
            (ClientSocket::Elsewhere(address), _) => Self::at(address),
            (_, Account::User(uid)) => Self::User(uid),
            _ => Self::Unknown,
        }
    }

    fn at(address: IpAddr) -> Self {
        Self::Host(match address.to_canonical() {
            IpAddr::V6(address) => {
                Ipv6Addr::from(u128::from(address) & !u128::from(u64::MAX)).into()
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

impl fmt::Display for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(uid) => write!(f, "user {uid}"),
            Self::Host(address) => address.fmt(f),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

impl TokenFailures {
    /// Records a wrong token.
    pub(super) fn note_wrong_token(&mut self, source: TokenSource, now: Instant) -> FailureVerdict {
        let offenders = &mut self.offenders;
        if !offenders.contains_key(&source) && offenders.len() >= WRONG_TOKEN_SOURCES_MAX {
            let oldest =
                offenders.iter().min_by_key(|(_, known)| known.seen).map(|(source, _)| *source);
            offenders.remove(&oldest.unwrap_or(source));
        }
        let known = offenders.entry(source).or_insert(Offender {
            full_at: now,
            seen: now,
            logged_at: None,
            n_unlogged: 0,
        });
        known.seen = now;
        known.n_unlogged += 1;
        let (since, n_lines) = match self.logged {
            Some((since, n_lines)) if now < since + WRONG_TOKEN_LOG_PAUSE => (since, n_lines),
            _ => (now, 0),
        };
        let is_logged =
            known.logged_at.is_none_or(|logged_at| now >= logged_at + WRONG_TOKEN_LOG_PAUSE)
                && n_lines < WRONG_TOKEN_LOG_LINES_MAX;
        let n_logged = if is_logged { std::mem::take(&mut known.n_unlogged) } else { 0 };
        if is_logged {
            known.logged_at = Some(now);
            self.logged = Some((since, n_lines + 1));
        }
        let full_at = known.full_at.max(now) + WRONG_TOKEN_PAUSE;
        let pause = full_at.saturating_duration_since(now + WRONG_TOKENS_BURST * WRONG_TOKEN_PAUSE);
        if pause > WRONG_TOKEN_DELAY_MAX {
            return FailureVerdict { pause: None, n_logged };
        }
        known.full_at = full_at;
        FailureVerdict { pause: Some(pause), n_logged }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: TokenSource = TokenSource::User(1);

    #[tokio::test(start_paused = true)]
    async fn a_source_of_wrong_tokens_is_delayed_and_logged_and_others_are_not() {
        let (mut failures, now) = (TokenFailures::default(), Instant::now());
        let refused: Vec<_> = (0..3000).map(|_| failures.note_wrong_token(ONE, now)).collect();
        let n_at_once =
            refused.iter().filter(|verdict| verdict.pause == Some(Duration::ZERO)).count();
        let n_waiting =
            refused.iter().filter(|verdict| verdict.pause > Some(Duration::ZERO)).count();
        assert_eq!((n_at_once, n_waiting), (20, 5));
        assert_eq!(refused[20].pause, Some(WRONG_TOKEN_PAUSE));
        assert_eq!(refused[24].pause, Some(WRONG_TOKEN_DELAY_MAX));
        assert_eq!(refused[0].n_logged, 1);
        assert!(refused[1..].iter().all(|verdict| verdict.n_logged == 0));

        let other = TokenSource::Host("192.0.2.1".parse().expect("an address"));
        assert_eq!(
            failures.note_wrong_token(other, now),
            FailureVerdict { pause: Some(Duration::ZERO), n_logged: 1 }
        );

        let later = now + WRONG_TOKEN_LOG_PAUSE;
        assert_eq!(
            failures.note_wrong_token(ONE, later),
            FailureVerdict { pause: Some(Duration::ZERO), n_logged: 3000 }
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_steady_stream_of_wrong_tokens_is_answered_once_a_second() {
        let mut failures = TokenFailures::default();
        let start = Instant::now();
        let mut answered = 0;
        for tick in 0..1000 {
            let now = start + Duration::from_millis(100) * tick;
            answered += u32::from(failures.note_wrong_token(ONE, now).pause.is_some());
        }
        assert_eq!(answered, 20 + 5 + 99);
    }

    #[test]
    fn many_sources_of_wrong_tokens_cause_few_log_lines() {
        let (mut failures, now) = (TokenFailures::default(), Instant::now());
        let mut lines = |now| -> u32 {
            let verdict = (0..1000)
                .map(|uid| failures.note_wrong_token(TokenSource::User(uid), now).n_logged);
            verdict.map(|n_logged| u32::from(n_logged > 0)).sum()
        };
        assert_eq!(lines(now), WRONG_TOKEN_LOG_LINES_MAX);
        assert_eq!(lines(now + WRONG_TOKEN_LOG_PAUSE / 2), 0);
        assert_eq!(lines(now + WRONG_TOKEN_LOG_PAUSE), WRONG_TOKEN_LOG_LINES_MAX);
    }

    #[test]
    fn the_addresses_of_one_network_are_one_source() {
        let at = |text: &str| TokenSource::at(text.parse().expect("an address"));
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:1"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
    }

    #[test]
    fn only_recent_sources_of_wrong_tokens_are_remembered() {
        let (mut failures, now) = (TokenFailures::default(), Instant::now());
        for number in 0..2 * WRONG_TOKEN_SOURCES_MAX {
            let uid = u32::try_from(number).expect("small");
            failures.note_wrong_token(
                TokenSource::User(uid),
                now + Duration::from_millis(u64::from(uid)),
            );
        }
        assert_eq!(failures.offenders.len(), WRONG_TOKEN_SOURCES_MAX);
        assert!(!failures.offenders.contains_key(&TokenSource::User(0)));
    }
}
