//! Attacks of one party on all others, one file per line of attack.
//!
//! While each runs, [`Bystanders`] use the same service: they keep all their answers, and the service
//! keeps telling that it lives.

mod bystanders;
mod calm;
mod unread_answers;

use bystanders::Bystanders;
