//! Reconciliation of a session's single-valued state with the demand of its clients.

use std::{
    collections::BTreeSet,
    sync::{Arc, MutexGuard, PoisonError},
};

use serde_json::json;

use super::{
    super::desired_state::{ClientDemand, DesiredState, ReconcileStep},
    Supervisor,
};
use crate::{
    config::defaults,
    connection::{Connection, ConnectionLimits, RequestFailure},
    protocol::{Message, jsonrpc::MessagePart, rpc_error::INTERNAL_ERROR},
};

impl Supervisor {
    /// Sets the demand of this connection's clients. [`Supervisor::reconcile`] applies it. `wants`
    /// is called under the lock, so that the last answer counts.
    pub(in super::super) fn set_demand(&self, wants: impl FnOnce() -> ClientDemand) {
        let is_left = {
            let mut standing = self.standing();
            let was_watched = standing.is_watched();
            standing.set_demand(wants());
            was_watched && !standing.is_watched()
        };
        // The watching clients used the connection until now.
        if is_left {
            self.left();
        }
    }

    /// Returns whether clients watch a resource with the connection.
    pub(super) fn is_watched(&self) -> bool {
        self.standing().is_watched()
    }

    /// Returns the error object with which the server refused a subscription, as JSON text.
    pub(in super::super) fn refusal(&self, uri: &str) -> Option<String> {
        self.standing().refusal(uri)
    }

    /// Brings the server's state in line with the demand. Without a connection, the next connection
    /// applies it. Cancel safe: a started step completes.
    pub(in super::super) async fn reconcile(self: &Arc<Self>) {
        // A caller that joins a run just before its end checks again.
        for _ in 0..defaults::SETTLE_ROUNDS {
            if self.next_step().is_none() {
                return;
            }
            let keeper = Arc::clone(self);
            let run = || async move { while keeper.step().await {} };
            self.settles.join(self.origin.dialer.tasks(), || None, run).outcome().await;
        }
    }

    fn next_step(&self) -> Option<(Arc<Connection>, ReconcileStep)> {
        let connection = self.live()?;
        let step = self.standing().next(connection.era(), |capability| {
            connection.profile().is_some_and(|profile| profile.has(capability))
        })?;
        Some((connection, step))
    }

    /// Takes one step. Returns `false` if there is none, or if the connection has gone: the next
    /// connection starts over.
    async fn step(&self) -> bool {
        let Some((connection, step)) = self.next_step() else { return false };
        let taken = match (&step, step.request()) {
            (ReconcileStep::Watch(uris), _) => self.have_watched(&connection, uris).await,
            (_, Some(request)) => self.ask(&connection, &step, &request).await,
            (_, None) => return false,
        };
        match taken {
            Ok(()) => true,
            Err(failure) if connection.is_live() => {
                // Record the failure, so that this connection does not try the step forever.
                tracing::warn!(mcp_server = %self.name(), %failure, ?step, "session state not set");
                let error = json!({
                    "code": INTERNAL_ERROR,
                    "message": failure.to_string(),
                    "data": { "code": failure.code() },
                });
                self.standing().done(connection.generation(), &step, Some(&error.to_string()));
                true
            }
            Err(_) => false,
        }
    }

    /// Takes a step that needs a request.
    async fn ask(
        &self,
        connection: &Arc<Connection>,
        step: &ReconcileStep,
        request: &Message,
    ) -> Result<(), RequestFailure> {
        let limits =
            ConnectionLimits { silence: defaults::SETTLE_TIMEOUT, total: defaults::SETTLE_TIMEOUT };
        // A client named the subject of this request.
        connection.note_client_use();
        let answer = connection.ask(request, limits).await?;
        let refusal = answer.part(MessagePart::Error).map(|error| connection.quote(error));
        if let Some(error) = &refusal {
            tracing::debug!(mcp_server = %self.name(), error, ?step, "refused");
        }
        self.standing().done(connection.generation(), step, answer.part(MessagePart::Error));
        Ok(())
    }

    /// Subscribes to resources with the one subscription of the modern era.
    async fn have_watched(
        &self,
        connection: &Connection,
        uris: &BTreeSet<String>,
    ) -> Result<(), RequestFailure> {
        connection.note_client_use();
        let refused = connection.watch(uris).await?;
        for (uri, error) in &refused {
            let error = connection.quote(error);
            tracing::debug!(mcp_server = %self.name(), uri, error, "resource not watched");
        }
        self.standing().watched(connection.generation(), uris, refused);
        Ok(())
    }

    pub(super) fn standing(&self) -> MutexGuard<'_, DesiredState> {
        // Held only for single statements on plain data. Session locks are taken while it is held,
        // so a holder of a session lock must never take it.
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
