//! The views, one for each path: all servers merged, one server alone, or all tools behind a few
//! meta-tools; and that of operators.
//!
//! ```text
//!  a path ── ViewChoice ── View ──▶ Views ──┬── DirectView ──────┐
//!                                           ├── PassthroughView ─┼──▶ Forwarder ──▶ an exchange
//!                                           └── MetaView ────────┤
//!  control, task ──────────────────────────── OperatorView ──────┘
//! ```
//!
//! A view turns a client's request into an answer or into an exchange with a server. It does not
//! depend on HTTP.

pub mod alias;
mod completion_reference;
mod direct;
mod merge;
mod modern_subscriptions;
pub mod operator;
mod passthrough;
mod resource_locator;
mod subscribe;
mod task_requests;
mod views;

pub use operator::{BackgroundCall, OperatorView};
pub use views::{View, ViewChoice, Views};
