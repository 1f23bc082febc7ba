//! Logins at servers with OAuth 2.1, as the MCP specification of 2026-07-28 has it.
//!
//! ```text
//!  connection ──▶ Authorizer ──▶ TokenKeeper ──▶ TokenStore: files
//!                                    ▲  │
//!                                    │  └──▶ renewal: refresh token, or client credentials
//!  operator, client ──▶ LoginService ┘
//!                        begin: discovery ▶ registration ▶ address for the person
//!                        finish: answer ▶ checks ▶ code exchanged for tokens
//! ```
//!
//! - A login is the whole host's, one for each server. Its tokens serve all clients.
//! - A token is refreshed after 65 to 75 % of its life, used or not, and when a server refuses it.
//!   All requests share one renewal, which runs in a task of its own.
//! - Tokens are stored before they are used.
//! - If the authorization server is down, the current token stays in use, and metamcp tries again.
//!   Only a final refusal requires a person.
//! - A token never leaves this module except as a sensitive header value.

mod authorization_failure;
mod authorizer;
mod callback_answer;
mod challenge;
mod client_document;
mod discovery;
mod endpoint_client;
mod error;
mod login_basis;
mod login_metadata;
mod login_record;
mod login_service;
mod login_settings;
mod login_status;
mod logout;
mod machine_login;
mod moment;
mod oauth_http;
mod pending_login;
mod pending_logins;
mod person_login;
mod pkce;
mod redirect_url;
mod refresh_schedule;
mod registration;
mod resource_metadata;
mod revocation;
mod scope_selection;
mod secret_text;
mod server_login;
mod server_metadata;
#[cfg(test)]
mod tests;
mod token_keeper;
mod token_renewal;
mod token_request;
mod token_request_counts;
mod token_set;
mod token_store;

pub use authorization_failure::{AuthorizationFailure, LoginRequired};
pub use authorizer::{AuthRefusal, Authorizer};
pub use callback_answer::CallbackAnswer;
pub use client_document::client_document;
pub use error::LoginError;
pub use login_metadata::LoginMetadata;
pub use login_service::LoginService;
pub use login_status::{LoginKind, LoginState, LoginStatus};
pub use logout::LogoutOutcome;
pub use oauth_http::{OAuthHttp, OAuthHttpFactory, web_clients};
pub use pending_login::{LoginId, PendingLogin};
pub use token_request_counts::TokenRequestCount;
