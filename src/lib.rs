//! metamcp: one service per host that runs each MCP server once and serves it to every client.

pub mod backoff;
pub mod call;
pub mod catalog;
pub mod child;
pub mod cli;
pub mod config;
pub mod connection;
pub mod control;
pub mod daemon;
pub mod demo;
pub mod ingress;
pub mod name;
pub mod pool;
pub mod protocol;
pub mod report;
pub mod single_flight;
pub mod status;
pub mod systemd;
pub mod telemetry;
pub mod view;
