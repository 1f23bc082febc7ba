//! The number and lifetime of connections: `[pool]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::{
    ServerConfigs,
    bounded_number::BoundedNumber,
    defaults,
    diagnostic::ConfigProblem,
    duration::{AnyDuration, DurationOrOff},
    key_places::KeyPlaces,
};

/// The number and lifetime of connections to servers, all servers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PoolConfig {
    /// The largest number of connections to servers.
    #[serde(deserialize_with = "size")]
    #[schemars(with = "Size")]
    pub size: usize,
    /// The number of further connections, for requests that have waited for `reserve_timeout`.
    #[serde(deserialize_with = "reserve_size")]
    #[schemars(with = "ReserveSize")]
    pub reserve_size: usize,
    /// The time that a request waits before it may use the reserve.
    #[serde(with = "AnyDuration")]
    pub reserve_timeout: Duration,
    /// The number of idle connections that are kept, those used last; less than `size`.
    #[schemars(range(min = 0, max = defaults::POOL_SIZE_MAX - 1))]
    pub min_size: usize,
    /// The time after which an idle connection is closed; "0s" is never.
    #[serde(with = "DurationOrOff")]
    pub idle_timeout: Option<Duration>,
}

type Size = BoundedNumber<1, { defaults::POOL_SIZE_MAX }>;

type ReserveSize = BoundedNumber<0, { defaults::POOL_SIZE_MAX }>;

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            size: defaults::POOL_SIZE,
            reserve_size: defaults::POOL_RESERVE_SIZE,
            reserve_timeout: defaults::POOL_RESERVE_TIMEOUT,
            min_size: defaults::POOL_MIN_SIZE,
            idle_timeout: Some(defaults::POOL_IDLE_TIMEOUT),
        }
    }
}

fn size<'de, D: Deserializer<'de>>(found: D) -> Result<usize, D::Error> {
    Size::read::<usize, _, _>(found, "pool.size", Size::help)
}

fn reserve_size<'de, D: Deserializer<'de>>(found: D) -> Result<usize, D::Error> {
    ReserveSize::read::<usize, _, _>(found, "pool.reserve_size", ReserveSize::help)
}

impl PoolConfig {
    /// Checks the rules over several keys, and that the pool has room for all servers.
    pub(super) fn check(
        &self,
        servers: &ServerConfigs,
        places: &KeyPlaces<'_>,
    ) -> Result<(), ConfigProblem> {
        let Self { size, min_size, .. } = *self;
        if size <= min_size {
            let message = format!("`pool.min_size` is {min_size} of {size} connections");
            return Err(places.problem("pool.min_size", message).help(
                "use less than `pool.size`, so that an idle connection can make room for another server",
            ));
        }
        // Servers that stay connected leave room for the others.
        let n_servers = servers.len();
        let n_kept = servers.values().filter(|server| server.is_keep_alive()).count();
        let n_needed = n_kept + usize::from(n_kept < n_servers);
        if n_needed <= size {
            return Ok(());
        }
        let message =
            format!("{n_kept} of {n_servers} servers stay connected, and `pool.size` is {size}");
        Err(places.problem("pool.size", message).help(format!(
            "write `size = {n_needed}` or more under `[pool]`, so that every server can connect"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::tests::{bad, good};

    #[test]
    fn every_key_is_read() {
        let pool = good(
            "[pool]\nsize = 3\nreserve_size = 2\nreserve_timeout = \"1s\"\nmin_size = 1\nidle_timeout = \"1m\"\n",
        )
        .pool;
        let expected = PoolConfig {
            size: 3,
            reserve_size: 2,
            reserve_timeout: Duration::from_secs(1),
            min_size: 1,
            idle_timeout: Some(Duration::from_secs(60)),
        };
        assert_eq!(pool, expected);
        assert_eq!(good("").pool, PoolConfig::default());
        assert_eq!(good("[pool]\nidle_timeout = \"0s\"\n").pool.idle_timeout, None);
    }

    #[test]
    fn without_a_table_the_pool_has_20_connections_and_no_reserve() {
        let expected = PoolConfig {
            size: 20,
            reserve_size: 0,
            reserve_timeout: Duration::from_secs(5),
            min_size: 0,
            idle_timeout: Some(Duration::from_secs(300)),
        };
        assert_eq!(good("").pool, expected);
    }

    #[test]
    fn an_unusable_pool_size_is_refused() {
        insta::assert_snapshot!(bad("[pool]\nsize = 0\n"), @"
        `pool.size` is 0
         --> c.toml:2:8
          |
        2 | size = 0
          |        ^
          = help: use 1 to 1024
        ");
        insta::assert_snapshot!(bad("[pool]\nreserve_size = 5000\n"), @"
        `pool.reserve_size` is 5000
         --> c.toml:2:16
          |
        2 | reserve_size = 5000
          |                ^^^^
          = help: use 0 to 1024
        ");
        insta::assert_snapshot!(bad("[pool]\nsize = 2\nmin_size = 2\n"), @"
        `pool.min_size` is 2 of 2 connections
         --> c.toml:3:12
          |
        3 | min_size = 2
          |            ^
          = help: use less than `pool.size`, so that an idle connection can make room for another server
        ");
    }

    #[test]
    fn servers_that_stay_connected_leave_room_for_the_others() {
        let server =
            |name: &str, more: &str| format!("[servers.{name}]\ncommand = \"x\"\n{more}\n");
        let eager = |name| server(name, "start = \"eager\"");
        let pool = "[pool]\nsize = 2\n".to_owned();
        good(&(pool.clone() + &eager("a") + &eager("b")));
        insta::assert_snapshot!(bad(&(pool.clone() + &eager("a") + &eager("b") + &server("c", ""))), @"
        2 of 3 servers stay connected, and `pool.size` is 2
         --> c.toml:2:8
          |
        2 | size = 2
          |        ^
          = help: write `size = 3` or more under `[pool]`, so that every server can connect
        ");
        let own = "start = \"eager\"\nlifecycle = { mode = \"keep-alive\", idle_timeout = \"1h\" }";
        // `b` makes room.
        good(&(pool + &eager("a") + &server("b", own) + &server("c", "")));
    }
}
