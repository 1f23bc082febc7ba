//! The login that a client is asked to make while its call waits.
//!
//! A client that can show an address gets a question with it. The call continues when the login has
//! ended, in whichever browser. It ends when the client declines.

use std::sync::Arc;

use futures_util::future::{BoxFuture, OptionFuture};
use serde_json::json;
use tokio::{sync::oneshot, time::Instant};

use super::CallError;
use crate::{
    connection::{ClientReply, ServerRequest},
    era::ClientEra,
    error_report::chain,
    oauth::{LoginError, LoginService, PendingLogin},
    protocol::{Message, jsonrpc::MessagePart, payloads::method},
    server_name::ServerName,
};

/// The login that a client is asked to make while its call waits.
pub(super) struct LoginExchange {
    logins: Arc<LoginService>,
    server: ServerName,
    stage: LoginStage,
    /// The error of the call, if there is no login.
    error: CallError,
    since: Instant,
}

/// The stage of the login.
enum LoginStage {
    /// metamcp asks the authorization server for the address.
    Beginning(BoxFuture<'static, Result<PendingLogin, LoginError>>),
    /// The client has the address.
    Asked {
        login: PendingLogin,
        /// The end of the login.
        ended: BoxFuture<'static, Result<(), LoginError>>,
        /// The answer of the client, until it has agreed.
        reply: Option<oneshot::Receiver<ClientReply>>,
    },
    /// The login has ended.
    Over,
}

/// The next step.
pub(super) enum LoginStep {
    /// A question to ask the client.
    Ask(Box<ServerRequest>),
    /// A notification that the login has ended.
    Notify(Message),
    /// The call can continue.
    Done,
    /// There is no login: [`LoginExchange::into_error`].
    Refused,
}

impl LoginExchange {
    /// Returns the login at `server` that may turn `error` into an answer.
    ///
    /// # Errors
    ///
    /// `error`, if clients may not log in, or this one cannot show an address.
    pub(super) fn new(
        logins: Option<&Arc<LoginService>>,
        server: &ServerName,
        client: &ClientEra,
        error: CallError,
    ) -> Result<Self, CallError> {
        let Some(logins) = logins.filter(|logins| {
            error.is_login_required() && logins.is_open_to_clients() && client.can_open_urls()
        }) else {
            return Err(error);
        };
        let (logins, server) = (Arc::clone(logins), server.clone());
        let beginning = {
            let (logins, server) = (Arc::clone(&logins), server.clone());
            Box::pin(async move { logins.join(&server).await })
        };
        let stage = LoginStage::Beginning(beginning);
        Ok(Self { logins, server, stage, error, since: Instant::now() })
    }

    /// Returns the next step. Cancel safe.
    pub(super) async fn next(&mut self) -> LoginStep {
        loop {
            match &mut self.stage {
                LoginStage::Beginning(beginning) => match beginning.await {
                    Ok(login) => {
                        let (question, reply) =
                            ServerRequest::of_metamcp(question(&login), self.server.clone());
                        let (logins, id) = (Arc::clone(&self.logins), login.id.clone());
                        let ended = Box::pin(async move { logins.wait(&id).await });
                        self.stage = LoginStage::Asked { login, ended, reply: Some(reply) };
                        return LoginStep::Ask(Box::new(question));
                    }
                    Err(error) => return self.refused(&error),
                },
                LoginStage::Asked { login, ended, reply } => {
                    let ended = tokio::select! {
                        biased;
                        ended = ended => ended,
                        Some(answer) = OptionFuture::from(reply.as_mut()) => {
                            if !has_agreed(answer.ok()) {
                                return LoginStep::Refused;
                            }
                            *reply = None;
                            continue;
                        }
                    };
                    let notice = completed(login);
                    self.stage = LoginStage::Over;
                    return match ended {
                        Ok(()) => LoginStep::Notify(notice),
                        Err(error) => self.refused(&error),
                    };
                }
                LoginStage::Over => return LoginStep::Done,
            }
        }
    }

    /// Returns the time since the server required the login.
    pub(super) fn elapsed(&self) -> std::time::Duration {
        self.since.elapsed()
    }

    /// Returns the error of the call, after [`LoginStep::Refused`].
    pub(super) fn into_error(self) -> CallError {
        self.error
    }

    fn refused(&self, error: &LoginError) -> LoginStep {
        let (server, reason) = (&self.server, chain(error));
        tracing::warn!(mcp_server = %server, reason, "no login at server `{server}`: {reason}");
        LoginStep::Refused
    }
}

/// Returns the question with the address of the login. Source: MCP 2025-11-25, "Elicitation".
fn question(login: &PendingLogin) -> Message {
    let server = &login.server;
    let params = json!({
        "mode": "url",
        "elicitationId": login.id.to_string(),
        "url": login.url,
        "message": format!("Server `{server}` requires a login. It is for everyone who uses metamcp on this host."),
    });
    Message::request(method::ELICITATION, Some(&params.to_string()))
}

/// Returns the notification that the login has ended.
fn completed(login: &PendingLogin) -> Message {
    let params = json!({ "elicitationId": login.id.to_string() });
    Message::notification(method::ELICITATION_COMPLETE, Some(&params.to_string()))
}

/// Returns whether the client has agreed to open the address.
fn has_agreed(reply: Option<ClientReply>) -> bool {
    let Some(ClientReply::Answered(answer)) = reply else { return false };
    let result = answer.part(MessagePart::Result).unwrap_or("null");
    serde_json::from_str::<serde_json::Value>(result)
        .is_ok_and(|result| result["action"] == "accept")
}
