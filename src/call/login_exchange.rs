//! The login that a client is asked to make while its call waits.
//!
//! A client that can show an address gets a question with it. Once the client agrees, metamcp waits
//! until the login has ended, in whichever browser, and the call continues.

use std::sync::Arc;

use futures_util::future::BoxFuture;
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
    error: Option<CallError>,
    since: Instant,
}

/// The stage of the login.
enum LoginStage {
    /// metamcp asks the authorization server for the address.
    Beginning(BoxFuture<'static, Result<PendingLogin, LoginError>>),
    /// The client has the address.
    Asked(oneshot::Receiver<ClientReply>, PendingLogin),
    /// The client agreed, and a person logs in.
    Waiting(BoxFuture<'static, Result<(), LoginError>>, PendingLogin),
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
}

impl LoginExchange {
    /// Returns the login at `server` that may turn `error` into an answer. `None` if clients may not
    /// log in, or this one cannot show an address.
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
        Ok(Self { logins, server, stage, error: Some(error), since: Instant::now() })
    }

    /// Returns the next step. Cancel safe.
    ///
    /// # Errors
    ///
    /// The error of the call, if there is no login.
    pub(super) async fn next(&mut self) -> Result<LoginStep, CallError> {
        loop {
            match &mut self.stage {
                LoginStage::Beginning(beginning) => match beginning.await {
                    Ok(login) => {
                        let (question, reply) =
                            ServerRequest::of_metamcp(question(&login), self.server.clone());
                        self.stage = LoginStage::Asked(reply, login);
                        return Ok(LoginStep::Ask(Box::new(question)));
                    }
                    Err(error) => return Err(self.failed(&error)),
                },
                LoginStage::Asked(reply, login) => {
                    let is_accepted = matches!(
                        reply.await,
                        Ok(ClientReply::Answered(answer)) if has_accepted(&answer)
                    );
                    if !is_accepted {
                        return Err(self.declined());
                    }
                    let (logins, login) = (Arc::clone(&self.logins), login.clone());
                    let id = login.id.clone();
                    let waiting = Box::pin(async move { logins.wait(&id).await });
                    self.stage = LoginStage::Waiting(waiting, login);
                }
                LoginStage::Waiting(waiting, login) => {
                    let (ended, notice) = (waiting.await, completed(login));
                    self.stage = LoginStage::Over;
                    return match ended {
                        Ok(()) => Ok(LoginStep::Notify(notice)),
                        Err(error) => Err(self.failed(&error)),
                    };
                }
                LoginStage::Over => return Ok(LoginStep::Done),
            }
        }
    }

    /// Returns the time since the server required the login.
    pub(super) fn elapsed(&self) -> std::time::Duration {
        self.since.elapsed()
    }

    fn failed(&mut self, error: &LoginError) -> CallError {
        let (server, reason) = (&self.server, chain(error));
        tracing::warn!(mcp_server = %server, reason, "no login at server `{server}`: {reason}");
        self.declined()
    }

    fn declined(&mut self) -> CallError {
        let lost =
            || CallError::UnknownServer { server: self.server.to_string(), similar: Vec::new() };
        self.error.take().unwrap_or_else(lost)
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
fn has_accepted(answer: &Message) -> bool {
    let result = answer.part(MessagePart::Result).unwrap_or("null");
    serde_json::from_str::<serde_json::Value>(result)
        .is_ok_and(|result| result["action"] == "accept")
}
