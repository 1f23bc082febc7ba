//! The number and lifetime of connections: `[pool]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::{
    ServerConfigs,
    bounded_number::bounded_number,
    defaults,
    diagnostic::ConfigProblem,
    duration::{self, WrittenDuration, WrittenTimeout},
    schema::{DurationOrOff, DurationSchema},
};

/// The number and lifetime of connections to servers, all servers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// The largest number of connections.
    pub size: usize,
    /// The number of further connections, for requests that waited [`PoolConfig::reserve_timeout`].
    pub reserve_size: usize,
    /// The time that a request waits before it may use the reserve.
    pub reserve_timeout: Duration,
    /// The number of idle connections that are kept; less than [`PoolConfig::size`].
    pub min_size: usize,
    /// The time after which an idle connection is closed; `None` is never.
    pub idle_timeout: Option<Duration>,
}

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

/// [`PoolConfig`] as written in the file, with the places of keys that other rules check.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub(super) struct PoolTable {
    /// The largest number of connections to servers.
    #[schemars(with = "usize", range(min = 1, max = defaults::POOL_SIZE_MAX), extend("default" = defaults::POOL_SIZE))]
    size: Option<Spanned<usize>>,
    /// The number of further connections, for requests that have waited for `reserve_timeout`.
    #[schemars(with = "usize", range(min = 0, max = defaults::POOL_SIZE_MAX), extend("default" = defaults::POOL_RESERVE_SIZE))]
    reserve_size: Option<Spanned<usize>>,
    /// The time that a request waits before it may use the reserve.
    #[schemars(with = "DurationSchema", extend("default" = duration::text(defaults::POOL_RESERVE_TIMEOUT)))]
    reserve_timeout: Option<WrittenDuration>,
    /// The number of idle connections that are kept, those used last; less than `size`.
    #[schemars(with = "usize", range(min = 0, max = defaults::POOL_SIZE_MAX - 1), extend("default" = defaults::POOL_MIN_SIZE))]
    min_size: Option<Spanned<usize>>,
    /// The time after which an idle connection is closed; "0s" is never.
    #[schemars(with = "DurationOrOff", extend("default" = duration::text(defaults::POOL_IDLE_TIMEOUT)))]
    idle_timeout: Option<WrittenTimeout>,
}

impl PoolTable {
    /// Checks the table, and that the pool has room for all servers.
    pub(super) fn checked(self, servers: &ServerConfigs) -> Result<PoolConfig, ConfigProblem> {
        let defaults = PoolConfig::default();
        let most = defaults::POOL_SIZE_MAX;
        let place = self.size.as_ref().map(Spanned::span).unwrap_or_default();
        let size = bounded_number("pool.size", self.size.as_ref(), (1, most))?;
        let reserve = bounded_number("pool.reserve_size", self.reserve_size.as_ref(), (0, most))?;
        let size = size.unwrap_or(defaults.size);
        if let Some(min) = &self.min_size
            && size <= *min.get_ref()
        {
            let message = format!("`pool.min_size` is {} of {size} connections", min.get_ref());
            return Err(ConfigProblem::at(min.span(), message).help(
                "use less than `pool.size`, so that an idle connection can make room for another server",
            ));
        }
        let pool = PoolConfig {
            size,
            reserve_size: reserve.unwrap_or(defaults.reserve_size),
            reserve_timeout: self.reserve_timeout.map_or(defaults.reserve_timeout, |found| found.0),
            min_size: self.min_size.map_or(defaults.min_size, Spanned::into_inner),
            idle_timeout: self.idle_timeout.map_or(defaults.idle_timeout, |found| found.0),
        };
        check_room(&pool, place, servers)?;
        Ok(pool)
    }
}

/// Checks that servers that stay connected leave room for the others.
fn check_room(
    pool: &PoolConfig,
    place: std::ops::Range<usize>,
    servers: &ServerConfigs,
) -> Result<(), ConfigProblem> {
    let n_servers = servers.len();
    let n_kept = servers.values().filter(|server| server.is_keep_alive()).count();
    let n_needed = n_kept + usize::from(n_kept < n_servers);
    if n_needed <= pool.size {
        return Ok(());
    }
    let message =
        format!("{n_kept} of {n_servers} servers stay connected, and `pool.size` is {}", pool.size);
    Err(ConfigProblem::at(place, message).help(format!(
        "write `size = {n_needed}` or more under `[pool]`, so that every server can connect"
    )))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, path::Path};

    use super::*;
    use crate::{config::health::HealthTable, server_name::ServerName};

    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        pool: PoolTable,
        #[serde(default)]
        servers: BTreeMap<Spanned<String>, super::super::server::ServerTable>,
    }

    fn parse(text: &str) -> Result<PoolConfig, ConfigProblem> {
        let file: File =
            toml::from_str(text).map_err(|error| ConfigProblem::at(0..0, error.message()))?;
        let servers = file.servers.into_iter().map(|(name, table)| {
            let server = table.into_server(name.span(), &HealthTable::default())?;
            Ok((ServerName::new(name.get_ref()).expect("a name"), server))
        });
        file.pool.checked(&servers.collect::<Result<_, ConfigProblem>>()?)
    }

    #[track_caller]
    fn bad(text: &str) -> String {
        parse(text).expect_err("a mistake").locate(Path::new("c.toml"), text).to_string()
    }

    #[test]
    fn every_key_is_read() {
        let pool = parse(
            "[pool]\nsize = 3\nreserve_size = 2\nreserve_timeout = \"1s\"\nmin_size = 1\nidle_timeout = \"1m\"\n",
        );
        let expected = PoolConfig {
            size: 3,
            reserve_size: 2,
            reserve_timeout: Duration::from_secs(1),
            min_size: 1,
            idle_timeout: Some(Duration::from_secs(60)),
        };
        assert_eq!(pool.expect("good"), expected);
        assert_eq!(parse("").expect("good"), PoolConfig::default());
        assert_eq!(parse("[pool]\nidle_timeout = \"0s\"\n").expect("good").idle_timeout, None);
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
        assert_eq!(parse("").expect("good"), expected);
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
        parse(&(pool.clone() + &eager("a") + &eager("b"))).expect("all of them fit");
        insta::assert_snapshot!(bad(&(pool.clone() + &eager("a") + &eager("b") + &server("c", ""))), @"
        2 of 3 servers stay connected, and `pool.size` is 2
         --> c.toml:2:8
          |
        2 | size = 2
          |        ^
          = help: write `size = 3` or more under `[pool]`, so that every server can connect
        ");
        let own = "start = \"eager\"\nlifecycle = { mode = \"keep-alive\", idle_timeout = \"1h\" }";
        parse(&(pool + &eager("a") + &server("b", own) + &server("c", "")))
            .expect("`b` makes room");
    }
}
