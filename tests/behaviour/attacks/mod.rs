//! Attacks of one party on all others, one file per line of attack.
//!
//! While each runs, [`Bystanders`] use the same service: they get all of their answers, and the
//! service stays healthy.

mod bystanders;
mod calm;
mod child_as_operator;
mod deep_json;
mod exclusive;
mod hanging_calls;
mod idle_connections;
mod large_results;
mod one_bad_client;
mod schemas;
mod streams;
mod trickling_upstream;
mod unfinished_bodies;
mod unread_answers;
mod wedged_child;

use bystanders::Bystanders;
