//! Attacks of one party on all others, one file per kind of attack.
//!
//! While each runs, [`Bystanders`] use the same service: they get all of their answers, and the
//! service stays healthy.

mod bystanders;
mod child_as_operator;
mod deep_json;
mod expensive_schemas;
mod failing_client;
mod hanging_calls;
mod hanging_exclusive_calls;
mod idle_connections;
mod idle_streams;
mod large_results;
mod no_attack;
mod trickling_upstream;
mod unfinished_bodies;
mod unread_answers;
mod wedged_child;

use bystanders::Bystanders;
